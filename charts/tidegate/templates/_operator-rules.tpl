{{/*
What the operator may do, once for ClusterRole and Role: what tidegate_operator.core.rights asks for at its
start, and no more (tests/unit/charts/test_rights.py). No wildcard, and no list or watch of Secrets: they are
fetched by the name that a spec gives. Nobody can grant what they don't hold, so rights that the operator hands
on to sidecars (ConfigMaps) and indexers (ConfigMaps, a Lease) are here too.
*/}}
{{- define "tidegate.operatorRules" -}}
# Our kinds: read; of them only the status is written.
- apiGroups: [tidegate.dev]
  resources: [knowledgebases, retrievalpipelines, routingpolicies]
  verbs: [get, list, watch]
- apiGroups: [tidegate.dev]
  resources: [knowledgebases/status, retrievalpipelines/status, routingpolicies/status]
  verbs: [patch]
# Owner references that block deletion need this where their permission is enforced.
- apiGroups: [tidegate.dev]
  resources: [knowledgebases/finalizers, retrievalpipelines/finalizers, routingpolicies/finalizers]
  verbs: [update]
# Workloads and frozen releases: watched by label, deleted when they retire.
- apiGroups: [apps]
  resources: [deployments, controllerrevisions]
  verbs: [get, list, watch, create, patch, delete]
# Rendered documents, and the documents of knowledge bases.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch]
# Services between pods go with the Deployment that they led to.
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, create, patch, delete]
# The other children: made and kept by server-side apply, read by name; the garbage collector deletes them.
- apiGroups: [""]
  resources: [serviceaccounts, secrets, persistentvolumeclaims]
  verbs: [get, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, create, patch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, create, patch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, patch, update]
# Why pods aren't ready.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}

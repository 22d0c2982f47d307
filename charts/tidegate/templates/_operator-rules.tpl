{{/*
What the operator may do, once for ClusterRole and Role. Nothing here names a wildcard, and nothing reads
Secrets by list or watch: they are fetched by the name that a spec gives. Rights that the operator hands on
to the sidecar and to the indexer (ConfigMaps, Leases) must be held here, as nobody can grant more.
*/}}
{{- define "tidegate.operatorRules" -}}
# Our kinds: read; of them only the status is written.
- apiGroups: [tidegate.dev]
  resources: [knowledgebases, retrievalpipelines, routingpolicies]
  verbs: [get, list, watch]
- apiGroups: [tidegate.dev]
  resources: [knowledgebases/status, retrievalpipelines/status, routingpolicies/status]
  verbs: [get, patch, update]
# Owner references that block deletion need this where their permission is enforced.
- apiGroups: [tidegate.dev]
  resources: [knowledgebases/finalizers, retrievalpipelines/finalizers, routingpolicies/finalizers]
  verbs: [update]
# Children: made by server-side apply (create and patch), watched by label, deleted when a release retires.
- apiGroups: [apps]
  resources: [deployments, controllerrevisions]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services, serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
# Rendered documents, and the documents of knowledge bases.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, delete]
# Volumes are made and grown; the garbage collector deletes them with their owner.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch]
# Sidecars and indexers have accounts of their own, limited to named documents and a named Lease. get and
# update of Leases are there to be handed on.
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, create, patch, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, patch, update, delete]
# Pods: read for readiness and reasons; patched to take a pod out of its Service by label.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch]
# Why pods can't be made (quota, pod security) is said there, and in events.
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [get, list]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create]
{{- end }}

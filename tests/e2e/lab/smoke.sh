#!/bin/bash
# smoke.sh: does a cluster that is up do what operators need of it? Seconds; leaves nothing behind.
set -euo pipefail
STARTED=$(date +%s.%N)
cd "$(dirname "$0")"
. ./env.sh
k() { kubectl_lab -n smoke "$@"; }

kubectl_lab create namespace smoke >/dev/null
trap 'kubectl_lab delete namespace smoke >/dev/null' EXIT
poll 10 k get serviceaccount default
k apply -f - >/dev/null <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: $BASE_IMAGE
        imagePullPolicy: Never
        command: [sh, -c, "mkdir /tmp/w; cd /tmp/w; hostname > index.html; exec python3 -m http.server 8080"]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
        resources: {limits: {cpu: 500m, memory: 64Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: c, image: "$BASE_IMAGE", imagePullPolicy: Never, command: [sh, -c, "echo index \$JOB_COMPLETION_INDEX"]}
Y
k rollout status deployment/web --timeout 60s >/dev/null
say "deployment of 2"
ip=$(k get service web -o 'jsonpath={.spec.clusterIP}')
poll 10 curl -sf "http://$ip/"
say "host -> ClusterIP: $(curl -s "http://$ip/")"
say "pod -> name: $(k exec deployment/web -- curl -sf --max-time 3 http://web.smoke/)"
# shellcheck disable=SC2016   # expands in the pod
ask_api='cd /run/secrets/kubernetes.io/serviceaccount
  curl -s --cacert ca.crt -H "Authorization: Bearer $(cat token)" -o /dev/null -w "%{http_code}" https://kubernetes.default.svc/version'
say "pod -> API: $(k exec deployment/web -- sh -c "$ask_api")"
k wait --for condition=Complete job/job --timeout 30s >/dev/null
say "indexed job: $(k logs -l job-name=job | sort | tr '\n' ' ')"
k set env deployment/web V=2 >/dev/null
k rollout status deployment/web --timeout 60s >/dev/null
say "rolling update"
[ "$(k logs -l app=web --tail -1 | wc -l)" -gt 0 ]
say logs

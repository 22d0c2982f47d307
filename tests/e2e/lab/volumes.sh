#!/bin/bash
# volumes.sh [COUNT]: COUNT local volumes on each node (default 24); released ones are emptied and made anew.
# Local volumes, not the in-tree host-path provisioner: only these honour fsGroup, and our pods aren't root.
set -euo pipefail
cd "$(dirname "$0")"
. ./env.sh
count=${1:-24}

kubectl_lab get pv -o 'jsonpath={range .items[?(@.status.phase=="Released")]}{.metadata.name}{"\n"}{end}' |
  while read -r volume; do
    kubectl_lab delete pv "$volume" -o name >/dev/null
    rm -rf "${RUN:?}/volumes/${volume:?}"
  done

manifest() { # NODE VOLUME
  cat <<Y
apiVersion: v1
kind: PersistentVolume
metadata: {name: $2}
spec:
  capacity: {storage: 20Gi}
  accessModes: [ReadWriteOnce, ReadOnlyMany]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: standard
  local: {path: "$RUN/volumes/$2"}
  nodeAffinity:
    required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$1]}]}]}
---
Y
}

present=$(kubectl_lab get pv -o 'jsonpath={.items[*].metadata.name}')
missing=$(
  kubectl_lab get nodes -l '!type' -o name | sed 's#node/##' | while read -r node; do
    for i in $(seq "$count"); do
      [[ " $present " != *" $node-$i "* ]] || continue
      mkdir -p "$RUN/volumes/$node-$i"
      manifest "$node" "$node-$i"
    done
  done
)
[ -z "$missing" ] || kubectl_lab create -f - >/dev/null <<< "$missing"

#!/bin/bash
# fake-nodes.sh N: kwok plays N nodes whose pods are Ready at once but run nothing (scale tests).
# Pods go there with nodeSelector {type: kwok} and a toleration of kwok.x-k8s.io/node.
set -euo pipefail
cd "$(dirname "$0")"
. ./env.sh
[ -x "$BIN/kwok" ] || die "run build.sh --extras"

setsid nohup "$BIN/kwok" --config "$LAB/kwok-stages.yaml" --kubeconfig "$LAB_KUBECONFIG" --cidr 10.245.0.0/16 \
  --manage-all-nodes=false --manage-nodes-with-annotation-selector kwok.x-k8s.io/node=fake \
  --node-lease-duration-seconds 40 >> "$RUN/kwok.log" 2>&1 < /dev/null &
echo $! >> "$RUN/pids"

for i in $(seq "$1"); do
  cat <<Y
apiVersion: v1
kind: Node
metadata:
  name: fake-$i
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {type: kwok, kubernetes.io/hostname: fake-$i, kubernetes.io/os: linux}
spec: {taints: [{key: kwok.x-k8s.io/node, value: fake, effect: NoSchedule}]}
status:
  capacity: &all {cpu: "64", memory: 256Gi, pods: "1000", nvidia.com/gpu: "8"}
  allocatable: *all
---
Y
done | kubectl_lab apply -f - >/dev/null
kubectl_lab wait --for condition=Ready node -l type=kwok --timeout 30s >/dev/null

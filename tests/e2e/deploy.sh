#!/bin/bash
# deploy.sh [HELM-FLAG...]: images and chart into the current cluster, and waits until the operator runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
eval "$(tests/e2e/cluster.sh env)"
images=$(tests/e2e/images.sh load)
# helm refuses a second upgrade of a release while the first one waits
exec 8> .state/deploy.lock
flock 8

values=()
while IFS='=' read -r plane image; do
  values+=(--set "images.$plane.repository=${image%:*}" --set "images.$plane.tag=${image##*:}")
done <<< "$images"
helm upgrade --install tidegate charts/tidegate --namespace tidegate-system --create-namespace \
  "${values[@]}" --wait --timeout 120s "$@"

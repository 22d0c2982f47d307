#!/bin/bash
# mkmod.sh v1.Y.Z: moves go.mod to another Kubernetes. Kubernetes' own go.mod points its staging modules
# at folders that exist only in its repository; here each is pinned to v0.Y.Z instead.
set -euo pipefail
cd "$(dirname "$0")"
version=$1
gomod=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
go mod edit -require "k8s.io/kubernetes@$version"
sed -n 's#^\s*\(k8s.io/[a-z-]*\) => ./staging/.*#\1#p' "$gomod" | while read -r module; do
  go mod edit -replace "$module=$module@v0.${version#v1.}"
done
go mod tidy

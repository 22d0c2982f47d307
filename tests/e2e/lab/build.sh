#!/bin/bash
# build.sh [--extras]: Debian packages, and every binary from its Go module into $LAB/bin. Extras: kwok, crictl.
# Minutes and 4 GiB of build cache the first time; a second when nothing has changed.
set -euo pipefail
cd "$(dirname "$0")"
. ./env.sh

HELM=helm.sh/helm/v3/cmd/helm@v3.22.0
KWOK=sigs.k8s.io/kwok/cmd/kwok@v0.8.0
CRICTL=sigs.k8s.io/cri-tools/cmd/crictl@v1.37.0
PACKAGES=(containerd runc containernetworking-plugins iptables nftables buildah debootstrap iproute2 openssl curl bc gcc libc6-dev)
COMPONENTS=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl)

packages() {
  local missing=() package
  for package in "${PACKAGES[@]}"; do
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  apt-get update -q >/dev/null
  # where systemd runs, containerd starts as a service too: the lab uses only its program
  apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
}

# What goes into Kubernetes, etcd and CoreDNS, as one hash: their build is skipped without a look at the build cache.
inputs() { cat go.mod go.sum cmd/*/main.go | sha256sum; }

cluster_binaries() {
  local version minor flags='-s -w' package binary
  [ "$(cat "$BIN/.inputs" 2>/dev/null)" != "$(inputs)" ] || return 0
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  minor=${version#v1.}
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
    flags+=" -X $package.gitTreeState=clean"
  done
  for binary in etcd coredns kube; do
    CGO_ENABLED=0 nice -n 10 go build -trimpath -buildvcs=false -ldflags "$flags" -o "$BIN/$binary" "./cmd/$binary"
  done
  for binary in "${COMPONENTS[@]}"; do ln -sf kube "$BIN/$binary"; done
  inputs > "$BIN/.inputs"
}

# tool PACKAGE@VERSION: a command with a go.mod of its own, so with its own versions of dependencies
tool() {
  local binary
  binary=$BIN/$(basename "${1%@*}")
  [ "$(cat "$binary.version" 2>/dev/null)" != "$1" ] || return 0
  CGO_ENABLED=0 GOBIN=$BIN nice -n 10 go install -trimpath -ldflags '-s -w' "$1"
  echo "$1" > "$binary.version"
}

# How kwok's nodes and pods behave is data in its module: without it, kwok exits.
kwok_stages() {
  local module stage
  [ ! -e "$LAB/kwok-stages.yaml" ] || return 0
  module=$(go mod download -json "sigs.k8s.io/kwok@${KWOK#*@}" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  for stage in "$module"/kustomize/stage/{node/fast,node/heartbeat-with-lease,pod/fast}/[!k]*.yaml; do
    echo ---
    cat "$stage"
  done > "$LAB/kwok-stages.yaml"
}

mkdir -p "$BIN"
packages
cluster_binaries
tool "$HELM"
if [ "${1:-}" = --extras ]; then
  tool "$KWOK"
  tool "$CRICTL"
  kwok_stages
fi

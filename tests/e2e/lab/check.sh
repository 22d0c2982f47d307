#!/bin/bash
# check.sh: fails, saying why, on a machine where the lab can't run
set -euo pipefail
cd "$(dirname "$0")"
. ./env.sh

[ "$(uname -s)" = Linux ] || die "the lab needs Linux"
[ "$(id -u)" = 0 ] || die "the lab needs root: it makes namespaces, bridges and cgroups"
[ -d /sys/fs/cgroup/memory ] || die "the lab needs cgroup v1: this machine has no memory hierarchy under /sys/fs/cgroup"
command -v apt-get >/dev/null || die "the lab needs Debian: containerd, runc and the CNI plugins are its packages"
[ -x "$BIN/kube" ] || command -v go >/dev/null || die "the lab needs Go 1.26 to build Kubernetes, once"

#!/bin/bash
# check.sh: fails on a machine where the lab can't run, and says in one line all that is missing and what to do about it.
# LAB_OS_RELEASE: another /etc/os-release, for tests.
set -euo pipefail
cd "$(dirname "$0")"
. ./env.sh

GO=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
DEBIAN=12

missing=()
lacks() { missing+=("needs $1"); }

# is_at_least WANTED FOUND: versions, compared number by number
is_at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# The release that is installed, and not one that go.mod of this folder would have it fetch.
installed_go() { (cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || true; }

check_release() {
  local id version name
  # shellcheck disable=SC1090   # a file of the machine
  read -r id version name < <(. "$1" 2>/dev/null && echo "${ID:-?} ${VERSION_ID:-?} ${PRETTY_NAME:-another system}") ||
    name='a system without /etc/os-release'
  [ "${id:-} ${version:-}" = "debian $DEBIAN" ] ||
    lacks "Debian $DEBIAN, for its containerd, runc and CNI plugins, and this is $name (use such a machine or container)"
}

check_go() {
  local found
  [ ! -x "$BIN/kube" ] || return 0              # built already, and Go is for that only
  found=$(installed_go)
  is_at_least "$GO" "${found#go}" ||
    lacks "Go $GO or newer, to build Kubernetes once, and finds ${found:-none} (put one from https://go.dev/dl on the PATH)"
}

[ "$(uname -s)" = Linux ] || lacks "Linux"
[ "$(id -u)" = 0 ] || lacks "root, to make namespaces, bridges and cgroups (run it as root)"
[ -d /sys/fs/cgroup/memory ] ||
  lacks "cgroup v1, and there is no /sys/fs/cgroup/memory (boot with systemd.unified_cgroup_hierarchy=0)"
check_release "${LAB_OS_RELEASE:-/etc/os-release}"
check_go

[ ${#missing[@]} -gt 0 ] || exit 0
all=$(printf '; %s' "${missing[@]}")
die "the lab ${all#; }; or use another cluster: docs/cluster.md"

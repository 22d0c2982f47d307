#!/bin/bash
# The cluster that end-to-end tests and `make deploy` use.
#
#   cluster.sh up | down | status        down leaves nothing running; built binaries are kept
#   cluster.sh kubeconfig                the path of its kubeconfig
#   cluster.sh env                       export lines for KUBECONFIG and PATH, to be eval-ed
#   cluster.sh load IMAGE...             makes images known to the nodes
#   cluster.sh free-volumes              empties volumes whose claims are gone, where nothing else does
#   cluster.sh fault FAULT...             breaks or mends one thing (lab only): see lab/faults.sh
#   cluster.sh check                     fails, saying why, where no cluster can be had
#   cluster.sh provider                  which one it is
#
# The provider is what is found: `given` when the user has set KUBECONFIG, `kind` when a Docker engine
# answers and kind is installed, else `lab`, the single node that the scripts beside this one start.
set -euo pipefail
cd "$(dirname "$0")"
STATE=$(cd ../.. && pwd)/.state
KIND_NAME=tidegate
KIND_KUBECONFIG=$STATE/kind.kubeconfig
# shellcheck source=lab/env.sh
. lab/env.sh

die() { echo "$*" >&2; exit 1; }

provider() {
  case ${KUBECONFIG:-} in
    "$LAB_KUBECONFIG") echo lab ;;          # exported from `cluster.sh kubeconfig`: still ours to manage
    "$KIND_KUBECONFIG") echo kind ;;
    '') if command -v kind >/dev/null && docker info >/dev/null 2>&1; then echo kind; else echo lab; fi ;;
    *) echo given ;;
  esac
}

kubeconfig() {
  case $PROVIDER in
    given) echo "$KUBECONFIG" ;;
    kind) echo "$KIND_KUBECONFIG" ;;
    lab) echo "$LAB_KUBECONFIG" ;;
  esac
}

answers() { KUBECONFIG=$(kubeconfig) PATH=$BIN:$PATH kubectl version --request-timeout 5s >/dev/null 2>&1; }

check() {
  case $PROVIDER in
    given) answers || die "the cluster of KUBECONFIG=$KUBECONFIG does not answer" ;;
    kind) ;;
    lab) lab/check.sh ;;
  esac
}

up() {
  check
  ! answers || return 0
  case $PROVIDER in
    kind)
      mkdir -p "$STATE"
      kind create cluster --name "$KIND_NAME" --kubeconfig "$KIND_KUBECONFIG" --wait 120s ;;
    lab)
      lab/build.sh
      lab/images.sh base
      lab/down.sh                            # what a crashed machine left of an earlier one
      lab/up.sh "$@" ;;
  esac
}

down() {
  case $PROVIDER in
    given) die "KUBECONFIG is set by you: that cluster is not ended here" ;;
    kind) kind delete cluster --name "$KIND_NAME" --kubeconfig "$KIND_KUBECONFIG"; rm -f "$KIND_KUBECONFIG" ;;
    lab) lab/down.sh ;;
  esac
}

load() {
  case $PROVIDER in
    given) for image in "$@"; do docker push "$image"; done ;;   # its nodes can only pull
    kind) kind load docker-image --name "$KIND_NAME" "$@" ;;
    lab) lab/images.sh load "$@" ;;
  esac
}

print_env() {
  # shellcheck disable=SC2016   # PATH expands where it is eval-ed
  printf 'export KUBECONFIG=%q PATH=%q:$PATH\n' "$(kubeconfig)" "$BIN"
}

PROVIDER=$(provider)
command=${1:-}; shift || true
case $command in
  up) up "$@"; kubeconfig ;;
  down) down ;;
  status)
    if answers; then echo "$PROVIDER: running, $(kubeconfig)"; else echo "$PROVIDER: not running"; exit 1; fi ;;
  kubeconfig) kubeconfig ;;
  env) print_env ;;
  load) load "$@" ;;
  free-volumes) [ "$PROVIDER" != lab ] || lab/volumes.sh ;;
  fault) [ "$PROVIDER" = lab ] || die "faults are made in the lab only, this is $PROVIDER"; lab/faults.sh "$@" ;;
  check) check ;;
  provider) echo "$PROVIDER" ;;
  *) sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

# shellcheck shell=bash disable=SC2034   # sourced; what is set here is used by the scripts that do so
# Settings and small helpers of the lab. TIDEGATE_LAB, LAB_NAME, LAB_NET and LAB_PORT may be set outside.

LAB=${TIDEGATE_LAB:-/var/lib/tidegate-lab}      # bin/, images/, buildah/, containerd-N/ stay; run/NAME is one cluster
LAB_NAME=${LAB_NAME:-lab}                       # in names of interfaces, so 11 characters at most
LAB_NET=${LAB_NET:-172.30.255}                  # a /24: .1 this machine, .11 node-1, .12 node-2
LAB_PORT=${LAB_PORT:-16443}                     # of an apiserver without nodes; etcd takes the next two
POD_NET=10.244.0.0/16
SERVICE_NET=10.96.0.0/16
API_SERVICE=10.96.0.1
DNS_SERVICE=10.96.0.10

BIN=$LAB/bin
RUN=$LAB/run/$LAB_NAME
PKI=$RUN/pki
BRIDGE=br-$LAB_NAME
LAB_KUBECONFIG=$RUN/admin.kubeconfig
PAUSE_IMAGE=localhost/lab/pause:1
BASE_IMAGE=localhost/lab/python:3.11

say() { # prints a message behind the seconds since STARTED
  printf '%6.1fs  %s\n' "$(echo "$(date +%s.%N) - ${STARTED:-$(date +%s.%N)}" | bc)" "$*"
}

die() { echo "$*" >&2; exit 1; }

# poll SECONDS CMD...: true as soon as CMD is, false after SECONDS
poll() {
  local end=$(($(date +%s) + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s)" -lt "$end" ] || return 1
    sleep 0.1
  done
}

kubectl_lab() { KUBECONFIG=$LAB_KUBECONFIG "$BIN/kubectl" "$@"; }

# node N CMD...: runs CMD in the network, mount and process namespaces of node N
node() {
  local n=$1
  shift
  nsenter -t "$(cat "$RUN/n$n/init.pid")" -n -m -p -- "$@"
}

# start N NAME CMD...: the same in the background, log in NAME.log. setsid, or the end of the caller's
# process group would end it too.
start() {
  local n=$1 name=$2
  shift 2
  printf '%q ' "$@" > "$RUN/n$n/$name.cmd"
  nohup setsid nsenter -t "$(cat "$RUN/n$n/init.pid")" -n -m -p -- "$@" >> "$RUN/n$n/$name.log" 2>&1 < /dev/null &
}

# Faults: stop N NAME [SIGNAL] ends a daemon of node N (etcd, kube-apiserver, kubelet, containerd, ...),
# again N NAME starts it as before. stop waits until it is gone: its port is in use until then.
# Only the node's own processes are visible to pidof there.
stop() {
  node "$1" sh -c "kill -${3:-TERM} \$(pidof $2)"
  poll 30 node "$1" sh -c "! pidof $2"
}
again() {
  local command
  eval "command=($(cat "$RUN/n$1/$2.cmd"))"
  start "$1" "$2" "${command[@]}"
}

# containerd's own client, on node N
node_ctr() {
  local n=$1
  shift
  ctr -a "$RUN/n$n/run-containerd/containerd.sock" -n k8s.io "$@"
}

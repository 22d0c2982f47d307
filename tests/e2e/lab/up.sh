#!/bin/bash
# up.sh [--nodes N] [--gpus N]            a whole cluster; node-1 also runs the control plane
# up.sh --control-plane-only              etcd, apiserver, controllers and scheduler on 127.0.0.1:$LAB_PORT; no nodes
# up.sh --api-only                        the same without controllers and scheduler
# Prints the admin kubeconfig's path last. Settings: env.sh.
set -euo pipefail
STARTED=$(date +%s.%N)
cd "$(dirname "$0")"
. ./env.sh
. ./pki.sh
. ./node.sh
. ./control-plane.sh

# Daemons must not keep what the caller has open: a lock would be held for as long as the cluster runs.
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-

nodes=1 gpus=0 controllers=1
while [ $# -gt 0 ]; do
  case $1 in
    --nodes) nodes=$2; shift ;;
    --gpus) gpus=$2; shift ;;
    --control-plane-only) nodes=0 ;;
    --api-only) nodes=0 controllers='' ;;
    *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
[ -x "$BIN/kube" ] || die "no binaries: run build.sh"
[ ! -e "$RUN" ] || die "$RUN exists: run down.sh first"
mkdir -p "$RUN"
trap '[ $? = 0 ] || echo "failed: logs under $RUN; run down.sh" >&2' EXIT

if [ "$nodes" = 0 ]; then
  host=127.0.0.1 port=$LAB_PORT etcd_port=$((LAB_PORT + 1))
  launch() {
    local name=$1
    shift
    setsid nohup "$@" >> "$RUN/$name.log" 2>&1 < /dev/null &
    echo $! >> "$RUN/pids"
  }
  controllers_at=(--bind-address 127.0.0.1 --secure-port $((port + 3)))
  scheduler_at=(--bind-address 127.0.0.1 --secure-port $((port + 4)))
else
  host=$LAB_NET.11 port=6443 etcd_port=2379
  launch() { start 1 "$@"; }
  controllers_at=(--bind-address 127.0.0.1)
  scheduler_at=(--bind-address 127.0.0.1)
fi

add_namespaces() {
  local n
  ip link add "$BRIDGE" type bridge
  ip addr add "$LAB_NET.1/24" dev "$BRIDGE"
  ip link set "$BRIDGE" up
  for n in $(seq "$nodes"); do
    node_namespaces "$n" "$nodes"
    node_containerd "$n"
  done
  ip route add "$SERVICE_NET" via "$LAB_NET.11"
  say namespaces
}

add_images() {
  local n
  for n in $(seq "$nodes"); do
    poll 20 node_ctr "$n" version || die "containerd of node-$n does not answer"
    # Of an earlier run only the images are wanted. Its containers went down with it, but containerd
    # keeps their records, and the CRI no longer lists them.
    node_ctr "$n" containers ls -q |
      xargs -r ctr -a "$RUN/n$n/run-containerd/containerd.sock" -n k8s.io containers rm
  done
  ./images.sh sync
  say images
}

# GPUs are an extended resource in the node's status: counted by the scheduler, with no device behind it.
add_gpus() { # NODE
  local resources="{\"nvidia.com/gpu\":\"$gpus\"}"
  kubectl_lab patch node "node-$1" --subresource status --type merge -o name \
    -p "{\"status\":{\"capacity\":$resources,\"allocatable\":$resources}}" >/dev/null
}

node_ready() { kubectl_lab wait --for condition=Ready "node/node-$1" --timeout 5s; }

add_nodes() {
  local n
  for n in $(seq "$nodes"); do
    node_kubelet "$n"
    node_proxy "$n"
  done
  sed "s/DNS_SERVICE/$DNS_SERVICE/; s/DNS_IP/$LAB_NET.11/" dns.yaml | kubectl_lab apply -f - >/dev/null
  kubectl_lab apply -f storage.yaml >/dev/null
  launch_dns
  for n in $(seq "$nodes"); do
    poll 60 node_ready "$n" || die "node-$n is not ready"
    [ "$gpus" = 0 ] || add_gpus "$n"
  done
  say "nodes ready"
  ./volumes.sh
  say volumes
}

make_pki "https://$host:$port" "IP:$host,DNS:localhost" "$nodes"
say certificates
[ "$nodes" = 0 ] || add_namespaces
launch_etcd "$etcd_port"
launch_apiserver "$host" "$port" "$etcd_port"
[ "$nodes" = 0 ] || add_images
poll 60 apiserver_ready "https://$host:$port" || die "the apiserver is not ready"
say apiserver
if [ "$controllers" ]; then
  launch_controllers "${controllers_at[@]}"
  launch_scheduler "${scheduler_at[@]}"
fi
[ "$nodes" = 0 ] || add_nodes
if [ "$controllers" ]; then
  poll 30 kubectl_lab get serviceaccount default -n default || die "no default service account"
  say "default service account"
fi
echo "$LAB_KUBECONFIG"

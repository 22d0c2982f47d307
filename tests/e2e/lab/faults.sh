#!/bin/bash
# faults.sh FAULT...: breaks one thing of a running cluster, and mends it
#
#   control-plane stop|start             apiserver, controllers and scheduler; pods and etcd go on
#   reboot NODE                          kills the node's kubelet, containerd and every container, and starts them again
#   kill-container NODE ID               SIGKILL to the first process of a container, from outside
#   volume NAME SIZE                     a local volume of that size for one claim; called again, it is resized
set -euo pipefail
cd "$(dirname "$0")"
. ./env.sh
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-        # see up.sh

# Controllers and scheduler end with the apiserver, as they do where they elect a leader: they cannot renew
# their lease. Left running, they would judge the node by what they had heard of it before.
CONTROL_PLANE=(kube-apiserver kube-controller-manager kube-scheduler)

control_plane() {
  local daemon
  for daemon in "${CONTROL_PLANE[@]}"; do
    case $1 in
      stop) stop 1 "$daemon" KILL ;;
      start)
        again 1 "$daemon"
        [ "$daemon" != kube-apiserver ] || poll 60 kubectl_lab get --raw /readyz || die "the apiserver is not ready" ;;
      *) die "control-plane stop|start" ;;
    esac
  done
}

# What a reboot takes away: every process of pods, their cgroups, mounts and network namespaces, and what /run held.
# Folders on disk stay, and with them volumes and the images.
reboot() {
  local n=$1
  stop "$n" kubelet KILL
  stop "$n" containerd KILL
  # containers first, by cgroup; then their shims, which would only wait for them
  xargs -r kill -KILL < <(find /sys/fs/cgroup/pids/tidegate-lab/"$LAB_NAME/n$n" -name cgroup.procs -exec cat {} +) \
    2>/dev/null || true
  # shellcheck disable=SC2016   # expands in the node
  node "$n" sh -c 'kill -KILL $(pidof containerd-shim-runc-v2)' 2>/dev/null || true
  poll 20 node "$n" sh -c '! pidof containerd-shim-runc-v2' || die "pods of node-$n do not end"
  # a kubelet that finds cgroups of containers that are no more asks for each of them, for seconds
  find /sys/fs/cgroup/*/tidegate-lab/"$LAB_NAME/n$n"/kubepods -depth -type d -exec rmdir {} + 2>/dev/null || true
  # shellcheck disable=SC2016   # expands in the node
  node "$n" sh -c '
    awk "{print \$2}" /proc/mounts | grep -E "^(/var/lib/kubelet/pods|/run/containerd|/run/netns)/" | tac |
      while read -r place; do umount -l "$place"; done
    rm -rf /run/containerd/* /run/netns/*'
  again "$n" containerd
  poll 30 node_ctr "$n" version || die "containerd of node-$n does not answer"
  again "$n" kubelet
  poll 60 kubelet_serves "$n" || die "the kubelet of node-$n does not stay; see $RUN/n$n/kubelet.log"
}

# A kubelet that comes before the rest of containerd ends; an init system would start it again.
kubelet_serves() {
  poll 2 node "$1" pidof kubelet || again "$1" kubelet
  node "$1" curl -sf -m 1 http://127.0.0.1:10248/healthz
}

kill_container() { # NODE ID
  node_ctr "$1" tasks kill --signal SIGKILL "$2"
}

volume() { # NAME SIZE, such as 300k or 64m
  local folder=$RUN/volumes/$1
  if node 1 mountpoint -q "$folder"; then
    node 1 mount -o "remount,size=$2" "$folder"
    return
  fi
  mkdir -p "$folder"
  node 1 mount -t tmpfs -o "size=$2,mode=0777" "$1" "$folder"
  kubectl_lab apply -f - >/dev/null <<Y
apiVersion: v1
kind: PersistentVolume
metadata: {name: $1}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: small
  local: {path: "$folder"}
  nodeAffinity:
    required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-1]}]}]}
Y
}

fault=${1:-}; shift || true
case $fault in
  control-plane) control_plane "$@" ;;
  reboot) reboot "$@" ;;
  kill-container) kill_container "$@" ;;
  volume) volume "$@" ;;
  *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

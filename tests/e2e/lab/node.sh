# shellcheck shell=bash
# One node: containerd, kubelet and kube-proxy in namespaces of their own; source env.sh first.

# node_namespaces N NODES: first process, mounts, veth to the bridge, routes
node_namespaces() {
  local n=$1 nodes=$2 dir=$RUN/n$1 unshare_pid other
  mkdir -p "$dir"/{kubelet,run-containerd,netns,log-pods,log-containers,cni,etc}
  mkdir -p /var/lib/kubelet /run/{containerd,netns} /var/log/{pods,containers}      # mount points
  # Everything that the node runs dies with this one process, and every mount with it.
  setsid unshare --net --mount --propagation private --pid --fork --kill-child --mount-proc \
    "$BIN/pause" >/dev/null 2>&1 </dev/null &
  unshare_pid=$!
  poll 5 grep -q . "/proc/$unshare_pid/task/$unshare_pid/children" || die "node-$n: no first process"
  tr -d ' ' < "/proc/$unshare_pid/task/$unshare_pid/children" > "$dir/init.pid"
  poll 5 grep -q pause "/proc/$(cat "$dir/init.pid")/comm" || die "node-$n: the first process did not start"

  ip link add "$LAB_NAME-n$n" type veth peer name eth0 netns "$(cat "$dir/init.pid")"
  ip link set "$LAB_NAME-n$n" master "$BRIDGE" up
  # Paths that kubelet, containerd and CNI fix are the node's own folders. The kubelet would also set
  # three kernel-wide values: it finds them set, and the machine keeps its own.
  echo 1 > "$dir/etc/one"
  echo 10 > "$dir/etc/ten"
  # Shared only from here on: on machines where / is shared already, mounts would reach the machine itself.
  node "$n" sh -ec "
    mount --make-rshared /
    mount --bind $dir/kubelet /var/lib/kubelet
    mount --bind $dir/run-containerd /run/containerd
    mount --bind $dir/log-pods /var/log/pods
    mount --bind $dir/log-containers /var/log/containers
    mount --bind $dir/netns /run/netns
    mount --bind $dir/etc/one /proc/sys/vm/overcommit_memory
    mount --bind $dir/etc/ten /proc/sys/kernel/panic
    mount --bind $dir/etc/one /proc/sys/kernel/panic_on_oops
    ip link set lo up
    ip addr add $LAB_NET.1$n/24 dev eth0
    ip link set eth0 up
    sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
    # No default route: traffic to elsewhere fails at once. Services need a route all the same, or node
    # processes get 'unreachable' before address translation sees the packet.
    ip route add $SERVICE_NET dev eth0"
  for other in $(seq "$nodes"); do
    [ "$other" = "$n" ] || node "$n" ip route add "10.244.$other.0/24" via "$LAB_NET.1$other"
  done
  ip route add "10.244.$n.0/24" via "$LAB_NET.1$n"
}

node_containerd() {
  local n=$1 dir=$RUN/n$1
  # restrict_oom_score_adj: without CAP_SYS_RESOURCE no score may be lowered. The disabled plugins would
  # only log that their file systems and collectors aren't there.
  cat > "$dir/etc/containerd.toml" <<T
version = 2
root = "$LAB/containerd-$n"
state = "/run/containerd/state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing",
]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$LAB/containerd-$n/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE_IMAGE"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$dir/cni"
T
  # no ipMasq: pods keep their address towards this machine and other nodes
  cat > "$dir/cni/10-bridge.conflist" <<T
{ "cniVersion": "0.4.0", "name": "lab", "plugins": [
  { "type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "hairpinMode": true,
    "ipam": { "type": "host-local", "ranges": [[{ "subnet": "10.244.$n.0/24" }]], "dataDir": "$dir/cni" } },
  { "type": "portmap", "capabilities": { "portMappings": true }, "snat": true } ] }
T
  start "$n" containerd containerd --config "$dir/etc/containerd.toml"
}

# Kubelets on one kernel need a cgroup root each, or they remove each other's pods. It must exist, and in
# version 1 a child cpuset is born empty.
node_cgroups() {
  local n=$1 hierarchy group part file
  for hierarchy in cpu cpuacct cpuset memory devices freezer blkio pids systemd hugetlb perf_event; do
    group=/sys/fs/cgroup/$hierarchy
    [ -d "$group" ] || continue
    for part in tidegate-lab "$LAB_NAME" "n$n"; do
      mkdir -p "$group/$part"
      if [ "$hierarchy" = cpuset ]; then
        for file in cpuset.cpus cpuset.mems; do cat "$group/$file" > "$group/$part/$file"; done
      fi
      group=$group/$part
    done
  done
}

node_kubelet() {
  local n=$1 dir=$RUN/n$1
  node_cgroups "$n"
  # syncFrequency: mounted ConfigMaps follow within seconds, not a minute. Images are never collected:
  # they can't be pulled again.
  cat > "$dir/etc/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $LAB_NET.1$n
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $PKI/node-$n.crt
tlsPrivateKeyFile: $PKI/node-$n.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /tidegate-lab/$LAB_NAME/n$n
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
clusterDNS: [$DNS_SERVICE]
clusterDomain: cluster.local
resolvConf: ""
syncFrequency: 10s
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
podPidsLimit: 512
volumePluginDir: /var/lib/kubelet/flexvolume
Y
  start "$n" kubelet "$BIN/kubelet" --config "$dir/etc/kubelet.yaml" --kubeconfig "$RUN/node-$n.kubeconfig" \
    --hostname-override "node-$n" --node-ip "$LAB_NET.1$n"
}

node_proxy() {
  local n=$1 dir=$RUN/n$1
  # conntrack all 0: the node must not change the machine's limits
  cat > "$dir/etc/proxy.yaml" <<Y
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: $RUN/proxy.kubeconfig}
hostnameOverride: node-$n
clusterCIDR: $POD_NET
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
nftables: {minSyncPeriod: 100ms}
Y
  start "$n" kube-proxy "$BIN/kube-proxy" --config "$dir/etc/proxy.yaml"
}

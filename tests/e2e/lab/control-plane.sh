# shellcheck shell=bash
# etcd, apiserver, controllers, scheduler and DNS; source env.sh first. `launch NAME CMD...` is the
# caller's: it runs a daemon on node-1, or on this machine where there are no nodes.

launch_etcd() { # CLIENT-PORT
  local client=http://127.0.0.1:$1 peer=http://127.0.0.1:$(($1 + 1))
  # without fsync a killed process loses nothing; a crashed machine might, and here it may
  launch etcd "$BIN/etcd" --data-dir "$RUN/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls "$client" --advertise-client-urls "$client" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer"
}

launch_apiserver() { # HOST PORT ETCD-PORT
  launch kube-apiserver "$BIN/kube-apiserver" --etcd-servers "http://127.0.0.1:$3" \
    --bind-address "$1" --advertise-address "${1/127.0.0.1/$LAB_NET.11}" --secure-port "$2" \
    --service-cluster-ip-range "$SERVICE_NET" --authorization-mode Node,RBAC --allow-privileged \
    --enable-admission-plugins NodeRestriction --client-ca-file "$PKI/ca.crt" \
    --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key" \
    --service-account-issuer https://kubernetes.default.svc.cluster.local \
    --service-account-key-file "$PKI/sa.pub" --service-account-signing-key-file "$PKI/sa.key" \
    --kubelet-certificate-authority "$PKI/ca.crt" --kubelet-client-certificate "$PKI/kubelet-client.crt" \
    --kubelet-client-key "$PKI/kubelet-client.key" --kubelet-preferred-address-types InternalIP \
    --requestheader-client-ca-file "$PKI/front-proxy-ca.crt" --requestheader-allowed-names front-proxy-client \
    --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
    --requestheader-extra-headers-prefix X-Remote-Extra- \
    --proxy-client-cert-file "$PKI/front-proxy.crt" --proxy-client-key-file "$PKI/front-proxy.key"
}

apiserver_ready() { # URL
  curl -sf --max-time 2 --cacert "$PKI/ca.crt" --cert "$PKI/admin.crt" --key "$PKI/admin.key" "$1/readyz"
}

launch_controllers() { # FLAG...
  local config=$RUN/controller-manager.kubeconfig
  # at its default 20 requests a second the one account per controller takes 6 s to start, so 0.9 s
  launch kube-controller-manager "$BIN/kube-controller-manager" --kubeconfig "$config" \
    --authentication-kubeconfig "$config" --authorization-kubeconfig "$config" \
    --leader-elect=false --use-service-account-credentials --kube-api-qps 200 --kube-api-burst 400 \
    --flex-volume-plugin-dir "$RUN/flexvolume" --root-ca-file "$PKI/ca.crt" \
    --service-account-private-key-file "$PKI/sa.key" --cluster-signing-cert-file "$PKI/ca.crt" \
    --cluster-signing-key-file "$PKI/ca.key" --requestheader-client-ca-file "$PKI/front-proxy-ca.crt" "$@"
}

launch_scheduler() { # FLAG...
  local config=$RUN/scheduler.kubeconfig
  launch kube-scheduler "$BIN/kube-scheduler" --kubeconfig "$config" \
    --authentication-kubeconfig "$config" --authorization-kubeconfig "$config" --leader-elect=false "$@"
}

launch_dns() {
  # Plugins run in their compiled order, where `template` comes first: a catch-all needs a block of its own.
  cat > "$RUN/Corefile" <<C
cluster.local:53 in-addr.arpa:53 {
  bind $LAB_NET.11
  errors
  health 127.0.0.1:8080
  kubernetes {
    kubeconfig $RUN/dns.kubeconfig $LAB_NAME
    ttl 5
    fallthrough in-addr.arpa
  }
}
host.lab:53 {
  bind $LAB_NET.11
  hosts {
    $LAB_NET.1 host.lab
  }
}
.:53 {
  bind $LAB_NET.11
  template ANY ANY {
    rcode NXDOMAIN
  }
}
C
  launch coredns "$BIN/coredns" -conf "$RUN/Corefile"
}

# shellcheck shell=bash
# Certificates and kubeconfigs of one cluster, anew at every start; source env.sh first.

EC_KEY=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)

authority() { # NAME COMMON-NAME
  openssl req -x509 "${EC_KEY[@]}" -days 3650 -subj "/CN=$2" -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout "$PKI/$1.key" -out "$PKI/$1.crt" 2>/dev/null
}

certificate() { # AUTHORITY NAME SUBJECT [SUBJECT-ALTERNATIVE-NAMES, which make it a server's]
  local names=${4:-} extensions=extendedKeyUsage=clientAuth
  [ -z "$names" ] || extensions=$'extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName='$names
  openssl req "${EC_KEY[@]}" -subj "$3" -keyout "$PKI/$2.key" -out "$PKI/$2.csr" 2>/dev/null
  openssl x509 -req -in "$PKI/$2.csr" -CA "$PKI/$1.crt" -CAkey "$PKI/$1.key" -days 365 -out "$PKI/$2.crt" \
    -set_serial "0x$(openssl rand -hex 8)" -extfile <(echo "$extensions") 2>/dev/null
}

write_kubeconfig() { # NAME SERVER: from NAME's certificate to NAME.kubeconfig
  (umask 077; cat > "$RUN/$1.kubeconfig") <<Y
apiVersion: v1
kind: Config
clusters: [{name: $LAB_NAME, cluster: {server: "$2", certificate-authority-data: $(base64 -w0 < "$PKI/ca.crt")}}]
users: [{name: $1, user: {client-certificate-data: $(base64 -w0 < "$PKI/$1.crt"), client-key-data: $(base64 -w0 < "$PKI/$1.key")}}]
contexts: [{name: $LAB_NAME, context: {cluster: $LAB_NAME, user: $1}}]
current-context: $LAB_NAME
Y
}

make_pki() { # SERVER-URL SUBJECT-ALTERNATIVE-NAMES NODES
  local api_names="$2,IP:$API_SERVICE,DNS:kubernetes" name pids=() pid
  api_names+=",DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
  mkdir -p "$PKI"
  chmod 700 "$PKI"
  authority ca lab-ca
  authority front-proxy-ca lab-front-proxy-ca
  openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/sa.key" 2>/dev/null
  openssl ec -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub" 2>/dev/null

  certificate ca apiserver /CN=kube-apiserver "$api_names" & pids+=($!)
  certificate ca kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client & pids+=($!)
  certificate front-proxy-ca front-proxy /CN=front-proxy-client & pids+=($!)
  certificate ca admin /O=system:masters/CN=admin & pids+=($!)
  certificate ca controller-manager /CN=system:kube-controller-manager & pids+=($!)
  certificate ca scheduler /CN=system:kube-scheduler & pids+=($!)
  certificate ca proxy /CN=system:kube-proxy & pids+=($!)
  certificate ca dns /CN=coredns & pids+=($!)
  for n in $(seq "$3"); do
    certificate ca "node-$n" "/O=system:nodes/CN=system:node:node-$n" "DNS:node-$n,IP:$LAB_NET.1$n" & pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done        # one by one: a bare `wait` would hide a failure

  for name in admin controller-manager scheduler proxy dns; do write_kubeconfig "$name" "$1"; done
  for n in $(seq "$3"); do write_kubeconfig "node-$n" "$1"; done
}

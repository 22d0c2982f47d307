#!/bin/bash
# images.sh base                             builds pause and the Python base image, where missing
# images.sh build CONTEXT NAME [DOCKERFILE]  builds an image FROM the base image, with no network
# images.sh has NAME                         true when that image was built
# images.sh load NAME...                     puts images into the running nodes
# images.sh remove-others NAME               forgets NAME's other tags; running nodes keep theirs until they end
# images.sh sync                             what up.sh does: nodes get every image, and lose removed ones
set -euo pipefail
cd "$(dirname "$0")"
. ./env.sh
ARCHIVES=$LAB/images

# runc, never crun: crun refuses a machine with mixed cgroup versions
lab_buildah() { buildah --root "$LAB/buildah" --runroot /run/tidegate-lab-buildah --storage-driver overlay "$@"; }

archive() { echo "$ARCHIVES/$(echo "$1" | tr '/:' '__').tar"; }

# Written beside and moved: an archive that is there is whole. docker-archive is the transport that doesn't
# compress, which would take longer than everything else in a rebuild.
export_archive() { # NAME
  local to
  to=$(archive "$1")
  rm -f "$to.part"
  lab_buildah push -q "$1" "docker-archive:$to.part:$1"
  mv "$to.part" "$to"
}

pause_image() {
  local dir
  dir=$(mktemp -d)
  gcc -Os -static -s -o "$dir/pause" pause.c
  install "$dir/pause" "$BIN/pause"                 # also the first process of each node
  printf 'FROM scratch\nCOPY pause /pause\nUSER 65535:65535\nENTRYPOINT ["/pause"]\n' > "$dir/Dockerfile"
  lab_buildah bud -q --isolation chroot --format oci -t "$PAUSE_IMAGE" "$dir" >/dev/null
  export_archive "$PAUSE_IMAGE"
  rm -r "$dir"
}

python_image() {
  local root=$LAB/rootfs container
  rm -rf "$root"
  debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates,curl bookworm "$root" > "$LAB/debootstrap.log" 2>&1
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/*.log
  rm -rf "$root"/usr/share/{doc,man,locale}/*
  container=$(lab_buildah from scratch)
  lab_buildah add -q "$container" "$root" / >/dev/null
  lab_buildah config --env LANG=C.UTF-8 --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    --cmd python3 "$container"
  lab_buildah commit -q --rm "$container" "$BASE_IMAGE" >/dev/null
  export_archive "$BASE_IMAGE"
  rm -rf "$root"
}

build() { # CONTEXT NAME [DOCKERFILE]
  lab_buildah bud -q --layers --force-rm --isolation oci --runtime runc --network none --format oci --pull-never \
    --build-arg BASE_IMAGE="$BASE_IMAGE" -t "$2" -f "${3:-$1/Dockerfile}" "$1" >/dev/null
  export_archive "$2"
}

nodes() { find "$RUN" -maxdepth 1 -name 'n[0-9]*' -printf '%f\n' 2>/dev/null | tr -d n; }

# Marks beside the node's images say which archives it has; they go when those go.
import_archive() { # NODE ARCHIVE
  local mark
  mark=$LAB/containerd-$1/archives/$(basename "$2")
  [ ! "$mark" -nt "$2" ] || return 0
  node_ctr "$1" images import "$2" >/dev/null
  mkdir -p "${mark%/*}"
  touch "$mark"
}

load() { # NAME...
  local n name
  for n in $(nodes); do
    for name in "$@"; do import_archive "$n" "$(archive "$name")"; done
  done
}

# Tags of a development image follow its sources, so each change leaves one behind.
remove_others() { # NAME
  local other
  lab_buildah images --filter "reference=${1%:*}" --format '{{.Name}}:{{.Tag}}' | while read -r other; do
    [ "$other" != "$1" ] || continue
    rm -f "$(archive "$other")"
    lab_buildah rmi "$other" >/dev/null
  done
}

sync_nodes() {
  local n name file
  for n in $(nodes); do
    for file in "$ARCHIVES"/*.tar; do import_archive "$n" "$file"; done
    for name in $(node_ctr "$n" images ls -q); do
      # by digest are the CRI's own aliases; they go when the kubelet looks the next time
      [[ $name == sha256:* ]] || [ -e "$(archive "$name")" ] || node_ctr "$n" images rm "$name" >/dev/null
    done
  done
}

mkdir -p "$ARCHIVES" "$BIN"
command=${1:-}
shift || true
case $command in
  base)
    [ -e "$(archive "$PAUSE_IMAGE")" ] || pause_image
    [ -e "$(archive "$BASE_IMAGE")" ] || python_image ;;
  build) build "$@" ;;
  has) [ -e "$(archive "$1")" ] ;;
  load) load "$@" ;;
  remove-others) remove_others "$1" ;;
  sync) sync_nodes ;;
  *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

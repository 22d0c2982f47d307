#!/bin/bash
# The images of the three planes. A tag is a hash of what goes into that image, so one that is there is right.
#
#   images.sh build        gathers wheels and builds what is missing; prints PLANE=NAME lines
#   images.sh load         the same, then makes them known to the current cluster
#   images.sh names        only prints the lines
#
# Built by docker for the providers given and kind, by the lab's buildah for the lab (cluster.sh).
#   TIDEGATE_IMAGE_PREFIX  localhost/tidegate; a registry's for a cluster that pulls
#   TIDEGATE_BASE_IMAGE    of docker builds: any image with Python 3.11 and venv
#   PYTHON                 the Python 3.11 that gathers wheels; of the images' platform
set -euo pipefail
cd "$(dirname "$0")/../.."
ROOT=$PWD
PLANES=(operator sidecar runtime)
PREFIX=${TIDEGATE_IMAGE_PREFIX:-localhost/tidegate}
DOCKER_BASE=${TIDEGATE_BASE_IMAGE:-python:3.11-slim-bookworm}
PYTHON=${PYTHON:-.venv/bin/python}
CONTEXTS=$ROOT/.state/images

die() { echo "$*" >&2; exit 1; }

tag() { # PLANE
  local version
  version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
  find pyproject.toml crds/src "$1" -type f ! -path '*/__pycache__/*' -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | sed "s/^\(.\{12\}\).*/$version-dev.\1/"
}

name() { echo "$PREFIX/$1:${TAGS[$1]}"; } # PLANE

# Everything that a build needs, so that it needs no network: the dependencies' wheels, gathered anew when
# their list changes, and the project's own.
gather() { # PLANE
  local context=$CONTEXTS/$1
  if ! cmp -s "$1/requirements.txt" "$context/requirements.txt"; then
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || die "$PYTHON is not Python 3.11: set PYTHON"
    rm -rf "$context"
    mkdir -p "$context/app"
    "$PYTHON" -m pip wheel -q --no-deps -w "$context/wheels" -r "$1/requirements.txt"
    cp "$1/requirements.txt" "$context/"           # last: it says that the gathering was complete
  fi
  cp tests/e2e/check_plane.py "$context/"
  cp "$CONTEXTS"/tidegate-*.whl "$context/app/"
}

project_wheel() {
  mkdir -p "$CONTEXTS"
  rm -f "$CONTEXTS"/tidegate-*.whl
  "$PYTHON" -m pip wheel -q --no-deps -w "$CONTEXTS" .
}

present() { # PLANE
  case $BUILDER in
    docker) docker image inspect "$(name "$1")" >/dev/null 2>&1 ;;
    lab) tests/e2e/lab/images.sh has "$(name "$1")" ;;
  esac
}

build_image() { # PLANE
  case $BUILDER in
    docker)
      docker build -q --network none --build-arg BASE_IMAGE="$DOCKER_BASE" -t "$(name "$1")" -f "$1/Dockerfile" "$CONTEXTS/$1" >/dev/null ;;
    lab) tests/e2e/lab/images.sh build "$CONTEXTS/$1" "$(name "$1")" "$ROOT/$1/Dockerfile" ;;
  esac
}

build() {
  local plane missing=()
  for plane in "${PLANES[@]}"; do present "$plane" || missing+=("$plane"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  project_wheel
  for plane in "${missing[@]}"; do
    gather "$plane"
    build_image "$plane"
    [ "$BUILDER" != lab ] || tests/e2e/lab/images.sh remove-others "$(name "$plane")"
  done
}

load() {
  local plane images=()
  for plane in "${PLANES[@]}"; do images+=("$(name "$plane")"); done
  tests/e2e/cluster.sh load "${images[@]}" >&2
}

names() {
  local plane
  for plane in "${PLANES[@]}"; do echo "$plane=$(name "$plane")"; done
}

# taken once: sources that change while this runs belong to the next run
declare -A TAGS
for plane in "${PLANES[@]}"; do TAGS[$plane]=$(tag "$plane"); done
case $(tests/e2e/cluster.sh provider) in
  lab) BUILDER=lab ;;
  *) BUILDER=docker ;;
esac
mkdir -p .state
case ${1:-} in
  # one at a time: two builds would gather into the same folders
  build | load)
    exec 9> .state/images.lock
    flock 9
    build
    [ "$1" = build ] || load
    names ;;
  names) names ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

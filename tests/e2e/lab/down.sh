#!/bin/bash
# down.sh: ends what up.sh started under LAB_NAME, and nothing else; safe to call twice, and after a crash
set -uo pipefail                  # not -e: what is already gone must not keep the rest
cd "$(dirname "$0")" || exit
. ./env.sh
[ -d "$RUN" ] || exit 0

# shellcheck disable=SC2317   # called through poll
gone() { ! kill -0 "$1" 2>/dev/null; }

# A recorded id may belong to another program by now, so the program it runs is looked at first.
ours() { [[ $(readlink "/proc/$1/exe") == "$(readlink -f "$BIN")"/* ]]; }

# without nodes: daemons by their recorded ids, the last one first
if [ -e "$RUN/pids" ]; then
  for pid in $(tac "$RUN/pids"); do ! ours "$pid" || kill "$pid"; done
  for pid in $(tac "$RUN/pids"); do
    poll 5 gone "$pid" || ! ours "$pid" || kill -9 "$pid"
  done
fi

# nodes: the kernel ends every process of the namespaces, and every mount, when the first process ends
had_nodes=''
for dir in "$RUN"/n[0-9]*; do
  [ -e "$dir/init.pid" ] || continue
  had_nodes=1
  n=${dir##*/n} pid=$(cat "$dir/init.pid")
  if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = pause ]; then
    kill "$pid"
    poll 5 test ! -d "/proc/$pid"
  fi
  ip link del "$LAB_NAME-n$n" 2>/dev/null
  for group in /sys/fs/cgroup/*/tidegate-lab/"$LAB_NAME/n$n"; do
    [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
  done
done

ip link del "$BRIDGE" 2>/dev/null       # and with it the routes to pods and Services

# Mount points that every cluster with nodes uses. There is one at a time, and ending a control plane beside it
# must leave them: removing a folder that is a mount point in another namespace takes the mount away there.
if [ "$had_nodes" ]; then
  rmdir /sys/fs/cgroup/*/tidegate-lab/"$LAB_NAME" /sys/fs/cgroup/*/tidegate-lab \
    /var/lib/kubelet /run/containerd /run/netns /var/log/pods /var/log/containers 2>/dev/null
fi
rm -rf "$RUN"
rmdir "$LAB/run" 2>/dev/null
exit 0

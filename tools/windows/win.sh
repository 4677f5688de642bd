#!/bin/bash
# Runs a Windows program: win PROGRAM ARGS. PML_CHECKOUT is mounted as Z:\pml. All mounts are in a
# namespace of this run and end with it.
root="$(dirname "$(readlink -f "$0")")/root"
export root
exec unshare --mount bash -c '
  mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev" || exit
  if [ -n "${PML_CHECKOUT:-}" ]; then
    mkdir -p "$root/pml" && mount --bind "$PML_CHECKOUT" "$root/pml" || exit
  fi
  exec chroot "$root" /usr/local/bin/win "$@"' win "$@"

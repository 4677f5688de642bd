#!/bin/bash
# Runs a Windows program under Wine, inside the chroot: inside.sh PROGRAM ARGS. WIN_CWD is its folder.
export WINEPREFIX=/opt/prefix WINEARCH=win64 WINEDEBUG="${WINEDEBUG:--all}" XDG_RUNTIME_DIR=/tmp
export WINEPATH='Z:\opt\win' DENO_DIR='C:\denodir' DENO_NO_UPDATE_CHECK=1 NO_COLOR=1
export DENO_CERT='Z:\etc\ssl\certs\ca-host.crt' NODE_EXTRA_CA_CERTS='Z:\etc\ssl\certs\ca-host.crt'
cd "${WIN_CWD:-/opt/prefix/drive_c}" 2>/dev/null || cd / # before the first program there is no C:
program="$1"
shift
[ -f "/opt/win/$program" ] && program="/opt/win/$program"
exec /usr/lib/wine/wine64 "$program" "$@"

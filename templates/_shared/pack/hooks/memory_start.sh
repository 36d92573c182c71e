#!/bin/sh
# A session begins: the index follows the files, and what is worth knowing goes to standard output.
# Whatever is missing, the session goes on.
here=${0%/*}
program=animaworks
[ -r "$here/../local.conf" ] && . "$here/../local.conf"
command -v "$program" >/dev/null 2>&1 || exit 0
"$program" pack context "$@" 2>>"$here/../hook.log" </dev/null || true
exit 0

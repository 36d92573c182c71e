#!/bin/sh
# The agent has stopped: the work at hand is kept small, and the index follows. Says nothing, and takes milliseconds.
here=${0%/*}
program=animaworks
[ -r "$here/../local.conf" ] && . "$here/../local.conf"
command -v "$program" >/dev/null 2>&1 || exit 0
"$program" pack rotate >/dev/null 2>>"$here/../hook.log" </dev/null || true
exit 0

#!/bin/sh
# The agent has stopped: a process of its own keeps the work at hand small and brings the index up to date.
# This script only starts it, so nobody waits; what it does not get to is done when the next session begins.
here=${0%/*}
program=animaworks
[ -r "$here/../local.conf" ] && . "$here/../local.conf"
command -v "$program" >/dev/null 2>&1 || exit 0
"$program" pack rotate --detach >/dev/null 2>>"$here/../hook.log" </dev/null || true
exit 0

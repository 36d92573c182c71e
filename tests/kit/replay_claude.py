#!/usr/bin/env python3
"""Plays a recorded conversation over Claude Code's control channel: says what the program said and waits where it
waited for an answer. Each answer it gets is written to the file named by the second argument."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as script, open(sys.argv[2], "w", encoding="utf-8") as heard:
    for line in script:
        entry = json.loads(line)
        if entry["dir"] == "cli->host":
            print(json.dumps(entry["msg"]), flush=True)
            continue
        answer = sys.stdin.readline()
        if not answer:
            sys.exit("the host hung up")
        heard.write(answer)
        heard.flush()

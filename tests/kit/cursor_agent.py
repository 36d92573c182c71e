#!/usr/bin/env python3
"""Plays Cursor Agent: its documented arguments and stream, and a real MCP client for the servers of its workspace.

What it is asked decides what it does: a line `call NAME JSON` calls a tool of ours, a line `wait` says the
beginning of an answer and then nothing more; everything else is repeated in the answer.
"""

import json
import os
import subprocess
import sys
import time
import uuid


def say(**event):
    print(json.dumps(event, ensure_ascii=False), flush=True)


def option(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


class Server:
    """A server of `.cursor/mcp.json`, spoken to in lines."""

    def __init__(self, workspace):
        with open(os.path.join(workspace, ".cursor", "mcp.json"), encoding="utf-8") as file:
            server = json.load(file)["mcpServers"]["aw"]
        self.child = subprocess.Popen(
            [server["command"], *server["args"]],
            env={**os.environ, **server.get("env", {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.number = 0
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "cursor"}})
        self.tell({"method": "notifications/initialized"})
        self.tools = [tool["name"] for tool in self.ask("tools/list", {})["tools"]]

    def tell(self, message):
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.child.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.tell({"id": self.number, "method": method, "params": params})
        while True:
            answer = json.loads(self.child.stdout.readline())
            if answer.get("id") == self.number:
                return answer["result"]


def main():
    wanted = ["-p", "--force", "--trust", "--approve-mcps", "--stream-partial-output"]
    missing = [flag for flag in wanted if flag not in sys.argv]
    if missing or option("--output-format") != "stream-json":
        sys.exit(f"not called as documented: {missing}")
    prompt, session = sys.stdin.read(), option("--resume") or str(uuid.uuid4())
    model, workspace = option("--model"), option("--workspace")
    say(type="system", subtype="init", apiKeySource="env", cwd=os.getcwd(), session_id=session, model=model, permissionMode="default")
    say(type="user", message={"role": "user", "content": [{"type": "text", "text": prompt}]}, session_id=session)
    server = Server(workspace)
    words = prompt.rsplit("</system_context>", 1)[-1].strip().splitlines()
    answer = ["resumed:" if option("--resume") else "fresh:"]
    for number, line in enumerate(words):
        kind, _, rest = line.partition(" ")
        if kind == "call":
            name, _, args = rest.partition(" ")
            call, body = f"call_{number}", {"args": {"toolName": name, "args": json.loads(args)}}
            say(type="tool_call", subtype="started", call_id=call, tool_call={"mcpToolCall": body}, session_id=session)
            result = server.ask("tools/call", {"name": name, "arguments": json.loads(args)})
            outcome = "error" if result.get("isError") else "success"
            body["result"] = {outcome: {"content": result["content"]}}
            say(type="tool_call", subtype="completed", call_id=call, tool_call={"mcpToolCall": body}, session_id=session)
            answer.append(result["content"][0]["text"])
        elif kind == "wait":
            content = {"role": "assistant", "content": [{"type": "text", "text": "I am thinking,"}]}
            say(type="assistant", message=content, session_id=session, timestamp_ms=1)
            time.sleep(3600)
        else:
            answer.append(line)
    text = " ".join(answer)
    for piece in [text[at : at + 12] for at in range(0, len(text), 12)]:
        content = {"role": "assistant", "content": [{"type": "text", "text": piece}]}
        say(type="assistant", message=content, session_id=session, timestamp_ms=1)
    say(type="assistant", message={"role": "assistant", "content": [{"type": "text", "text": text}]}, session_id=session)
    say(type="result", subtype="success", duration_ms=1, is_error=False, result=text, session_id=session)
    server.child.stdin.close()
    server.child.wait(5)


main()

"""An OpenAI-compatible chat server with tool calls for the real GenericAgent: what it says depends on what it is asked.

A script is a function: Asked -> Text, Call, Fail or a list of Text and Call. It speaks the stream of chat completions
and the whole reply alike. What was asked is in `asked`.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Text:
    """after: seconds of silence before it, in which GA's output.txt stands still."""

    text: str
    after: float = 0.0


@dataclass(frozen=True)
class Call:
    name: str
    arguments: dict[str, Any]
    before: str = ""  # said in front of the call


@dataclass(frozen=True)
class Fail:
    status: int
    message: str


Item = Text | Call | Fail


@dataclass(frozen=True)
class Asked:
    """prompt: what GA's task said (input.txt or a --func file). turn: from 1. reply: the newest reply.txt, if any."""

    messages: list[dict[str, Any]]
    prompt: str
    turn: int
    node: Path | None
    context: dict[str, Any] = field(default_factory=dict)
    last: str = ""


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def read(messages: list[dict[str, Any]]) -> Asked:
    users = [text_of(m) for m in messages if m.get("role") == "user"]
    prompt = users[0] if users else ""
    if saved := re.search(r"Long user prompt saved to (\S+)\. Read and execute", prompt):
        prompt = Path(saved[1]).read_text(encoding="utf-8")
    node, context = None, {}
    if found := re.search(r"(/\S+?)/context\.json", prompt):
        node = Path(found[1])
        context = json.loads((node / "context.json").read_text(encoding="utf-8"))
    turn = 1 + sum(m.get("role") == "assistant" for m in messages)
    return Asked(messages, prompt, turn, node, context, users[-1] if users else "")


class ScriptedLLM:
    def __init__(self, script: Callable[[Asked], Item]) -> None:
        self.asked: list[Asked] = []
        self.errors: list[str] = []
        self.script = script
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ScriptedLLM:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(model: ScriptedLLM) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                asked = read(body["messages"])
                model.asked.append(asked)
                item = model.script(asked)
            except Exception as error:  # noqa: BLE001 - the test must see what is wrong with its script
                model.errors.append(repr(error))
                item = Fail(400, repr(error))
            if isinstance(item, Fail):
                data = json.dumps({"error": {"message": item.message, "code": item.status}}).encode()
                self.send_response(item.status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(data)
                return
            if isinstance(item, Text) and item.after:
                model.closing.wait(item.after)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._say(item, body)

        def _say(self, item: Text | Call, body: dict[str, Any]) -> None:
            text = item.text if isinstance(item, Text) else item.before
            calls = []
            if isinstance(item, Call):
                function = {"name": item.name, "arguments": json.dumps(item.arguments, ensure_ascii=False)}
                calls = [{"index": 0, "id": f"call_{time.time_ns()}", "type": "function", "function": function}]
            finish = "tool_calls" if calls else "stop"
            usage = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}
            head = {"id": "x", "created": int(time.time()), "model": body.get("model", "")}
            self.send_response(200)
            if not body.get("stream"):
                message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
                choices = [{"index": 0, "message": message, "finish_reason": finish}]
                reply = {**head, "object": "chat.completion", "choices": choices, "usage": usage}
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(reply).encode())
                return
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
            deltas += [{"content": text[at : at + 40]} for at in range(0, len(text), 40)]
            deltas += [{"tool_calls": calls}] if calls else []
            for delta in deltas:
                self._event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            self._event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
            self._event({**head, "choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def _event(self, data: dict[str, Any]) -> None:
            self.wfile.write(f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode())
            self.wfile.flush()

    return Handler

"""A chat server on the loopback that says what a test tells it to, in the words and bytes of real servers.

    with ScriptedModel(["first reply", Fail(429, retry_after=7), "second reply"]) as model:
        Chat(model.base_url, model.name, model.key)         # or a subprocess with the variables of model.environment()

The script is a list, one item a request, or a function: body of the request -> item. An item is a text, a Say, a Fail
or a Raw. What was asked is in model.requests. Without using up an item the server refuses what real ones refuse: a
wrong path, key or model, malformed messages, more tokens than n_ctx, a response_format it does not know.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

ROLES = {"system", "developer", "user", "assistant", "tool"}
PAGE = "<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body>It works!</body></html>\n"


@dataclass(frozen=True)
class Say:
    """A reply. think: put in front as a <think> block; reasoning: in its own field, as servers with a parser do."""

    text: str
    think: str = ""
    reasoning: str = ""
    finish: str = "stop"
    piece: int = 7  # characters an event of a stream
    usage: bool = True
    stop_after: int | None = None  # events after which the connection is closed in the middle of the stream
    done: bool = True  # data: [DONE] at the end
    linger: bool = False  # the connection stays open after it
    error: Mapping[str, Any] | None = None  # sent as the last event of a stream, instead of the end
    newline: str = "\n"
    comment: str = ""  # ": …" lines between events
    ascii: bool = False  # non-ASCII characters escaped, those beyond the BMP as two halves in two events


@dataclass(frozen=True)
class Fail:
    """An HTTP error, worded as llama.cpp does unless `body` says otherwise."""

    status: int
    body: Any = None
    retry_after: float | str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Bytes as they are. length: as Content-Length promises, if not the true one. hang: then silence, until the end."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200
    length: int | None = None
    hang: bool = False


HANG = Raw(b"", hang=True, status=0)  # takes the request and never answers
HTML = Raw(PAGE.encode(), "text/html; charset=utf-8")
Item = str | Say | Fail | Raw
Script = Sequence[Item] | Callable[[dict[str, Any]], Item]


def overflow(prompt: int, limit: int) -> dict[str, Any]:
    """llama.cpp's answer to a prompt that is too long."""
    message = f"request ({prompt} tokens) exceeds the available context size ({limit} tokens), try increasing it"
    error = {"code": 400, "message": message, "type": "exceed_context_size_error"}
    return {"error": {**error, "n_prompt_tokens": prompt, "n_ctx": limit}}


def openai_error(message: str, code: str | None, param: str | None = None, kind: str = "invalid_request_error") -> Any:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def vllm_error(message: str, code: int = 400, kind: str = "BadRequestError") -> Any:
    """vLLM's older form, without the object around it."""
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def count(text: str) -> int:
    """Tokens of a text, to this server: its words, and one for each CJK character."""
    return len(text.split()) + sum(c >= "\u2e80" for c in text)


@dataclass(frozen=True)
class Asked:
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, str]]:
        return list(self.body["messages"])


class ScriptedModel:
    """Serves from `with` to its end, several requests at once; an exhausted list is a 500 that a test notices."""

    def __init__(
        self,
        script: Script,
        *,
        key: str = "sk-scripted-0123456789",
        name: str = "scripted",
        n_ctx: int | None = None,
        formats: frozenset[str] = frozenset({"json_schema", "json_object", "text"}),
    ) -> None:
        self.name, self.key, self.n_ctx, self.formats = name, key, n_ctx, formats
        self.requests: list[Asked] = []
        self._script, self._used = script, 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = False  # waited for at the end, so that none outlives its test
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def environment(self) -> dict[str, str]:
        """The variables with which a runner or subagent uses this model."""
        return {"DR_BASE_URL": self.base_url, "DR_MODEL": self.name, "DR_API_KEY": self.key, "DR_MIND": "model"}

    def __enter__(self) -> ScriptedModel:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def next(self, asked: Asked) -> Item:
        refusal = self._refused(asked)
        with self._lock:
            self.requests.append(asked)
            number = self._used
            self._used += refusal is None
        if refusal is not None:
            return refusal
        if callable(self._script):
            return self._script(asked.body)
        if number < len(self._script):
            return self._script[number]
        return Fail(500, openai_error(f"the script has {len(self._script)} replies, this is number {number + 1}", None))

    def hold(self) -> None:
        self._closing.wait(60)

    def _refused(self, asked: Asked) -> Fail | None:
        body = asked.body
        if self.key and asked.headers.get("authorization") != f"Bearer {self.key}":
            return Fail(401, {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}})
        if asked.path.partition("?")[0] != "/v1/chat/completions":
            return Fail(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}})
        if body.get("model") != self.name:
            said = f"The model `{body.get('model')}` does not exist or you do not have access to it."
            return Fail(404, openai_error(said, "model_not_found"))
        messages = body.get("messages")
        well_formed = isinstance(messages, list) and messages
        for message in messages if well_formed else []:
            well_formed = well_formed and message.get("role") in ROLES and isinstance(message.get("content"), str)
        if not well_formed:
            return Fail(400, openai_error("'messages' must be a list of role and content", None, "messages"))
        tokens = self.prompt_tokens(body)
        if self.n_ctx is not None and tokens >= self.n_ctx:
            return Fail(400, overflow(tokens, self.n_ctx))
        wanted = body.get("response_format", {"type": "text"})["type"]
        if wanted not in self.formats:
            return Fail(400, openai_error(f"This response_format type is unavailable now: {wanted}", None))
        return None

    @staticmethod
    def prompt_tokens(body: Mapping[str, Any]) -> int:
        return sum(count(m["content"]) + 4 for m in body["messages"])


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def end_headers(self) -> None:
            self.send_header("Connection", "close")  # no idle connection keeps the server from ending
            super().end_headers()

        def do_GET(self) -> None:
            if self.path == "/v1/models":
                listed = {"id": model.name, "object": "model", "created": 1700000000, "owned_by": "tests"}
                self._json(200, {"object": "list", "data": [listed]})
            else:
                self._json(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}})

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = json.loads(data)
            item = model.next(Asked(self.path, headers, body))
            try:
                self._answer(Say(item) if isinstance(item, str) else item, body)
            except (BrokenPipeError, ConnectionResetError):  # the client went away, as its test wants
                self.close_connection = True

        def _answer(self, item: Say | Fail | Raw, body: dict[str, Any]) -> None:
            if isinstance(item, Raw):
                self._raw(item)
            elif isinstance(item, Fail):
                error = {"code": item.status, "message": "it went wrong", "type": "server_error"}
                headers = dict(item.headers)
                if item.retry_after is not None:
                    headers["Retry-After"] = str(item.retry_after)
                self._json(item.status, {"error": error} if item.body is None else item.body, headers)
            elif body.get("stream"):
                self._stream(item, body)
            else:
                self._whole(item, body)

        def _raw(self, item: Raw) -> None:
            self.close_connection = True
            if item.status:
                self.send_response(item.status)
                self.send_header("Content-Type", item.content_type)
                if item.length is not None:
                    self.send_header("Content-Length", str(item.length))
                self.end_headers()
                self.wfile.write(item.body)
                self.wfile.flush()
            if item.hang:
                model.hold()

        def _json(self, status: int, data: Any, headers: Mapping[str, str] | None = None) -> None:
            encoded = data.encode() if isinstance(data, str) else json.dumps(data, ensure_ascii=False).encode()
            self.send_response(status)
            kind = "text/html" if isinstance(data, str) else "application/json; charset=utf-8"
            for name, value in {"Content-Type": kind, "Content-Length": str(len(encoded)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(encoded)

        def _whole(self, item: Say, body: dict[str, Any]) -> None:
            text, finish = _cut(item, body)
            message: dict[str, Any] = {"role": "assistant", "content": text}
            if item.reasoning:
                message["reasoning_content"] = item.reasoning
            choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
            reply = {**_head("chat.completion", model.name), "choices": [choice]}
            if item.usage:
                reply["usage"] = _usage(body, text)
            self._json(200, reply)

        def _stream(self, item: Say, body: dict[str, Any]) -> None:
            text, finish = _cut(item, body)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for number, event in enumerate(_events(item, text, finish, body, model.name)):
                if number == item.stop_after:
                    self.close_connection = True  # no last chunk: the connection breaks in the middle
                    return
                self._chunk((f"{item.comment}{item.newline}" if item.comment else "") + event)
            if item.linger:
                model.hold()
            self.wfile.write(b"0\r\n\r\n")

        def _chunk(self, text: str) -> None:
            data = text.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

    return Handler


def _events(item: Say, text: str, finish: str, body: Mapping[str, Any], name: str) -> list[str]:
    head = _head("chat.completion.chunk", name)

    def event(data: Any) -> str:
        encoded = json.dumps(data, ensure_ascii=item.ascii)
        return f"data: {encoded}{item.newline * 2}"

    def choice(delta: Mapping[str, Any], reason: str | None = None) -> str:
        return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    found = [choice({"role": "assistant", "content": None})]
    if item.reasoning:
        found.append(choice({"reasoning_content": item.reasoning}))
    units = _halves(text) if item.ascii else [text[at : at + item.piece] for at in range(0, len(text), item.piece)]
    found += [choice({"content": piece}) for piece in units]
    if item.error is not None:
        return [*found, event(item.error)]
    found.append(choice({}, finish))
    if item.usage and body.get("stream_options", {}).get("include_usage"):
        found.append(event({**head, "choices": [], "usage": _usage(body, text)}))
    return [*found, f"data: [DONE]{item.newline * 2}"] if item.done else found


def _halves(text: str) -> list[str]:
    data = text.encode("utf-16-le")
    return [data[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(data), 2)]


def _cut(item: Say, body: Mapping[str, Any]) -> tuple[str, str]:
    """The text as far as max_tokens allows."""
    text = (f"<think>\n{item.think}\n</think>\n\n" if item.think else "") + item.text
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if limit is None or count(text) <= limit:
        return text, item.finish
    words = text.split(" ")
    while count(" ".join(words)) > limit:
        words.pop()
    return " ".join(words), "length"


def _usage(body: Mapping[str, Any], text: str) -> dict[str, int]:
    prompt, completion = ScriptedModel.prompt_tokens(body), count(text)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _head(kind: str, name: str) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": int(time.time()), "model": name}

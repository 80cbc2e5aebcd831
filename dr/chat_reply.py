"""A response of a chat API, streamed or not -> the completion it holds, or the fault it is. Pure.

What is written of the model's thinking (`<think>` blocks, reasoning fields) is no part of the text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from dr.chat_faults import Fault, Kind, error_body, fault_of, page_fault
from dr.chat_http import Response


@dataclass(frozen=True)
class Usage:
    """Tokens of one call. estimated: the server did not say, they were counted from the text."""

    prompt_tokens: int
    completion_tokens: int
    estimated: bool = False


@dataclass(frozen=True)
class Reply:
    """text: what the model said, thinking left out. raw: all it wrote, thinking included."""

    text: str
    usage: Usage
    finish_reason: str
    raw: str = ""

    @property
    def truncated(self) -> bool:
        """The text ends because the limit of tokens was reached, not because it is complete."""
        return self.finish_reason in ("length", "max_tokens", "model_length")


@dataclass(frozen=True)
class Completion:
    """raw: the content as it came. usage: as the server says, if it does."""

    raw: str
    finish_reason: str = ""
    usage: Usage | None = None
    refusal: str = ""
    reasoned: bool = False


def read(response: Response) -> Completion | Fault:
    """Whether a body is a stream of events is seen in the body: some servers stream, or do not, whatever is asked."""
    text = _decode(response)
    if 300 <= response.status < 400:
        target = response.headers.get("location", "").partition("?")[0]
        return Fault(Kind.WRONG_ADDRESS, f"HTTP {response.status}, it points to {target or 'elsewhere'}")
    if not response.status < 300:
        return fault_of(response.status, error_body(_loads(text or "")), text or "")
    if text is None:
        return Fault(Kind.TRANSIENT, "its reply is not UTF-8")
    if fault := page_fault(text):
        return fault
    if re.match(r"\s*(?:data|event|id|retry|error)?:", text):
        return _from_events(text, response.cut)
    if response.cut:
        return Fault(Kind.TRANSIENT, response.cut, costly=True)
    data = _loads(text)
    if (error := error_body(data)) is not None:  # some gateways say 200 and mean otherwise
        return fault_of(error.status or 500, error, "")
    choice = _choice(data)
    if choice is None:
        begin = " ".join(text[:80].split())
        return Fault(Kind.TRANSIENT, f"its reply is no chat completion: {begin!r}" if begin else "its reply is empty")
    if fault := _failed(choice):
        return fault
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    return Completion(
        _joined(_content(message)),
        str(choice.get("finish_reason") or ""),
        _usage(data.get("usage")),
        str(message.get("refusal") or ""),
        _reasons(message),
    )


def _from_events(text: str, cut: str) -> Completion | Fault:
    pieces: list[str] = []
    finish = refusal = ""
    usage: Usage | None = None
    done = reasoned = False
    for data_text in _events(text):
        if data_text.strip() == "[DONE]":
            done = True
            break
        data = _loads(data_text)
        if not isinstance(data, dict):
            # A piece that cannot be read is a piece of the answer that is missing.
            cut = cut or f"a piece of its stream cannot be read: {data_text[:80]!r}"
            return Fault(Kind.TRANSIENT, cut, partial=_joined("".join(pieces)), costly=True)
        if (error := error_body(data)) is not None and error.message:
            return replace(fault_of(error.status or 500, error, ""), partial=_joined("".join(pieces)))
        usage = _usage(data.get("usage")) or usage
        choice = _choice(data)
        if choice is None:
            continue  # the last event holds the usage alone
        if fault := _failed(choice):
            return replace(fault, partial=_joined("".join(pieces)))
        delta = choice.get("delta") or choice.get("message")
        delta = delta if isinstance(delta, dict) else {}
        pieces.append(_content(delta))
        refusal += str(delta.get("refusal") or "")
        reasoned = reasoned or _reasons(delta)
        finish = str(choice.get("finish_reason") or finish)
    raw = _joined("".join(pieces))
    if not done and not finish:
        return Fault(Kind.TRANSIENT, cut or "its stream stopped in the middle", partial=raw, costly=True)
    return Completion(raw, finish, usage, refusal, reasoned)


def _failed(choice: dict[str, Any]) -> Fault | None:
    """A gateway whose own server failed half-way says so in the choice."""
    if choice.get("finish_reason") != "error":
        return None
    error = error_body({"error": choice.get("error") or "it gave up"})
    return fault_of(error.status or 500 if error else 500, error, "")


def _events(text: str) -> list[str]:
    """The data of each server-sent event; comments and other fields passed over."""
    found: list[str] = []
    data: list[str] = []
    for line in [*re.split(r"\r\n|\n|\r", text), ""]:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                found.append("\n".join(data))
            data = []
        elif name == "data":
            data.append(value)
        elif name == "error":  # older llama.cpp: an error inside a stream, bare
            data = [value if value.lstrip().startswith('{"error"') else f'{{"error": {value}}}']
    return found


def _decode(response: Response) -> str | None:
    """JSON is UTF-8 by its standard; another charset is believed only when the header says so. None: unreadable."""
    named = re.search(r"charset=\"?([\w.:-]+)", response.headers.get("content-type", ""))
    for charset in ("utf-8-sig", named[1] if named else ""):
        try:
            return response.body.decode(charset or "utf-8")
        except (UnicodeDecodeError, LookupError):
            continue
    if response.status >= 300:
        return response.body.decode("utf-8", errors="replace")
    return None


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _choice(data: Any) -> dict[str, Any] | None:
    choices = data.get("choices") if isinstance(data, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):  # as typed parts
        return "".join(str(p.get("text") or "") for p in content if isinstance(p, dict) and p.get("type") == "text")
    return content if isinstance(content, str) else ""


def _reasons(message: dict[str, Any]) -> bool:
    return bool(message.get("reasoning_content") or message.get("reasoning"))


def _joined(text: str) -> str:
    """Halves of a character that came escaped in two pieces are joined; a half alone is the replacement character."""
    if not re.search("[\ud800-\udfff]", text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _usage(data: Any) -> Usage | None:
    if not isinstance(data, dict):
        return None
    counts = [data.get(name) for name in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(c, int) and not isinstance(c, bool) and c >= 0 for c in counts):
        return None
    prompt, completion = (int(c or 0) for c in counts)
    return Usage(prompt, completion) if prompt or completion else None


_THINKING = r"<(think|thinking|thought|reasoning)>"
_BLOCK = re.compile(rf"\A\s*{_THINKING}.*?</\1>\s*", re.DOTALL)
_OPEN = re.compile(rf"\A\s*{_THINKING}", re.DOTALL)
_ORPHAN = re.compile(r"(?<!`)</think(?:ing)?>")


def without_thinking(raw: str) -> str:
    """Blocks at the start are left out; elsewhere a tag may be what the text is about.

    A block that only closes was opened by the prompt's template; one that only opens was all there was time for.
    """
    text = raw
    while block := _BLOCK.match(text):
        text = text[block.end() :]
    if _OPEN.match(text):
        return ""
    if (orphan := _ORPHAN.search(text)) and not re.search(_THINKING, text[: orphan.start()]):
        text = text[orphan.end() :]
    return text.strip()

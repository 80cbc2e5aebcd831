"""What a chat API answered instead of a reply -> one kind of fault, whichever server worded it. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

SHOWN = 300  # characters of a server's own words in a message


class Kind(Enum):
    CREDENTIALS = "the server refused the credentials"
    QUOTA = "the account has no credit left"
    NOT_FOUND = "there is no such model or address"
    WRONG_ADDRESS = "this is no chat API"
    OVERFLOW = "the prompt is longer than the model can read"
    PARAMETER = "the server refused the request"  # without one of its parameters it may be accepted
    THROTTLED = "the server is busy"  # everybody who asks it should wait
    TRANSIENT = "the server failed"
    LASTING = "the server cannot be used"


@dataclass(frozen=True)
class Fault:
    """said: the server's words. names: parameters it blames. partial: text that came before a reply broke off."""

    kind: Kind
    said: str = ""
    names: tuple[str, ...] = ()
    prompt_tokens: int | None = None
    limit: int | None = None
    partial: str = ""
    costly: bool = False  # it took long to fail

    @property
    def message(self) -> str:
        return f"{self.kind.value}: {self.said}" if self.said else self.kind.value


@dataclass(frozen=True)
class ErrorBody:
    message: str = ""
    words: frozenset[str] = frozenset()  # its type and code
    param: str = ""
    status: int | None = None
    prompt_tokens: int | None = None
    limit: int | None = None


def error_body(data: Any) -> ErrorBody | None:
    """The error in a decoded body, in any of the shapes servers give it; None when it holds none."""
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if not isinstance(data, dict):
        return None
    error = data.get("error")
    if error is None and (data.get("object") == "error" or "choices" not in data):
        error = data if "message" in data else data.get("detail")
    if isinstance(error, (str, list)) and error:
        error = {"message": error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)}
    if not isinstance(error, dict):
        return None
    code = error.get("code")
    message = error.get("message")
    return ErrorBody(
        message=message if isinstance(message, str) else json.dumps(error, ensure_ascii=False),
        words=frozenset(str(v) for v in (error.get("type"), code) if v is not None),
        param=str(error.get("param") or ""),
        status=int(str(code)) if re.fullmatch(r"[45]\d\d", str(code)) else None,
        prompt_tokens=_count(error.get("n_prompt_tokens")),
        limit=_count(error.get("n_ctx")),
    )


def fault_of(status: int, error: ErrorBody | None, text: str) -> Fault:
    """`text`: the decoded body, for servers that say nothing in JSON."""
    error = error or ErrorBody("" if _is_page(text) else text)
    said = f"HTTP {status}" + (f", {_short(error.message)}" if error.message.strip() else "")
    kind = _kind(status, error)
    if kind is Kind.OVERFLOW:
        return Fault(kind, said, (), error.prompt_tokens or _size(_PROMPT, error), error.limit or _size(_LIMIT, error))
    return Fault(kind, said, _blamed(error) if kind in (Kind.PARAMETER, Kind.TRANSIENT) else ())


def _kind(status: int, error: ErrorBody) -> Kind:
    if status in (401, 403):
        return Kind.CREDENTIALS
    if status == 402 or error.words & {"insufficient_quota", "billing_hard_limit_reached"}:
        return Kind.QUOTA
    if status in (404, 405, 410) or (
        status < 500 and (error.words & _NO_MODEL or _NO_MODEL_SAID.search(error.message))
    ):
        return Kind.NOT_FOUND
    if status == 413 or error.words & _OVERFLOW or _OVERFLOW_SAID.search(error.message):
        return Kind.OVERFLOW
    if status in (429, 503, 529):
        return Kind.THROTTLED
    if status in (408, 409, 425) or (status >= 500 and status != 501):
        return Kind.TRANSIENT
    return Kind.WRONG_ADDRESS if status < 400 else Kind.PARAMETER


_OVERFLOW = {
    "exceed_context_size_error",
    "context_length_exceeded",
    "context_window_exceeded",
    "string_above_max_length",
}
_OVERFLOW_SAID = re.compile(
    r"context[ _](?:length|window|size)|(?:prompt|input|request) (?:is )?too (?:long|large)|too many (?:input )?tokens"
    r"|input token count|range of input length|tokens? \+ `?max_new_tokens|reduce the length"
    r"|max_tokens must be at least 1, got -",
    re.IGNORECASE,
)
_NO_MODEL = {"model_not_found", "model_not_exist"}
_NO_MODEL_SAID = re.compile(
    r"model\b[^.]{0,80}\b(?:not found|does ?n.t exist|does not exist|not exist)|invalid model name|not a valid model"
    r"|(?:unknown|no such) model",
    re.IGNORECASE,
)
# Where messages say the two sizes; the surest wording first.
_PROMPT = [
    *(
        r"(\d+) (?:tokens )?(?:from|in) the (?:input )?messages",
        r"(\d+) `?inputs?`? tokens",
        r"resulted in (?:over )?(\d+)",
    ),
    *(r"(?:request|input|tokens|count) \((\d+)", r"too long: (\d+)", r"contains (\d+) tokens"),
    r"requested (?:a total of )?(\d+)",
]
_LIMIT = [
    r"context (?:length|window|size)(?: is| of| limit)?(?: only)? ?\(?(\d+)",
    *(r"(?:tokens allowed|must be <=|limit) ?\(?(\d+)", r"(\d+) maximum", r"\[1, ?(\d+)\]"),
]
# What a server may refuse, under the names it uses in its refusals.
_PARAMETERS = {
    "response_format": re.compile(r"response_format|json_schema|json_object|grammar|schema|guided|structured", re.I),
    "stream_options": re.compile(r"stream_options|include_usage"),
    "temperature": re.compile(r"temperature"),
    "max_completion_tokens": re.compile(r"max_completion_tokens"),
    "max_tokens": re.compile(r"max_tokens"),
}


def _blamed(error: ErrorBody) -> tuple[str, ...]:
    if blamed := tuple(name for name, words in _PARAMETERS.items() if words.search(error.param)):
        return blamed
    return tuple(name for name, words in _PARAMETERS.items() if words.search(error.message))


def _size(patterns: list[str], error: ErrorBody) -> int | None:
    message = re.sub(r"(?<=\d),(?=\d{3})", "", error.message)
    return next((_count(m[1]) for p in patterns if (m := re.search(p, message, re.IGNORECASE))), None)


def _count(value: Any) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 < number < 10**9 else None


def _is_page(text: str) -> bool:
    return bool(re.match(r"\s*<(?:!doctype|html|head|body|\?xml)", text, re.IGNORECASE))


def page_fault(text: str) -> Fault | None:
    """For a body that came with status 200."""
    return Fault(Kind.WRONG_ADDRESS, "it answered with a web page") if _is_page(text) else None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[:SHOWN] + "…"


def retry_after(headers: dict[str, str], now: float) -> float | None:
    """Seconds to wait that the server asks for: a number, milliseconds or an HTTP date; None when it asks for none."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    from email.utils import parsedate_to_datetime  # late: it is half of this module's import

    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None

"""Client of an OpenAI-compatible chat API: messages -> a reply, or JSON that holds; usage.json after each call.

Chat.ask: HttpTransport (chat_http) -> read (chat_reply, chat_faults). Chat.ask_json: candidates, faults (chat_json).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from dr import chat_json
from dr.backoff import SharedBackoff
from dr.chat_faults import Fault, Kind, retry_after
from dr.chat_http import Address, ApiKey, HttpTransport, NoResponse, Request, Response, Transport
from dr.chat_reply import Completion, Reply, Usage, read, without_thinking
from dr.errors import ChatError, ContextOverflow, DrError, FatalError, UnusableReply
from dr.language import detect
from dr.layout import HOME
from dr.tokens import UsageMeter, estimate, estimate_messages

__all__ = ["Chat", "Message", "Reply", "Request", "Response", "Transport", "Usage"]

T = TypeVar("T")
Message = Mapping[str, str]  # {"role": "system" | "user" | "assistant", "content": text}

TRIES = 6  # of one request, when the server is busy or fails
COSTLY_TRIES = 3  # of those that broke off or timed out: each may have cost minutes
EMPTY_TRIES = 2
LEAST_REPLY = 256  # tokens; with less room the prompt is too long
CORRECTIONS = 2  # times an invalid reply is shown back
LONGEST_WAIT_S = 120.0
SHOWN_BACK = 6000  # characters of an invalid reply
JSON_SCHEMA = "response_format json_schema"  # refused by servers that know only json_object


@dataclass(frozen=True)
class _Question:
    model: str
    messages: list[dict[str, str]]
    temperature: float | None
    schema: Mapping[str, Any] | None
    max_tokens: int | None


class Chat:
    """One server and model. What may be shared by processes is given as a path; the key stays inside the transport."""

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str = "",
        *,
        stream: bool = True,
        timeout_s: float = 300.0,
        usage_path: Path | None = None,
        backoff_path: Path | None = None,
        transport: Transport | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """UsageError or FatalError for an address or key that cannot be one. jitter: 0 to 1."""
        self._address, self._key = Address.of(base_url), ApiKey(api_key)
        self.model, self._stream = model, stream
        self._transport = transport or HttpTransport(self._address, self._key, timeout_s=timeout_s)
        self._meter = UsageMeter(usage_path)
        self._clock, self._sleep, self._jitter = clock, sleep, jitter
        self._shared = (
            SharedBackoff(backoff_path, self._address.shown, longest_s=LONGEST_WAIT_S, clock=clock)
            if backoff_path
            else None
        )
        self._refused: dict[str, frozenset[str]] = {}  # model -> parameters its server does not take

    def __repr__(self) -> str:
        return f"Chat({self._address.shown!r}, model={self.model!r})"

    def usage(self) -> dict[str, int]:
        """The counts of usage.json: this process's and, of a restarted node, the earlier ones'."""
        return self._meter.totals()

    def ask(
        self,
        messages: Sequence[Message],
        *,
        temperature: float | None = None,
        json_schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        model: str = "",
    ) -> Reply:
        """One reply, never empty; look at `truncated`. `json_schema` is a wish: a server may know nothing of it.

        FatalError: credentials, address, model. ContextOverflow: shorten. ChatError: no usable reply after all tries.
        """
        question = _Question(
            model or self.model, [dict(m) for m in messages], temperature, json_schema or None, max_tokens
        )
        for _ in range(EMPTY_TRIES):
            completion = self._complete(question)
            usage = self._count(question, completion.raw, completion.usage)
            reply = Reply(without_thinking(completion.raw), usage, completion.finish_reason, completion.raw)
            if reply.text:
                return reply
            if completion.refusal or completion.finish_reason == "content_filter":
                raise self._no_reply(question, f"it declined: {completion.refusal or 'content filter'}")
            if reply.truncated:
                break  # the same would happen again
        thought = completion.reasoned or bool(completion.raw.strip())
        wrong = "it only thought and gave no answer" if thought else "its reply is empty"
        if reply.truncated:
            wrong += f" within {usage.completion_tokens} tokens"
        raise self._no_reply(question, wrong, "allow more tokens, or use another model" if reply.truncated else "")

    def ask_json(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        validate: Callable[[Any], T] | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        model: str = "",
    ) -> T | Any:
        """The JSON object or array of a reply that meets `schema` and `validate`, at least one of which is given.

        validate: value -> what is returned; it raises ValueError or DrError with words that a model can act on. An
        invalid reply is shown back with them, twice. ChatError after that, and all errors of `ask`.
        """
        if schema is None and validate is None:
            raise TypeError("ask_json needs a schema or a validate")
        dialogue = list(messages)
        for left in range(CORRECTIONS, -1, -1):
            try:
                reply = self.ask(
                    dialogue, temperature=temperature, json_schema=schema, max_tokens=max_tokens, model=model
                )
            except ContextOverflow:
                if len(dialogue) == len(messages):
                    raise
                dialogue = list(messages)  # what was shown back made it too long
                continue
            try:
                return _accepted(reply, schema, validate)
            except (ValueError, DrError) as error:
                wrong = str(error)
            if left:
                dialogue = [*messages, *_shown_back(reply, wrong, messages)]
        question = _Question(model or self.model, [], None, None, None)
        wrong = f"{CORRECTIONS + 1} replies were no valid JSON for what was asked; the last: {wrong}"
        raise self._no_reply(question, wrong, "use a more capable model, or run without one: --mind offline")

    # -- one request --------------------------------------------------------------------------------------------------

    def _complete(self, question: _Question) -> Completion:
        refused = set(self._refused.get(question.model, ()))
        tries = costly = 0
        while True:
            self._wait_for_turn()
            try:
                response = self._transport(Request(self._body(question, refused)))
            except NoResponse as failure:
                kind = Kind.LASTING if failure.lasting else Kind.TRANSIENT
                outcome: Completion | Fault = Fault(kind, failure.reason, costly=failure.costly)
                asked_wait = None
            else:
                outcome, asked_wait = read(response), retry_after(response.headers, self._clock())
            if isinstance(outcome, Completion):
                self._refused[question.model] = frozenset(refused)  # known for certain only now
                return outcome
            if outcome.partial:
                self._count(question, outcome.partial, None)
            if shorter := _shorter(question, outcome):
                question = shorter
                continue
            if name := self._to_leave_out(question, outcome, refused):
                refused.add(name)
                continue
            tries, costly = tries + 1, costly + outcome.costly
            busy = outcome.kind in (Kind.THROTTLED, Kind.TRANSIENT)
            if not busy or tries >= TRIES or costly >= COSTLY_TRIES:
                raise self._error(question, outcome, tries)
            self._back_off(outcome, tries, asked_wait)

    def _body(self, question: _Question, refused: set[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": question.model, "messages": question.messages}
        if question.temperature is not None and "temperature" not in refused:
            body["temperature"] = question.temperature
        limits = [n for n in ("max_tokens", "max_completion_tokens") if n not in refused]
        if question.max_tokens is not None and limits:
            body[limits[0]] = question.max_tokens
        if question.schema is not None and "response_format" not in refused:
            body["response_format"] = {"type": "json_object"}
            if JSON_SCHEMA not in refused:
                strict = chat_json.is_closed(question.schema)
                schema = {"name": "reply", "schema": dict(question.schema), "strict": strict}
                body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if self._stream:
            body["stream"] = True
            if "stream_options" not in refused:
                body["stream_options"] = {"include_usage": True}
        return body

    def _to_leave_out(self, question: _Question, fault: Fault, refused: set[str]) -> str:
        """A parameter without which the request may be accepted: one blamed, else one that servers often lack."""
        sent = self._body(question, refused).keys()
        blamed = [name for name in fault.names if name in sent]
        if fault.kind is Kind.PARAMETER and not fault.names:
            blamed = [name for name in ("response_format", "stream_options") if name in sent]
        if fault.kind not in (Kind.PARAMETER, Kind.TRANSIENT) or not blamed:
            return ""
        return JSON_SCHEMA if blamed[0] == "response_format" and JSON_SCHEMA not in refused else blamed[0]

    def _wait_for_turn(self) -> None:
        for _ in range(TRIES):  # another process may meanwhile have been told to wait longer
            left = self._shared.remaining() if self._shared else 0.0
            if left <= 0:
                return
            self._sleep(min(left + self._jitter() * min(left, 5.0), LONGEST_WAIT_S))  # not all at the same moment

    def _back_off(self, fault: Fault, tries: int, asked_wait: float | None) -> None:
        wait = min(asked_wait or 2.0 ** (tries - 1) * (0.5 + self._jitter()), LONGEST_WAIT_S)
        if fault.kind is Kind.THROTTLED and self._shared:
            self._shared.extend(wait)  # waited for with everybody else before the next request
        if self._shared is None or self._shared.remaining() <= 0:
            self._sleep(wait)

    def _count(self, question: _Question, text: str, usage: Usage | None) -> Usage:
        usage = usage or Usage(estimate_messages(question.messages), estimate(text), estimated=True)
        self._meter.add(usage.prompt_tokens, usage.completion_tokens, estimated=usage.estimated)
        return usage

    # -- errors -------------------------------------------------------------------------------------------------------

    def _no_reply(self, question: _Question, wrong: str, next_step: str = "") -> ChatError:
        return UnusableReply(self._tried(question), self._key.redact(wrong), next_step)

    def _tried(self, question: _Question) -> str:
        return f"ask the model {question.model!r} at {self._address.shown}"

    def _error(self, question: _Question, fault: Fault, tries: int) -> DrError:
        tried, wrong = self._tried(question), self._key.redact(fault.message)
        if fault.kind is Kind.OVERFLOW:
            return ContextOverflow(tried, wrong, fault.prompt_tokens, fault.limit)
        if fault.kind is Kind.PARAMETER:
            return ChatError(tried, wrong, "check that model and base_url belong together")
        if fault.kind in (Kind.THROTTLED, Kind.TRANSIENT):
            wrong += f" ({tries} tries)" if tries > 1 else ""
            return ChatError(tried, wrong, "is the server running? try again later, or use --mind offline")
        return FatalError(tried, wrong, self._advice(fault))

    def _advice(self, fault: Fault) -> str:
        if fault.kind is Kind.CREDENTIALS:
            return "set DR_API_KEY to a valid key for this server" + ("" if self._key else " (none is set)")
        if fault.kind is Kind.QUOTA:
            return "top up the account, or set base_url, model and DR_API_KEY of another"
        if fault.kind is Kind.NOT_FOUND and self._address.versioned:
            return "correct model (GET …/models lists them) or base_url"
        return "correct base_url; for most servers it ends in /v1" + (
            "" if self._address.versioned else ", and this one does not"
        )


def _shorter(question: _Question, fault: Fault) -> _Question | None:
    """The same with a smaller max_tokens, where it is that and not the prompt for which there is no room."""
    if fault.kind is not Kind.OVERFLOW or not (fault.limit and fault.prompt_tokens and question.max_tokens):
        return None
    room = fault.limit - fault.prompt_tokens - 1
    return replace(question, max_tokens=room) if LEAST_REPLY <= room < question.max_tokens else None


def _accepted(reply: Reply, schema: Mapping[str, Any] | None, validate: Callable[[Any], T] | None) -> T | Any:
    """ValueError or DrError says what is wrong with the likeliest candidate."""
    first: Exception | None = None
    for value in chat_json.candidates(reply.text):
        if reply.truncated and not reply.text.rstrip().endswith(("}", "]", "```")):
            break  # mending would close the brackets over what is missing
        try:
            if schema is not None and (wrong := chat_json.faults(value, schema)):
                raise ValueError("; ".join(wrong[:5]))
            return validate(value) if validate else value
        except (ValueError, DrError) as error:
            first = first or error
    if reply.truncated:
        raise ValueError("it was cut off at the limit of tokens; reply shorter")
    raise first or ValueError("it holds no JSON object")


def _shown_back(reply: Reply, wrong: str, messages: Sequence[Message]) -> list[Message]:
    language = detect(messages[-1]["content"] if messages else "")
    page = Template((HOME / "sop" / f"json_again.{language}.md").read_text(encoding="utf-8"))
    return [
        {"role": "assistant", "content": reply.text[:SHOWN_BACK]},
        {"role": "user", "content": page.substitute(error=wrong)},
    ]

"""The chat client over HTTP against a scripted server: replies, faults, waiting, the key. Nothing here sleeps."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from conftest import PROJECT
from scripted_model import (
    HANG,
    HTML,
    PAGE,
    Fail,
    Raw,
    Say,
    ScriptedModel,
    openai_error,
    overflow,
    vllm_error,
)

from dr.chat import COSTLY_TRIES, LONGEST_WAIT_S, TRIES, Chat
from dr.chat_http import Address, ApiKey, HttpTransport, Request, Response
from dr.errors import ChatError, ContextOverflow, DrError, FatalError, UsageError

ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 6 x 7?"}]
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}, "why": {"type": "string"}},
    "required": ["answer", "why"],
    "additionalProperties": False,
}
GOOD = '{"answer": 42, "why": "因为 6 × 7"}'


@dataclass
class Clock:
    """Time that passes only when somebody sleeps."""

    now: float = 1_800_000_000.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def chat(server: ScriptedModel, clock: Clock | None = None, **options: Any) -> Chat:
    clock = clock or Clock()
    options = {"api_key": server.key, "clock": clock, "sleep": clock.sleep, "jitter": lambda: 0.5, **options}
    return Chat(server.base_url, options.pop("model", server.name), options.pop("api_key"), **options)


# -- replies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
def test_a_reply(stream: bool, tmp_path: Path) -> None:
    text = "六乘七等于 42。\n\n第二段：😀 “quoted” data: [DONE] \\n end"
    with ScriptedModel([Say(text, think="hm, 6*7")]) as model:
        client = chat(model, stream=stream, usage_path=tmp_path / "usage.json")
        reply = client.ask(ASK, temperature=0.3, max_tokens=100)
    assert (reply.text, reply.finish_reason, reply.truncated) == (text, "stop", False)
    assert reply.raw == f"<think>\nhm, 6*7\n</think>\n\n{text}"
    asked = model.requests[0]
    assert asked.body["messages"] == ASK
    assert (asked.body["temperature"], asked.body["max_tokens"]) == (0.3, 100)
    assert asked.body.get("stream", False) is stream
    assert "response_format" not in asked.body
    assert not reply.usage.estimated
    assert reply.usage.prompt_tokens == ScriptedModel.prompt_tokens(asked.body)
    assert json.loads((tmp_path / "usage.json").read_text(encoding="utf-8")) == client.usage()
    assert client.usage()["calls"] == 1


@pytest.mark.parametrize("stream", [True, False])
def test_a_reply_that_was_cut_is_flagged(stream: bool) -> None:
    with ScriptedModel(["one two three four five"]) as model:
        reply = chat(model, stream=stream).ask(ASK, max_tokens=3)
    assert (reply.text, reply.truncated) == ("one two three", True)


@pytest.mark.parametrize(
    "say",
    [
        Say("Grüße 你好 😀𝄞", ascii=True),
        Say("Grüße 你好 😀𝄞", newline="\r\n", comment=": OPENROUTER PROCESSING"),
        Say("Grüße 你好 😀𝄞", done=False),
        Say("Grüße 你好 😀𝄞", linger=True),
        Say("Grüße 你好 😀𝄞", reasoning="let me think", piece=1),
    ],
    ids=["escaped-halves", "crlf-comments", "no-done", "connection-kept-open", "reasoning-field"],
)
def test_streams_as_servers_write_them(say: Say) -> None:
    with ScriptedModel([say]) as model:
        assert chat(model).ask(ASK).text == "Grüße 你好 😀𝄞"


def test_a_server_that_answers_the_other_way_than_asked() -> None:
    whole = {"choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}]}
    parts = {
        "choices": [{"message": {"content": [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]}}]
    }
    events = 'data: {"choices":[{"delta":{"content":"streamed"}}]}\n\ndata: [DONE]\n\n'
    raw = [Raw(json.dumps(whole).encode()), Raw(events.encode(), "text/event-stream"), Raw(json.dumps(parts).encode())]
    with ScriptedModel(raw) as model:
        assert chat(model, stream=True).ask(ASK).text == "whole"
        assert chat(model, stream=False).ask(ASK).text == "streamed"
        assert chat(model, stream=False).ask(ASK).text == "in parts"


def test_usage_is_estimated_where_the_server_does_not_say_and_adds_up_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "usage.json"
    with ScriptedModel([Say("x" * 40, usage=False), "one two", Say("第三次", usage=False)]) as model:
        reply = chat(model, usage_path=path).ask(ASK)
        assert reply.usage.estimated
        assert reply.usage.completion_tokens == 10
        first = json.loads(path.read_text(encoding="utf-8"))
        client = chat(model, usage_path=path)  # a restarted subagent
        client.ask(ASK)
        client.ask(ASK)
    total = client.usage()
    assert total == json.loads(path.read_text(encoding="utf-8"))
    assert (total["calls"], total["estimated"]) == (3, 2)
    assert total["completion_tokens"] == 10 + 2 + 3
    assert total["total_tokens"] == total["prompt_tokens"] + total["completion_tokens"]
    assert total["prompt_tokens"] > first["prompt_tokens"]
    path.write_text("{broken", encoding="utf-8")
    assert set(chat(model, usage_path=path).usage().values()) == {0}


@pytest.mark.parametrize(
    ("items", "word"),
    [
        (["", Say("", think="round and round")], "only thought"),
        (["", "  \n"], "empty"),
        ([Say("", think="many words of thought")], "within 3 tokens"),
        ([Say("", finish="content_filter")], "declined"),
    ],
)
def test_an_empty_reply_is_asked_for_once_more_and_is_never_an_answer(items: list[Any], word: str) -> None:
    with ScriptedModel(items) as model, pytest.raises(ChatError, match=word):
        chat(model).ask(ASK, max_tokens=3 if "within" in word else None)
    assert len(model.requests) == len(items)


def test_an_empty_reply_may_be_followed_by_a_good_one() -> None:
    with ScriptedModel(["", "42"]) as model:
        client = chat(model)
        assert client.ask(ASK).text == "42"
    assert client.usage()["calls"] == 2


# -- faults -----------------------------------------------------------------------------------------------------------


def test_wrong_credentials(clock: Clock) -> None:
    with ScriptedModel(["never"]) as model:
        for key, hint in (("sk-wrong-0123456789", "valid key"), ("", "none is set")):
            with pytest.raises(FatalError, match="HTTP 401") as caught:
                chat(model, clock, api_key=key).ask(ASK)
            assert hint in str(caught.value)
            assert "DR_API_KEY" in caught.value.next_step
        assert "authorization" not in model.requests[1].headers
    assert clock.slept == []


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (Fail(403), ["credentials", "403"]),
        (Fail(402, openai_error("Insufficient Balance", "invalid_request_error")), ["credit"]),
        (Fail(429, openai_error("You exceeded your current quota", "insufficient_quota")), ["credit", "quota"]),
        (Fail(404, {"detail": "Not Found"}), ["404", "Not Found", "/v1/chat/completions"]),
        (Fail(404, PAGE), ["404", "no such model or address"]),
        (Fail(400, openai_error("x is not a valid model ID", None)), ["no such model"]),
        (Fail(405), ["405"]),
        (Fail(301, PAGE, headers={"Location": "https://example.org/v1?token=t0psecret"}), ["https://example.org/v1"]),
        (HTML, ["web page", "base_url"]),
    ],
)
def test_what_no_later_call_can_mend_is_fatal_at_once(item: Any, words: list[str], clock: Clock) -> None:
    with ScriptedModel([item]) as model, pytest.raises(FatalError) as caught:
        chat(model, clock).ask(ASK)
    assert all(word in str(caught.value) for word in [*words, f"{model.base_url}/chat/completions"])
    assert caught.value.next_step
    assert "<html" not in str(caught.value)
    assert "t0psecret" not in str(caught.value)
    assert (len(model.requests), clock.slept) == (1, [])


def test_a_wrong_model_and_a_wrong_address_say_what_was_tried() -> None:
    with ScriptedModel(["never"]) as model:
        with pytest.raises(FatalError, match=r"'gpt-nope'.*does not exist"):
            chat(model, model="gpt-nope").ask(ASK)
        address = model.base_url.removesuffix("/v1")
        with pytest.raises(FatalError, match="and this one does not") as caught:
            Chat(address, model.name, model.key).ask(ASK)
    assert f"{address}/chat/completions" in str(caught.value)


@pytest.mark.parametrize("address", ["", "localhost:8080", "ftp://a/v1", "http://[::1", "http://a:b/v1?k=hidden"])
def test_no_address(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        Chat(address, "m")
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://h/v1", "http://h/v1/chat/completions"),
        (" http://h:1/v1/ ", "http://h:1/v1/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/openai?api-version=2", "https://h/openai/chat/completions?api-version=2"),
    ],
)
def test_addresses(given: str, url: str) -> None:
    assert Address.of(given).url == url
    assert Address.of(given).shown == url.partition("?")[0]


@pytest.mark.parametrize(
    ("body", "prompt", "limit"),
    [
        (overflow(1407, 256), 1407, 256),
        (
            openai_error(
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9,001 tokens.",
                "context_length_exceeded",
                "messages",
            ),
            9001,
            8192,
        ),
        (
            vllm_error(
                "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in "
                "the messages, 10000 in the completion). Please reduce the length of the messages or completion."
            ),
            112946,
            16384,
        ),
        (
            {"error": vllm_error("You passed 5001 input tokens. However, the model's context length is only 4096.")},
            5001,
            4096,
        ),
        (vllm_error("max_tokens must be at least 1, got -186."), None, None),
        ({"error": {"message": "Requested tokens (2285) exceed context window of 2048"}}, 2285, 2048),
        ({"error": "prompt is too long: 213462 tokens > 200000 maximum"}, 213462, 200000),
        (
            [
                {
                    "error": {
                        "code": 400,
                        "message": "The input token count (12) exceeds the maximum number of tokens allowed (9)",
                    }
                }
            ],
            12,
            9,
        ),
    ],
)
@pytest.mark.parametrize("status", [400, 413, 500])
def test_overflow_with_its_sizes(body: Any, prompt: int | None, limit: int | None, status: int) -> None:
    with ScriptedModel([Fail(status, body)]) as model, pytest.raises(ContextOverflow) as caught:
        chat(model).ask(ASK)
    assert (caught.value.prompt_tokens, caught.value.limit) == (prompt, limit)
    assert len(model.requests) == 1


def test_overflow_as_it_happens() -> None:
    with ScriptedModel(["fits"], n_ctx=40) as model:
        assert chat(model).ask(ASK).text == "fits"
        with pytest.raises(ContextOverflow) as caught:
            chat(model).ask([{"role": "user", "content": "word " * 50}])
    assert (caught.value.prompt_tokens, caught.value.limit) == (54, 40)


def test_too_large_a_max_tokens_is_lowered_and_not_taken_for_a_long_prompt() -> None:
    said = "This model's maximum context length is 4096 tokens and your request has 96 input tokens"
    with ScriptedModel([Fail(400, vllm_error(said)), "42"]) as model:
        assert chat(model).ask(ASK, max_tokens=5000).text == "42"
    assert [r.body["max_tokens"] for r in model.requests] == [5000, 3999]


def test_a_parameter_that_is_refused_is_left_out_from_then_on() -> None:
    refused = {"stream_options", "temperature", "max_tokens"}

    def script(body: dict[str, Any]) -> Any:
        for name in sorted(refused & body.keys()):
            said = f"Unsupported parameter: '{name}' is not supported with this model."
            return Fail(400, openai_error(said, "unsupported_parameter", name))
        return "42"

    with ScriptedModel(script) as model:
        client = chat(model)
        assert client.ask(ASK, temperature=0.2, max_tokens=9).text == "42"
        assert len(model.requests) == 4
        assert model.requests[-1].body["max_completion_tokens"] == 9
        client.ask(ASK, temperature=0.2, max_tokens=9)
        assert len(model.requests) == 5


def test_a_refusal_that_nothing_explains_is_an_error_in_the_servers_words() -> None:
    with ScriptedModel(lambda body: Fail(400, openai_error("roles must alternate", None))) as model:
        with pytest.raises(ChatError, match="roles must alternate"):
            chat(model, stream=False).ask(ASK)
        assert len(model.requests) == 1


# -- trying again -----------------------------------------------------------------------------------------------------


def test_a_busy_or_failing_server_is_asked_again(clock: Clock) -> None:
    date = formatdate(clock.now + 16, usegmt=True)  # whole seconds
    items = [Fail(429, retry_after=7), Fail(500), Fail(503, PAGE), Fail(429, retry_after=date), Fail(429), "42"]
    with ScriptedModel(items) as model:
        assert chat(model, clock).ask(ASK).text == "42"
    assert clock.slept == [7, 2, 4, 16 - 13, 16]


def test_those_who_wait_together_do_not_come_back_at_the_same_moment(clock: Clock, tmp_path: Path) -> None:
    with ScriptedModel([Fail(429, retry_after=7), "42"]) as model:
        chat(model, clock, backoff_path=tmp_path / "b.json").ask(ASK)
    assert clock.slept == [7 + 0.5 * 5]


@pytest.mark.parametrize(
    ("value", "waits"),
    [("86400", LONGEST_WAIT_S), ("soon", 1), ("-5", 1), ("0", 1), ("nan", 1), ("inf", 1), ("Mon, 99 Foo", 1)],
)
def test_what_retry_after_may_hold(value: str, waits: float, clock: Clock) -> None:
    with ScriptedModel([Fail(429, retry_after=value), "42"]) as model:
        chat(model, clock).ask(ASK)
    assert clock.slept == [waits]


def test_milliseconds(clock: Clock) -> None:
    with ScriptedModel([Fail(429, headers={"retry-after-ms": "2500", "retry-after": "9"}), "42"]) as model:
        chat(model, clock).ask(ASK)
    assert clock.slept == [2.5]


def test_trying_again_is_bounded(clock: Clock) -> None:
    with ScriptedModel(lambda body: Fail(500)) as model, pytest.raises(ChatError, match=f"HTTP 500.*{TRIES} tries"):
        chat(model, clock).ask(ASK)
    assert len(model.requests) == TRIES
    assert len(clock.slept) == TRIES - 1


@pytest.mark.parametrize(
    ("item", "word"),
    [
        (Say("half of an answer", stop_after=2), "broke off"),
        (Say("half of an answer", error={"error": {"code": 500, "message": "the slot was lost"}}), "the slot was lost"),
        (Raw(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', "text/event-stream"), "stopped in the middle"),
        (Raw(b"data: \xff\xfe\x00garbage\n\ndata: [DONE]\n\n", "text/event-stream"), "UTF-8"),
        (Raw(b'data: {"choices":[{"delta":{"cont\n\ndata: [DONE]\n\n', "text/event-stream"), "cannot be read"),
        (
            Raw(b'error: {"code":500,"message":"old wording","type":"server_error"}\n\n', "text/event-stream"),
            "old wording",
        ),
        (Raw(b'{"choices": [', length=500), "broke off"),
        (Raw(b"\x00\x01\x02"), "no chat completion"),
        (Raw("{}".encode("utf-16")), "UTF-8"),
        (Raw(b""), "empty"),
        (Raw(b'{"error": {"code": 502, "message": "upstream"}}'), "upstream"),
        (Raw(b'{"choices": [{"finish_reason": "error", "error": {"message": "provider"}}]}'), "provider"),
    ],
)
def test_a_damaged_reply_is_not_an_answer_and_is_asked_for_again(item: Any, word: str, clock: Clock) -> None:
    with ScriptedModel([item, "42"]) as model:
        assert chat(model, clock).ask(ASK).text == "42"
        assert len(clock.slept) == 1
    with ScriptedModel(lambda body: item) as model, pytest.raises(ChatError, match=word):
        chat(model, clock).ask(ASK)
    assert len(model.requests) in (COSTLY_TRIES, TRIES)


def test_the_tokens_of_a_reply_that_broke_off_are_counted() -> None:
    with ScriptedModel([Say("seven c" * 3, stop_after=3), "42"]) as model:
        client = chat(model)
        client.ask(ASK)
    assert (client.usage()["calls"], client.usage()["estimated"]) == (2, 1)


def test_another_charset_is_read_when_the_header_says_so() -> None:
    body = json.dumps({"choices": [{"message": {"content": "你好"}}]}, ensure_ascii=False).encode("gb18030")
    with ScriptedModel([Raw(body, "application/json; charset=gb18030")]) as model:
        assert chat(model).ask(ASK).text == "你好"


@pytest.mark.parametrize("item", [HANG, Raw(b'data: {"choices":[]}\n\n', "text/event-stream", hang=True)])
def test_silence(item: Any, clock: Clock) -> None:
    with ScriptedModel(lambda body: item) as model, pytest.raises(ChatError, match=r"time limit|timed out"):
        chat(model, clock, timeout_s=0.05).ask(ASK)
    assert len(model.requests) == COSTLY_TRIES


def test_a_stream_without_end(clock: Clock) -> None:
    ticks = iter(range(0, 10_000, 100))
    with ScriptedModel([Say("many pieces " * 50, piece=1)]) as model:
        transport = HttpTransport(
            Address.of(model.base_url), ApiKey(model.key), longest_s=250, clock=lambda: float(next(ticks))
        )
        response = transport(Request({"model": model.name, "messages": ASK, "stream": True}))
    assert "longer than 250 s" in response.cut


def test_nobody_there(clock: Clock) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ChatError, match=rf"127\.0\.0\.1:{port}/v1.*Connection refused.*\n.*server running"):
        Chat(f"http://127.0.0.1:{port}/v1", "m", clock=clock, sleep=clock.sleep).ask(ASK)
    assert len(clock.slept) == TRIES - 1


def test_https_to_a_plain_server_is_fatal(clock: Clock) -> None:
    with ScriptedModel([]) as model, pytest.raises(FatalError, match="base_url"):
        Chat(model.base_url.replace("http:", "https:"), "m", clock=clock, sleep=clock.sleep).ask(ASK)
    assert clock.slept == []


# -- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"<think>maybe {{'answer': 1}}</think>{GOOD}",
        f"maybe {{'answer': 1}}\n</think>\n{GOOD}",
        f"Here it is:\n```json\n{GOOD}\n```\nAnything else?",
        "The set {6, 7} has [2] members.\n" + GOOD,
        "{'answer': 42, 'why': '因为 6 × 7',}",
        '```\n{"answer": 42, // sure\n "why": "因为 6 × 7"',
    ],
)
def test_json_in_its_wrappings(text: str) -> None:
    with ScriptedModel([text]) as model:
        assert chat(model).ask_json(ASK, schema=SCHEMA) == json.loads(GOOD)
    sent = model.requests[0].body["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}}


def test_an_invalid_reply_is_shown_back_with_the_error() -> None:
    with ScriptedModel(["I would say 42.", '{"answer": "42", "why": ""}', GOOD]) as model:
        client = chat(model)
        assert client.ask_json(ASK, schema=SCHEMA)["answer"] == 42
    second, third = model.requests[1].messages, model.requests[2].messages
    assert second[:2] == third[:2] == ASK
    assert second[2] == {"role": "assistant", "content": "I would say 42."}
    assert "holds no JSON" in second[3]["content"]
    assert len(third) == 4  # the last one only: the dialogue does not grow
    assert 'answer must be of type integer, not "42"' in third[3]["content"]
    assert client.usage()["calls"] == 3


def test_the_remark_is_in_the_language_of_the_question() -> None:
    with ScriptedModel(["不知道", GOOD]) as model:
        chat(model).ask_json([{"role": "user", "content": "六乘七是多少？"}], schema=SCHEMA)
    assert "请重新回复" in model.requests[1].messages[-1]["content"]


def test_after_three_invalid_replies_the_error_says_so() -> None:
    with ScriptedModel(["no", "never", '{"answer": 1}']) as model, pytest.raises(ChatError) as caught:
        chat(model).ask_json(ASK, schema=SCHEMA)
    assert "3 replies were no valid JSON" in str(caught.value)
    assert "lacks the key 'why'" in str(caught.value)
    assert "--mind offline" in caught.value.next_step


def test_a_validator_converts_and_refuses() -> None:
    def even(value: Any) -> str:
        if value["answer"] % 2:
            raise ValueError("answer must be even")
        return f"even {value['answer']}"

    with ScriptedModel(['{"answer": 41}', '{"answer": 42}']) as model:
        assert chat(model).ask_json(ASK, validate=even) == "even 42"
    assert "answer must be even" in model.requests[1].messages[-1]["content"]
    assert "response_format" not in model.requests[0].body


def test_a_reply_that_was_cut_is_not_mended_into_a_shorter_one() -> None:
    cut = Say('{"steps": ["look at A", "look at', finish="length")
    whole = '{"steps": ["look at A", "look at B"]}'
    with ScriptedModel([cut, whole]) as model:
        assert chat(model).ask_json(ASK, validate=lambda v: v["steps"]) == ["look at A", "look at B"]
    assert "cut off" in model.requests[1].messages[-1]["content"]


def test_what_is_shown_back_may_not_fit() -> None:
    with ScriptedModel(["no " * 60, GOOD], n_ctx=60) as model:
        assert chat(model).ask_json(ASK, schema=SCHEMA)["answer"] == 42
        assert [len(r.messages) for r in model.requests] == [2, 4, 2]


@pytest.mark.parametrize(
    ("formats", "sent"),
    [({"json_object", "text"}, ["json_schema", "json_object"]), ({"text"}, ["json_schema", "json_object", None])],
)
def test_a_response_format_the_server_does_not_know_is_dropped(formats: set[str], sent: list[str | None]) -> None:
    with ScriptedModel(lambda body: GOOD, formats=frozenset(formats)) as model:
        client = chat(model)
        for _ in range(2):
            assert client.ask_json(ASK, schema=SCHEMA)["answer"] == 42
    found = [r.body.get("response_format", {}).get("type") for r in model.requests]
    assert found == [*sent, sent[-1]]


# -- the key, proxies, recording --------------------------------------------------------------------------------------


def test_the_key_is_nowhere_but_in_the_request(tmp_path: Path, clock: Clock) -> None:
    key = "sk-topsecret-0123456789"
    echo = openai_error(f"Incorrect API key provided: {key}. Header was Bearer {key}", "invalid_api_key")
    items = [Fail(status, echo) for status in (401, 400, 404)] + [Fail(429, echo)] * TRIES
    said = []
    with ScriptedModel(items, key=key) as model:
        client = chat(model, clock, stream=False, usage_path=tmp_path / "u.json", backoff_path=tmp_path / "b.json")
        for _ in range(4):
            with pytest.raises(DrError) as caught:
                client.ask(ASK)
            said.append("".join(traceback.format_exception(caught.value)) + repr(caught.value))
        said += [repr(client), str(vars(client)), repr(vars(client._transport)), repr(ApiKey(key)), str(ApiKey(key))]
        assert model.requests[0].headers["authorization"] == f"Bearer {key}"
    said += [p.read_text(encoding="utf-8") for p in tmp_path.iterdir()]
    assert not [text for text in said if "topsecret" in text]
    assert "<api key>" in said[0]


@pytest.mark.parametrize("key", ["sk-topsecret\nX-Evil: 1", "“sk-topsecret”", "sk topsecret", "sk-topsecret\x7f"])
def test_a_key_that_cannot_be_one(key: str) -> None:
    with pytest.raises(FatalError, match="api_key") as caught:
        Chat("http://127.0.0.1/v1", "m", key)
    assert "topsecret" not in str(caught.value)


def test_the_machines_own_server_is_not_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with ScriptedModel(["42"], key="") as model:
        assert chat(model).ask(ASK).text == "42"
    assert "authorization" not in model.requests[0].headers


@pytest.mark.parametrize("key", ["", "sk-other-0123456789"])
def test_another_machine_is_asked_through_the_proxy_and_with_no_other_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clock: Clock, key: str
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine model.example login someone password else\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with ScriptedModel([], key=key) as proxy:  # any server will do: it is asked for a path it does not have
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy.base_url.removesuffix("/v1"))
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(FatalError, match="HTTP 404"):
            Chat("http://model.example/v1", "m", key, clock=clock, sleep=clock.sleep).ask(ASK)
        assert proxy.requests[0].path == "http://model.example/v1/chat/completions"
        assert proxy.requests[0].headers.get("authorization", "") == (f"Bearer {key}" if key else "")


def test_a_transport_can_record_and_replay() -> None:
    kept: dict[str, Response] = {}

    def recorder(inner: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def send(request: Request) -> Response:
            kept[request.key] = inner(request)
            return kept[request.key]

        return send

    with ScriptedModel(["forty-two"]) as model:
        through = recorder(HttpTransport(Address.of(model.base_url), ApiKey(model.key)))
        first = chat(model, transport=through).ask(ASK, temperature=0.1)
    again = Chat("http://127.0.0.1:9/v1", model.name, transport=lambda request: kept[request.key])
    assert again.ask(ASK, temperature=0.1) == first
    assert model.key.encode() not in next(iter(kept.values())).body


def test_the_key_of_a_request() -> None:
    body = {"model": "m", "messages": ASK, "temperature": 0.1}
    same = {"temperature": 0.1, "messages": [dict(reversed(m.items())) for m in ASK], "model": "m", "stream": True}
    assert Request(body).key == Request(same).key
    assert re.fullmatch("[0-9a-f]{64}", Request(body).key)
    for change in ({"model": "n"}, {"temperature": 0.2}, {"messages": ASK[1:]}, {"max_tokens": 1}):
        assert Request(body).key != Request({**body, **change}).key


def test_half_a_character_of_a_damaged_source_can_be_asked_about() -> None:
    with ScriptedModel(["42"]) as model:
        assert chat(model).ask([{"role": "user", "content": "broken \ud83d here"}]).text == "42"
    assert model.requests[0].messages[0]["content"] == "broken ? here"


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = "import sys, dr.chat; print([m for m in ('requests', 'json_repair', 'filelock') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, env={**os.environ}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"

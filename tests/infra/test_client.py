import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.client import ModelClient, peak_rate
from infra.endpoint import (
    BadRequest,
    ContextOverflow,
    Endpoint,
    EngineDied,
    ModelError,
    ServerDown,
    ServerSlow,
    Unauthorized,
    UnknownModel,
    UnusableReply,
)
from infra.journal import Journal
from tests.infra.servers import (
    CutOffServer,
    DribblingServer,
    FlakyServer,
    ModelServer,
    RefusingServer,
    SayingServer,
    completion,
    down,
    running,
)


def at(url: str, **fields: Any) -> Endpoint:
    return replace(Endpoint(url, "", "echo", "r1"), **fields)


@asynccontextmanager
async def asking(server: ModelServer, journal: Journal | None = None, **options: Any) -> AsyncIterator[ModelClient]:
    with running(server) as url:
        async with ModelClient(at(url), journal, **options) as client:
            yield client


async def test_ids_go_out_and_come_back_as_they_are() -> None:
    async with asking(ModelServer()) as client:
        said = await client.complete([5, 6, 7], max_tokens=9, seed=1)
    assert (said.token_ids, said.logprobs, said.prompt_tokens, said.finish) == ((5, 6, 7), (-0.5,) * 3, 3, "stop")


async def test_a_call_states_its_whole_sampling() -> None:
    server = ModelServer()
    async with asking(server) as client:
        await client.complete([5], max_tokens=2, seed=7, temperature=0.6, stop_token_ids=[2], cache_salt="v3")
    assert server.requests == [
        {
            "model": "echo",
            "prompt": [5],
            "max_tokens": 2,
            "seed": 7,
            "temperature": 0.6,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "logprobs": 0,
            "return_token_ids": True,
            "skip_special_tokens": False,
            "stop_token_ids": [2],
            "cache_salt": "v3",
        }
    ]


async def test_a_repeated_call_never_reaches_the_server(tmp_path: Path) -> None:
    server = ModelServer()
    first, again = [], []
    for said in (first, again):
        with Journal(tmp_path / "calls") as journal:
            async with asking(server, journal) as client:
                said += await asyncio.gather(*(client.complete([5, 6], max_tokens=9, seed=s % 3) for s in range(9)))
    assert server.asked.total() == 3 and first == again
    assert (journal.hits, journal.misses, client.stats.calls) == (9, 0, 0)


async def test_other_weights_are_asked_again(tmp_path: Path) -> None:
    server = ModelServer()
    with Journal(tmp_path / "calls") as journal, running(server) as url:
        for revision in ("r1", "r2", "r1"):
            async with ModelClient(at(url, revision=revision), journal) as client:
                await client.complete([5], max_tokens=1, seed=1)
    assert server.asked.total() == 2


async def test_no_more_calls_than_allowed_are_with_the_server() -> None:
    server = ModelServer(delay_s=0.05)
    async with asking(server, concurrency=4) as client:
        await asyncio.gather(*(client.complete([5], max_tokens=1, seed=s) for s in range(12)))
    assert server.peak == client.stats.max_in_flight == 4


async def test_busy_time_counts_the_wall_once_and_not_the_pauses() -> None:
    async with asking(ModelServer(delay_s=0.2)) as client:
        started = time.monotonic()
        await asyncio.gather(*(client.complete([5, 6], max_tokens=2, seed=s) for s in range(8)))
        await asyncio.sleep(0.5)
        await client.complete([5, 6], max_tokens=2, seed=9)
        wall = time.monotonic() - started
    stats = client.stats
    assert (stats.calls, stats.prompt_tokens, stats.completion_tokens, stats.in_flight) == (9, 18, 18, 0)
    assert 0.4 <= stats.busy_s <= wall - 0.5  # two waits of 0.2 s at least, without the pause between
    assert stats.tokens_per_s == pytest.approx(18 / stats.busy_s)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_passing_failure_is_tried_again(status: int) -> None:
    server = FlakyServer(failures=2, status=status)
    async with asking(server) as client:
        assert (await client.complete([5], max_tokens=1, seed=1)).token_ids == (5,)
    assert (server.asked.total(), client.stats.retries, client.stats.calls) == (3, 2, 1)


async def test_a_failure_that_stays_ends_with_the_servers_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.client._FIRST_PAUSE_S", 0.001)
    server = RefusingServer(503, "out of memory")
    async with asking(server) as client:
        with pytest.raises(ServerDown, match="failed 9 times, last with status 503: out of memory; check the server"):
            await client.complete([5], max_tokens=1, seed=1)
    assert server.asked.total() == 9


@pytest.mark.parametrize(
    ("status", "message", "error"),
    [
        (400, "This model's maximum context length is 64 tokens. However, ...", ContextOverflow),
        (400, "Token id 99 is out of vocabulary", BadRequest),
        (401, "Unauthorized", Unauthorized),
        (404, "The model `echo` does not exist.", UnknownModel),
    ],
)
async def test_a_refusal_is_not_tried_again(status: int, message: str, error: type[ModelError]) -> None:
    server = RefusingServer(status, message)
    async with asking(server) as client:
        with pytest.raises(error) as caught:
            await client.complete([5], max_tokens=1, seed=1)
    assert type(caught.value) is error and message in str(caught.value) and server.asked.total() == 1


async def test_a_server_that_is_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.client._FIRST_PAUSE_S", 0.001)
    with down() as url:
        async with ModelClient(at(url), None) as client:
            with pytest.raises(ServerDown, match="last with ConnectError"):
                await client.complete([5], max_tokens=1, seed=1)


async def test_a_reply_cut_off_on_the_way_is_tried_again_and_then_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.client._FIRST_PAUSE_S", 0.001)
    async with asking(server := CutOffServer()) as client:
        with pytest.raises(ServerDown, match="RemoteProtocolError"):
            await client.complete([5], max_tokens=1, seed=1)
    assert server.asked.total() == 9


async def test_a_server_that_sends_one_byte_at_a_time_ends_by_the_calls_deadline() -> None:
    started = time.monotonic()
    async with asking(DribblingServer(b" ", pause_s=0.05), timeout_s=0.4) as client:
        with pytest.raises(ServerSlow, match=r"no reply within 0\.4 s"):
            await client.complete([5], max_tokens=1, seed=1)
    assert time.monotonic() - started < 3


async def test_the_death_of_our_own_server_is_not_waited_for() -> None:
    def gone() -> None:
        raise EngineDied("memory: its server ended by signal 9")

    with down() as url:
        async with ModelClient(at(url, check=gone), None) as client:
            with pytest.raises(EngineDied):
                await client.complete([5], max_tokens=1, seed=1)


GOOD = completion([5], [5])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "not JSON"),
        (b"[" * 100_000, "not JSON: maximum recursion depth"),
        (b"[]", "body: Input should be a valid dictionary"),
        (b'{"choices": []}', "choices: List should have at least 1 item"),
        (json.dumps({"choices": GOOD["choices"]}).encode(), "usage: Field required"),
        (json.dumps(GOOD | {"choices": [{"text": 7}]}).encode(), "text: Input should be a valid string"),
        (
            json.dumps(GOOD | {"choices": [GOOD["choices"][0] | {"token_ids": [5, 6]}]}).encode(),
            "1 tokens came as 2 ids",
        ),
        (
            json.dumps(GOOD | {"choices": [GOOD["choices"][0] | {"prompt_token_ids": [1, 5]}]}).encode(),
            "changed the prompt",
        ),
        (b"x" * (33 << 20), "a reply of over 32 MiB"),
    ],
    ids=["html", "nested", "list", "no choice", "no usage", "wrong type", "ids and counts", "a second BOS", "huge"],
)
async def test_a_reply_that_is_no_completion_is_named_and_not_repeated(body: bytes, reason: str) -> None:
    async with asking(server := SayingServer(body)) as client:
        with pytest.raises(UnusableReply, match=reason):
            await client.complete([5], max_tokens=1, seed=1)
    assert server.asked.total() == 1


async def test_an_unusable_reply_is_not_kept(tmp_path: Path) -> None:
    with Journal(tmp_path / "calls") as journal:
        async with asking(SayingServer(b"<html>"), journal) as client:
            with pytest.raises(UnusableReply):
                await client.complete([5], max_tokens=1, seed=1)
        assert len(journal) == 0


@pytest.mark.parametrize(
    ("text", "tokens", "reported", "finish"),
    [
        ("", 0, "stop", "stop"),
        (None, 0, "stop", "stop"),
        ("\x00\ufffd\u202e" * 10, 4, "stop", "stop"),
        ("half a pair \ud83d", 4, "stop", "stop"),
        ("word " * 10_000, 10_000, "stop", "length"),
        ("cut", 8, "length", "length"),
        ("ends with its last token", 8, "stop", "stop"),
        ("<tool_call>{", 8, "tool_calls", "length"),
        ("<tool_call>{}", 5, "tool_calls", "stop"),
    ],
)
async def test_whatever_a_model_says_is_a_completion(
    tmp_path: Path, text: str | None, tokens: int, reported: str, finish: str
) -> None:
    choice = {"message": {"content": text}, "finish_reason": reported}
    body = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": tokens}}).encode()
    with Journal(tmp_path / "calls") as journal:
        async with asking(SayingServer(body), journal) as client:
            said = await client.chat([{"role": "user", "content": "?"}], max_tokens=8, seed=1)
            assert said == await client.chat([{"role": "user", "content": "?"}], max_tokens=8, seed=1)
    assert said.text.encode().decode() == (text or "").replace("\ud83d", "\ufffd")
    assert (said.completion_tokens, said.finish) == (tokens, finish)


async def test_a_server_without_token_ids_is_asked_only_what_it_knows() -> None:
    body = (
        b'{"choices": [{"text": "hi", "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}'
    )
    with running(server := SayingServer(body)) as url:
        async with ModelClient(at(url, vllm=False), None) as client:
            said = await client.complete([5], max_tokens=2, seed=1, stop=["\n"])
            with pytest.raises(BadRequest, match="takes no stop_token_ids; give stop strings"):
                await client.complete([5], max_tokens=2, seed=1, stop_token_ids=[2])
    assert (said.text, said.token_ids, said.logprobs) == ("hi", (), ())
    assert set(server.requests[0]) == {"model", "prompt", "max_tokens", "seed", "temperature", "top_p", "stop"}


async def test_the_peak_rate_is_completion_tokens_over_wall_time() -> None:
    async with asking(ModelServer(delay_s=0.5)) as client:
        started = time.monotonic()
        rate = await peak_rate(client, [5, 6, 7], n=8, max_tokens=3)
        wall = time.monotonic() - started
    assert 8 * 3 / wall <= rate <= 8 * 3 / 0.5  # 8 calls of 3 tokens, all at once, in 0.5 s and the time to send them


async def test_a_cancelled_call_frees_its_slot() -> None:
    async with asking(ModelServer(delay_s=0.2), concurrency=1) as client:
        waiting = asyncio.create_task(client.complete([5], max_tokens=1, seed=1))
        await asyncio.sleep(0.05)
        waiting.cancel()
        assert (await client.complete([6], max_tokens=1, seed=1)).token_ids == (6,)
    assert client.stats.in_flight == 0

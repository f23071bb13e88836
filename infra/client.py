"""Asking a served model: token ids in, token ids out, each call made once.

Invariants: at most `concurrency` calls are with the server; every call ends by its deadline; a repeated call comes from
the journal; whatever the model says, however odd, is a `Completion`, and everything else is a `ModelError`.
"""

import asyncio
import itertools
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Annotated, Any, Literal

import httpx
from pydantic import BaseModel, BeforeValidator, Field, JsonValue, ValidationError

from infra.endpoint import (
    BadRequest,
    ContextOverflow,
    Endpoint,
    ServerDown,
    ServerSlow,
    Unauthorized,
    UnknownModel,
    UnusableReply,
    behind_proxy,
    error_message,
    trusted,
)
from infra.journal import Journal, call_key
from schemas.base import Record, content_hash

# Half a minute in all: as long as a server of our own may take to be seen dead, or one of others to come back.
_TRIES = 9
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 8.0
_POOL = 8
"""Connections of a pool, about. Every request looks through all of its pool's, several times: with 128 in one, three fifths of
the time of a busy event loop went there."""
_MAX_REPLY_BYTES = 32 << 20
_MOST_TOKENS = 1 << 31
"""A count above this is no count, and would fit no column."""

# Sent with every call, so that the server's defaults decide nothing.
_PLAIN_SAMPLING = {"top_p": 1.0}
_PLAIN_VLLM_SAMPLING = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "return_token_ids": True}


class Completion(Record):
    """What a model wrote. `token_ids` are the sampled ids and `logprobs` the sampler's, one each.

    Both are empty where the server gives none (chat gives no log-probabilities). `token_ids` include the token that
    stopped it; `text` does not. `finish` is `length` where a limit cut it, whatever else the server calls that. `version`
    names the weights where a sampler knows them.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    prompt_tokens: int
    completion_tokens: int
    finish: Literal["stop", "length"]
    call_id: str
    version: str = ""


@dataclass
class Stats:
    """What a client asked of its server; calls served from the journal are not in it."""

    calls: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    busy_s: float = 0.0
    """Wall seconds with at least one call in flight."""

    @property
    def tokens_per_s(self) -> float:
        """Completion tokens over busy seconds."""
        return self.completion_tokens / self.busy_s if self.busy_s else 0.0


class ModelClient:
    """Calls to one endpoint, inside `async with`. Belongs to the event loop it was entered on."""

    def __init__(
        self, endpoint: Endpoint, journal: Journal | None, concurrency: int = 128, *, timeout_s: float = 600.0
    ) -> None:
        """Without a journal every call is made. `timeout_s` bounds a call with its retries, from when it is sent."""
        self.endpoint = endpoint
        self.stats = Stats()
        self._journal = journal
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(concurrency)
        self._busy_since = 0.0
        self._pools = [
            httpx.AsyncClient(
                headers=endpoint.headers,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=_POOL, keepalive_expiry=4),
                timeout=httpx.Timeout(None, connect=10),
                trust_env=behind_proxy(endpoint.url),
                verify=trusted(),
            )
            for _ in range(-(-concurrency // _POOL))
        ]
        self._turns = itertools.cycle(self._pools)

    async def __aenter__(self) -> "ModelClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(pool.aclose() for pool in self._pools))

    async def complete(
        self,
        prompt_ids: Sequence[int],
        *,
        max_tokens: int,
        seed: int,
        temperature: float = 1.0,
        stop: Sequence[str] = (),
        stop_token_ids: Sequence[int] = (),
        cache_salt: str | None = None,
    ) -> Completion:
        """Continue `prompt_ids`, exactly these, with log-probabilities after temperature.

        `cache_salt` keeps calls under other weights out of the server's prefix cache. Raises `ModelError`; `JournalError`.
        """
        call: dict[str, Any] = {"prompt": list(prompt_ids), "max_tokens": max_tokens}
        call |= _sampling(temperature, seed, stop)
        if self.endpoint.vllm:
            call |= _PLAIN_VLLM_SAMPLING | {"logprobs": 0, "skip_special_tokens": False}
            call |= {"stop_token_ids": list(stop_token_ids)} | ({"cache_salt": cache_salt} if cache_salt else {})
        elif stop_token_ids:
            raise BadRequest(
                f"{self.endpoint.url}: takes no stop_token_ids; give stop strings, or serve the model with vllm"
            )
        return await self._once("/completions", call)

    async def chat(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        seed: int,
        temperature: float = 1.0,
        stop: Sequence[str] = (),
    ) -> Completion:
        """The assistant's next message after `messages` (`role`, `content`), by the server's chat template. Raises as `complete`."""
        call: dict[str, Any] = {"messages": [dict(message) for message in messages], "max_tokens": max_tokens}
        call |= _sampling(temperature, seed, stop)
        if self.endpoint.vllm:
            call |= _PLAIN_VLLM_SAMPLING
        return await self._once("/chat/completions", call)

    async def _once(self, path: str, call: dict[str, Any]) -> Completion:
        identity = {"model": self.endpoint.model, "revision": self.endpoint.revision, "path": path, "call": call}
        key = call_key(identity)

        async def make() -> JsonValue:
            reply = await self.ask(path, {"model": self.endpoint.model, **call})
            completion = _completion(self.endpoint.url, reply, call, key)
            self.stats.prompt_tokens += completion.prompt_tokens
            self.stats.completion_tokens += completion.completion_tokens
            return completion.model_dump(mode="json")

        stored = await (self._journal.once(key, _summary(identity), make) if self._journal is not None else make())
        return Completion.model_validate(stored)

    async def ask(self, path: str, body: Mapping[str, Any]) -> bytes:
        """One call as it is, past the journal, with retries: the reply's body. Counts in `stats.in_flight` and `busy_s`."""
        async with self._slots:
            self._enter()
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await self._ask(path, body)
            except TimeoutError as error:
                self.endpoint.check()
                raise ServerSlow(
                    f"{self.endpoint.url}: no reply within {self._timeout_s:g} s; lower the concurrency or raise the timeout"
                ) from error
            finally:
                self._leave()

    async def _ask(self, path: str, body: Mapping[str, Any]) -> bytes:
        failure = ""
        for attempt in range(_TRIES):
            if attempt:
                self.stats.retries += 1
                pause = min(_FIRST_PAUSE_S * 2 ** (attempt - 1), _LONGEST_PAUSE_S)
                await asyncio.sleep(pause * random.uniform(0.75, 1.25))
            self.endpoint.check()
            try:
                status, reply = await self._post(path, body)
            except httpx.HTTPError as error:
                failure = f"{type(error).__name__} {error}".strip()
                continue
            if status == 200:
                return reply
            failure = f"status {status}: {error_message(_json(reply))}"
            if status < 500 and status not in {408, 429}:
                raise _refusal(self.endpoint, status, failure)
        self.endpoint.check()
        raise ServerDown(
            f"{self.endpoint.url}: failed {_TRIES} times, last with {failure}; check the server, then retry"
        )

    async def _post(self, path: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
        async with next(self._turns).stream("POST", f"{self.endpoint.url}{path}", json=body) as response:
            chunks, size = [], 0
            async for chunk in response.aiter_bytes():
                chunks.append(chunk)
                size += len(chunk)
                if size > _MAX_REPLY_BYTES:
                    raise UnusableReply(
                        f"{self.endpoint.url}: a reply of over {_MAX_REPLY_BYTES >> 20} MiB; lower max_tokens"
                    )
            return response.status_code, b"".join(chunks)

    def _enter(self) -> None:
        stats = self.stats
        if not stats.in_flight:
            self._busy_since = time.monotonic()
        stats.calls += 1
        stats.in_flight += 1
        stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)

    def _leave(self) -> None:
        self.stats.in_flight -= 1
        if not self.stats.in_flight:
            self.stats.busy_s += time.monotonic() - self._busy_since


async def peak_rate(client: ModelClient, prompt_ids: Sequence[int], n: int, max_tokens: int) -> float:
    """Completion tokens a second of `n` equally long calls at once: the server's own maximum at that batch.

    Past the journal and with stop tokens ignored; give the client nothing else to do meanwhile, and `concurrency >= n`.
    """
    call = {"model": client.endpoint.model, "prompt": list(prompt_ids), "max_tokens": max_tokens, "ignore_eos": True}
    started = time.monotonic()
    replies = await asyncio.gather(*(client.ask("/completions", call | {"seed": seed}) for seed in range(n)))
    tokens = sum(_parsed(client.endpoint.url, reply).usage.completion_tokens for reply in replies)
    return tokens / (time.monotonic() - started)


class _Logprobs(BaseModel):
    token_logprobs: list[float] = []


def _clean(text: object) -> object:
    """Text that can be written as UTF-8: half of a surrogate pair, which JSON can spell, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(text, str) else text


_Text = Annotated[str, BeforeValidator(_clean)]


class _Message(BaseModel):
    content: _Text | None = None


class _Choice(BaseModel):
    text: _Text | None = None
    message: _Message | None = None
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None


class _Usage(BaseModel):
    prompt_tokens: int = Field(ge=0, le=_MOST_TOKENS)
    completion_tokens: int = Field(ge=0, le=_MOST_TOKENS)


class _Reply(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage


def _parsed(url: str, reply: bytes) -> _Reply:
    try:
        return _Reply.model_validate(json.loads(reply))
    except ValidationError as error:
        first = error.errors()[0]
        why = f"{'.'.join(map(str, first['loc'])) or 'body'}: {first['msg']}"
    except (ValueError, RecursionError) as error:
        why = f"not JSON: {error}"
    raise UnusableReply(f"{url}: the reply is no completion ({why}); check the server")


def _completion(url: str, reply: bytes, call: Mapping[str, Any], call_id: str) -> Completion:
    parsed = _parsed(url, reply)
    choice, used = parsed.choices[0], parsed.usage
    text = choice.text if choice.message is None else choice.message.content
    ids = choice.token_ids or []
    logprobs = choice.logprobs.token_logprobs if choice.logprobs and ids else []
    if (ids and len(ids) != used.completion_tokens) or (logprobs and len(logprobs) != len(ids)):
        raise UnusableReply(
            f"{url}: {used.completion_tokens} tokens came as {len(ids)} ids and {len(logprobs)} log-probabilities; "
            f"check the server's version"
        )
    if "prompt" in call and choice.prompt_token_ids not in (None, call["prompt"]):
        raise UnusableReply(f"{url}: the server changed the prompt's token ids; check that its tokenizer adds none")
    cut = choice.finish_reason == "length" or (
        choice.finish_reason != "stop" and used.completion_tokens >= call["max_tokens"]
    )
    return Completion(
        text=text or "",
        token_ids=tuple(ids),
        logprobs=tuple(logprobs),
        prompt_tokens=used.prompt_tokens,
        completion_tokens=used.completion_tokens,
        finish="length" if cut or used.completion_tokens > call["max_tokens"] else "stop",
        call_id=call_id,
    )


def _sampling(temperature: float, seed: int, stop: Sequence[str]) -> dict[str, Any]:
    return _PLAIN_SAMPLING | {"temperature": temperature, "seed": seed} | ({"stop": list(stop)} if stop else {})


def _summary(identity: Mapping[str, Any]) -> JsonValue:
    """The call without its prompt, which the task and the seed make again."""
    call = identity["call"]
    prompt = call.get("prompt", call.get("messages"))
    rest = {name: value for name, value in call.items() if name not in {"prompt", "messages"}}
    return {**identity, "call": rest, "prompt_hash": content_hash(prompt), "prompt_length": len(prompt)}


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")


def _refusal(endpoint: Endpoint, status: int, failure: str) -> BadRequest | Unauthorized | UnknownModel:
    lower = failure.lower()
    if status in {401, 403}:
        return Unauthorized(
            f"{endpoint.url}: refuses the API key ({failure}); set TOUCHSTONE_API_KEY to the server's key"
        )
    if status == 404 and "model" in lower:
        return UnknownModel(f"{endpoint.model}: {endpoint.url} does not serve it ({failure}); name a model it has")
    if "maximum context length" in lower or "context_length_exceeded" in lower:
        return ContextOverflow(f"{endpoint.model}: {failure}; shorten the prompt or lower max_tokens")
    return BadRequest(
        f"{endpoint.url}: refuses the call ({failure}); the call is at fault, repeating it would not help"
    )

"""Exchanging the weights of a model server while it runs: no request sees a mixture, no key or value of old weights is used.

A source is a folder or the address of an `infra.broadcast.Offer`. Needs `EngineOptions.exchange`. After an error the server
may be paused, with weights that nobody knows: end it.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx

from infra.endpoint import Endpoint, ModelError, ServerDown, ServerSlow, behind_proxy, error_message, trusted

Post = Callable[[str, dict[str, Any]], Awaitable[Any]]


class WrongWeights(ModelError):
    """A server that does not compute with what was published."""


async def exchange(endpoint: Endpoint, source: str, sha256: str, version: str, timeout_s: float) -> None:
    """Let running requests end, load what is at `source`, prove it to be what has this digest, forget cached keys and values, go on.

    Each of these within `timeout_s`. Raises `WrongWeights` or another `ModelError`.
    """
    async with _posting(endpoint, timeout_s) as post:
        await post("/pause?mode=wait", {})
        await _told(post, endpoint, "take_weights", source, sha256)
        if await post("/reset_prefix_cache", {}) != {"success": True}:
            raise WrongWeights(f"{endpoint.url}: still caches keys and values of the weights before; start it again")
        await post("/update_weight_version", {"new_version": version})
        await post("/resume", {})


async def prove(endpoint: Endpoint, source: str, sha256: str, timeout_s: float) -> None:
    """Return once the server was seen to compute with what is at `source`, and that to have this digest.

    Raises `WrongWeights` or another `ModelError`.
    """
    async with _posting(endpoint, timeout_s) as post:
        await _told(post, endpoint, "check_weights", source, sha256)


async def _told(post: Post, endpoint: Endpoint, method: str, source: str, sha256: str) -> None:
    reply = await post("/collective_rpc", {"method": method, "args": [source, sha256]})
    faults = reply["results"]
    if not faults or any(faults):
        raise WrongWeights(f"{source}: {'; '.join(faults) or 'no worker took it'}; publish the weights again")


@contextlib.asynccontextmanager
async def _posting(endpoint: Endpoint, timeout_s: float) -> AsyncIterator[Post]:
    root = endpoint.url.removesuffix("/v1")
    async with httpx.AsyncClient(
        headers=endpoint.headers,
        timeout=httpx.Timeout(timeout_s, connect=10),
        trust_env=behind_proxy(root),
        verify=trusted(),
    ) as http:

        async def post(path: str, body: dict[str, Any]) -> Any:
            endpoint.check()
            try:
                reply = await http.post(f"{root}{path}", json=body)
            except httpx.TimeoutException as error:
                raise ServerSlow(f"{root}{path}: no reply within {timeout_s:g} s; end the server") from error
            except httpx.HTTPError as error:
                endpoint.check()
                raise ServerDown(f"{root}{path}: {type(error).__name__} {error}; end the server") from error
            try:
                said = reply.json()
            except ValueError:
                said = reply.text
            if reply.status_code != 200 or not isinstance(said, dict):
                raise ServerDown(f"{root}{path}: status {reply.status_code}: {error_message(said)}; end the server")
            return said

        yield post

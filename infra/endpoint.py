"""A model server as its callers see it, everything that can be wrong with it, and `attach` to one that runs elsewhere."""

import ipaddress
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from schemas.base import content_hash
from schemas.errors import TouchstoneError

_MAX_LIST_BYTES = 1 << 20
_NAMES_TOLD = 10


class ModelError(TouchstoneError):
    """A model call that gave no completion. Never the model's own fault: odd text is a completion."""


class HopelessError(ModelError):
    """Every further call to this server would end the same way."""


class EngineDied(HopelessError):
    """The server this process started is gone."""


class ServerDown(ModelError):
    """Nothing answers, or it went on failing."""


class ServerSlow(ModelError):
    """No answer within the time allowed."""


class NotAModelServer(HopelessError):
    """Something answers, but not with the OpenAI-compatible interface."""


class UnknownModel(HopelessError):
    """The server does not have the model."""


class Unauthorized(HopelessError):
    """The server refuses the API key."""


class BadRequest(ModelError):
    """The server refuses the call; repeating it would not help."""


class ContextOverflow(BadRequest):
    """Prompt and completion do not fit the model's context."""


class UnusableReply(ModelError):
    """The server answered with something that is no completion."""


def always_up() -> None:
    """The `check` of a server whose process is not ours, or not in this process."""


@dataclass(frozen=True)
class Endpoint:
    """A served model. `url` ends in `/v1`; `revision` identifies the weights in journals and difficulty records."""

    url: str
    api_key: str = field(repr=False)
    model: str
    revision: str
    vllm: bool = True
    """Whether it takes token ids and gives them back; other servers give text only."""
    max_model_len: int | None = None
    """Tokens of prompt and completion together; `None` where the server does not say."""
    check: Callable[[], None] = field(default=always_up, repr=False, compare=False)
    """Raises `EngineDied` once the server's process has ended. Costs microseconds."""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


def attach(url: str, model: str, api_key: str = "", *, timeout_s: float = 10.0) -> Endpoint:
    """The endpoint of `model` on a running OpenAI-compatible server, after asking it. Blocks for at most about `timeout_s`.

    The revision names the server and the model: weights swapped behind an unchanged name are not noticed.
    Raises `ServerDown`, `ServerSlow`, `NotAModelServer`, `UnknownModel` or `Unauthorized`.
    """
    url = url.rstrip("/")
    if not _is_address(url):
        raise NotAModelServer(f"{url!r}: is no http address; give one such as http://127.0.0.1:8000/v1")
    served = {card.id: card for card in list_models(url, api_key, timeout_s=timeout_s)}
    if model not in served:
        names = ", ".join(sorted(served)[:_NAMES_TOLD]) or "no model"
        more = f" and {len(served) - _NAMES_TOLD} more" if len(served) > _NAMES_TOLD else ""
        raise UnknownModel(f"{model}: {url} serves {names}{more}; name one of these")
    card = served[model]
    return Endpoint(
        url=url,
        api_key=api_key,
        model=model,
        revision=content_hash([url, model, card.root]),
        vllm=card.owned_by == "vllm",
        max_model_len=card.max_model_len,
    )


class ModelCard(BaseModel):
    """One model of a server's list."""

    id: str
    owned_by: str = ""
    root: str | None = None
    max_model_len: int | None = None


class _ModelList(BaseModel):
    data: list[ModelCard]


def list_models(url: str, api_key: str, *, timeout_s: float = 10.0) -> list[ModelCard]:
    """What `url` serves. Raises as `attach` does."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        status, body = _get(f"{url}/models", headers, timeout_s)
    except (httpx.TimeoutException, TimeoutError) as error:
        raise ServerSlow(
            f"{url}: no answer within {timeout_s:g} s; check the server or its load, then retry"
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ServerDown(f"{url}: no server answers ({error}); start one or correct the address") from error
    if status in {401, 403}:
        raise Unauthorized(f"{url}: refuses the API key (status {status}); set TOUCHSTONE_API_KEY to the server's key")
    try:
        if status != 200:
            raise ValueError(f"status {status}")
        return _ModelList.model_validate_json(body).data
    except (ValidationError, ValueError) as error:
        why = "no list of models" if isinstance(error, ValidationError) else str(error)
        raise NotAModelServer(
            f"{url}: {url}/models gives {why}; give the base address of an OpenAI-compatible server, usually ending in /v1"
        ) from error


def _get(url: str, headers: dict[str, str], timeout_s: float) -> tuple[int, bytes]:
    """Status and body. The deadline also ends a server that sends one byte at a time; an endless body is cut off."""
    deadline = time.monotonic() + timeout_s
    body = b""
    with httpx.stream("GET", url, headers=headers, timeout=timeout_s, trust_env=behind_proxy(url)) as response:
        for chunk in response.iter_bytes():
            body += chunk
            if time.monotonic() > deadline:
                raise TimeoutError
            if len(body) > _MAX_LIST_BYTES:
                break
        return response.status_code, body


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half a bracket, or a port that is no number
        return False


@cache
def trusted() -> ssl.SSLContext:
    """Whose certificates are believed; read once, which takes long enough to be felt by all that waits."""
    return httpx.create_ssl_context()


def behind_proxy(url: str) -> bool:
    """Whether the environment's proxy settings apply: never to this machine itself."""
    host = urlsplit(url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def error_message(body: Any) -> str:
    """The server's own words in an error reply of any of the known shapes, at most 300 characters."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        body = inner.get("message", inner) if isinstance(inner, dict) else inner
    return " ".join(str(body).split())[:300]

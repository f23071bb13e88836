"""Where the parts of a run live: in this process, or as Ray actors on this machine or a cluster.

A part is an object whose methods are all async and whose constructor needs no event loop. Invariants: a call is made once, by
nobody a second time; a caller that is cancelled cancels its call; a part that died stays dead, and every call that was with it
or comes later raises `PartDied`: whoever started it starts another. What a method raises of ours arrives as it was raised.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import ray
from ray.exceptions import RayError, RayTaskError, TaskCancelledError

from schemas.errors import TouchstoneError

T = TypeVar("T")
LOCAL = "local"
"""The address of a Ray that is started here and ends with its place."""
_CONCURRENT = 100_000
"""Calls that a part may have at once: its own rules bound them, and nothing waits unseen in a queue of Ray's."""
_TRIES = 3
"""At starting Ray here: it gives its node 30 s, too few on a busy machine."""
_ROOT = str(Path(__file__).parents[1])
_STARTED_HERE = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
}
"""Of a Ray that is started here: it tells nobody, says nothing, and its actors compute like any other process."""


class PlaceError(TouchstoneError):
    """A place where no part can be started."""


class PartDied(TouchstoneError):
    """The process of a part has ended, or cannot be reached any more; `part` is its name."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(f"{part}: the process it ran in is gone ({why}); start it again")
        self.part = part


class Place(Protocol):
    """Starts parts and ends them."""

    def start(self, make: Callable[..., T], *args: Any, cpus: float = 0, gpus: float = 0) -> T:
        """`make(*args)` there. The answer has its async methods, and may be an argument of another part.

        `cpus` and `gpus` are set aside for it where the place is a cluster; a part that fits nowhere waits. What `make`
        raises of ours is raised here, or by the part's first call.
        """
        ...

    def name(self, part: object) -> str:
        """What `PartDied` calls the part; no two parts that were ever started here share a name."""
        ...

    def stop(self, part: object) -> None:
        """End a part at once, in the middle of whatever it does; one that is dead already is no error."""
        ...

    def close(self) -> None:
        """End every part, and what was started for them."""
        ...


class Here:
    """Parts are plain objects of this process; they end by their own `close`."""

    def start(self, make: Callable[..., T], *args: Any, cpus: float = 0, gpus: float = 0) -> T:
        return make(*args)

    def name(self, part: object) -> str:
        return f"{type(part).__name__}-{id(part)}"

    def stop(self, part: object) -> None:
        return None

    def close(self) -> None:
        return None


class RayPlace:
    """Parts are Ray actors, each a process. A cluster that runs elsewhere is left as it was found."""

    def __init__(self, address: str) -> None:
        """`local`, `auto` or `ray://host:10001`. Blocks while Ray starts, for seconds. Raises `PlaceError`."""
        self._connected = not ray.is_initialized()
        self._parts: list[_RayPart] = []
        if self._connected:
            _connect(address)

    def start(self, make: Callable[..., T], *args: Any, cpus: float = 0, gpus: float = 0) -> T:
        options = {"num_cpus": cpus, "num_gpus": gpus, "runtime_env": {"env_vars": {"PYTHONPATH": _path()}}}
        name = getattr(make, "__name__", "part")
        part = _RayPart(f"{name}-{len(self._parts)}", _host(name).options(**options).remote(make, *args))
        self._parts.append(part)
        return cast(T, part)

    def name(self, part: object) -> str:
        assert isinstance(part, _RayPart)
        return part._name

    def stop(self, part: object) -> None:
        assert isinstance(part, _RayPart)
        if ray.is_initialized():
            ray.kill(part._actor, no_restart=True)

    def close(self) -> None:
        for part in self._parts:
            self.stop(part)
        self._parts.clear()
        if self._connected:
            ray.shutdown()


def place_at(address: str | None) -> Place:
    """The place that `Settings.ray` names. Raises `PlaceError`."""
    return Here() if address is None else RayPlace(address)


def own_address() -> str:
    """The address by which other processes of the place reach this one: loopback where there is no cluster."""
    if not ray.is_initialized():
        return "127.0.0.1"
    return str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]


def _connect(address: str) -> None:
    here = address == LOCAL
    if here:
        os.environ.update({name: value for name, value in _STARTED_HERE.items() if name not in os.environ})
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if here:
        options["include_dashboard"] = False
    for left in reversed(range(_TRIES if here else 1)):
        try:
            ray.init(address, **options)
            return
        except Exception as error:  # what Ray raises is anything, down to `Exception` itself
            ray.shutdown()
            if not left:
                why = " ".join(str(error).split())[:300]
                way_out = "free the machine" if here else f"start a cluster, correct it, or use {LOCAL}"
                raise PlaceError(f"ray={address}: cannot be used ({why}); {way_out}") from error


def _path() -> str:
    """Where an actor finds our packages, wherever it is started."""
    return os.pathsep.join([_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])


class _Host:
    """Holds a part in an actor. A part that could not be made says so at every call."""

    def __init__(self, make: Callable[..., Any], *args: Any) -> None:
        self._part: Any = None
        self._broken: TouchstoneError | None = None
        try:
            self._part = make(*args)
        except TouchstoneError as error:
            self._broken = error

    async def call(self, method: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self._broken is not None:
            raise self._broken
        return await getattr(self._part, method)(*args, **named)


def _host(name: str) -> Any:
    """A class of actors whose processes are called `ray::<name>`, so that a person finds the one to look at."""
    return cast(Any, ray.remote)(max_restarts=0, max_task_retries=0, max_concurrency=_CONCURRENT)(
        type(name, (_Host,), {})
    )


class _RayPart:
    """Stands for a part in another process; pickled, it stands for it there too."""

    def __init__(self, name: str, actor: Any) -> None:
        self._name, self._actor = name, actor

    def __reduce__(self) -> tuple[Any, ...]:
        return _RayPart, (self._name, self._actor)

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        if method.startswith("_"):
            raise AttributeError(method)

        async def call(*args: Any, **named: Any) -> Any:
            try:
                ref = self._actor.call.remote(method, args, named)
                try:
                    return await ref
                except asyncio.CancelledError:
                    ray.cancel(ref)
                    raise
            except RayTaskError as error:
                raise (error.cause if isinstance(error.cause, TouchstoneError) else error) from None
            except TaskCancelledError:
                raise asyncio.CancelledError from None
            except RayError as error:
                raise PartDied(self._name, str(error).strip().splitlines()[-1][:200]) from None

        return call

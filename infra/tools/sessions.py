"""Episodes' tools over MCP servers, which may die at any time without an episode losing anything.

Invariants: what a session's state is, is told by its journal alone: any doubt about a server's copy (a call that was cut,
cancelled or late, a server that died) throws the copy away, and the next call makes another one from the journal, under a new
name. A `SESSION` call enters the journal when its answer is here. An `OUTSIDE` call is sent once.
"""

import asyncio
import itertools
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType

from infra.tools.base import Effect, ToolDown, ToolResult, ToolSession, ToolSpec
from infra.tools.local import ToolClash
from infra.tools.replicas import Failed, Pool, Replica, pause
from schemas.episode import ToolOptions, ToolServer
from schemas.trajectory import ToolCall

_CLOSE_S = 5.0
"""What servers have to end in by themselves."""
_TRIES = 5
"""A call that failed so often in servers' hands is what breaks them; more tries would end other sessions' copies too."""


class McpTools:
    """`Tools` over the servers of `options`, and `own` (name: command) of ours, while its `async with` block runs."""

    def __init__(self, options: ToolOptions, own: Mapping[str, Sequence[str]] = {}) -> None:
        servers = (
            *options.servers,
            *(ToolServer(name=n, command=tuple(c), replicas=options.replicas) for n, c in own.items()),
        )
        self._options = options
        self._pools = [Pool(server.name, _replicas(server, options)) for server in servers]
        self._of: dict[str, Pool] = {}
        self.specs: Mapping[str, ToolSpec] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "McpTools":
        """Raises `ToolDown` where a server cannot be reached, `ToolClash` where two have a tool of one name."""
        try:
            for pool in self._pools:
                for replica in pool.replicas:
                    self.spawn(replica.run())
            await asyncio.gather(*(pool.started(self._options.total_seconds) for pool in self._pools))
            for pool in self._pools:
                for name in pool.specs:
                    if name in self._of:
                        both = f"{self._of[name].name} and {pool.name}"
                        raise ToolClash(f"{name}: a tool of {both}; leave one of the servers out, or rename its tool")
                    self._of[name] = pool
            self.specs = {name: pool.specs[name] for name, pool in self._of.items()}
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends in its time whatever the servers do: those of ours that are left then are killed, others let go."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        try:
            await _ended(tasks)
        finally:
            for pool in self._pools:
                for replica in pool.replicas:
                    replica.kill()
        await _ended(tasks)

    def spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def session(self, journal: Sequence[ToolCall] = ()) -> ToolSession:
        """Raises `ToolDown` where no server has a tool of the journal."""
        if gone := sorted({call.name for call in journal} - self.specs.keys()):
            raise ToolDown(f"{', '.join(gone)}: called in the journal, but a tool of no server; add its server")
        return _McpSession(self, self._of, self._options, journal)


async def _ended(tasks: set[asyncio.Task[None]]) -> None:
    if running := {task for task in tasks if not task.done()}:
        await asyncio.wait(running, timeout=_CLOSE_S)


def _replicas(server: ToolServer, options: ToolOptions) -> list[Replica]:
    where: Sequence[str | Sequence[str]] = server.urls or [server.command] * server.replicas
    return [Replica(one, options) for one in where]


@dataclass
class _Copy:
    """A session's state in one server."""

    replica: Replica
    name: str = field(default_factory=lambda: secrets.token_hex(16))
    begun: bool = False
    note: str = ""
    """For the policy: what of its session could not be made again. That is its own doing, as code may depend on the time."""


class _McpSession:
    def __init__(
        self, tools: McpTools, of: Mapping[str, Pool], options: ToolOptions, journal: Sequence[ToolCall]
    ) -> None:
        self._tools, self._of, self._options, self.specs = tools, of, options, tools.specs
        self._journal = list(journal)
        self._copies: dict[str, _Copy] = {}
        self._turn = asyncio.Lock()

    @property
    def journal(self) -> tuple[ToolCall, ...]:
        return tuple(self._journal)

    async def call(self, call: ToolCall) -> ToolResult:
        if (why := _unsendable(call)) is not None:
            return ToolResult(f"arguments: {why}; write plain JSON", error=True)
        pool = self._of[call.name]
        match pool.specs[call.name].effect:
            case Effect.READ:
                return await self._tried(pool, call, lambda: self._read(pool, call))
            case Effect.SESSION:
                async with self._turn:
                    result = await self._tried(pool, call, lambda: self._change(pool, call))
                    if not result.error:
                        self._journal.append(call)
                    return result
            case Effect.OUTSIDE:
                async with self._turn:
                    return await self._sent_once(pool, call)

    async def close(self) -> None:
        copies = list(self._copies.values())
        self._copies.clear()
        for copy in copies:
            copy.replica.sessions -= 1
        await asyncio.gather(*(copy.replica.end(copy.name) for copy in copies))

    async def _tried(self, pool: Pool, call: ToolCall, once: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        """What `once` gives, tried again where it fails, within the total deadline. Raises `ToolDown`."""
        why, made = "no answer", 0
        try:
            async with asyncio.timeout(self._options.total_seconds) as deadline:
                for tries in itertools.count():
                    try:
                        return await once()
                    except Failed as failure:
                        why, made = str(failure), made + failure.made
                    if made == _TRIES:
                        break
                    await asyncio.sleep(pause(tries))
        except TimeoutError:
            if not deadline.expired():
                raise
            why = "; ".join(filter(None, [why, pool.trouble]))
            raise ToolDown(
                f"{call.name}: not made within {self._options.total_seconds:g} s ({why}); check the server or its load"
            ) from None
        raise ToolDown(f"{call.name}: failed {_TRIES} times ({why}); check the server")

    async def _read(self, pool: Pool, call: ToolCall) -> ToolResult:
        replica = await pool.pick(lambda replica: replica.calls)
        return await replica.call(call, None)

    async def _change(self, pool: Pool, call: ToolCall) -> ToolResult:
        copy = await self._copy(pool)
        try:
            result = await copy.replica.call(call, copy.name, begun=copy.begun)
        except BaseException:  # cut or cancelled: whether it was made is not known
            self._drop(pool.name)
            raise
        copy.begun = True
        note, copy.note = copy.note, ""
        return replace(result, text=note + result.text)

    async def _sent_once(self, pool: Pool, call: ToolCall) -> ToolResult:
        sent = False

        async def once() -> ToolResult:
            nonlocal sent
            copy = await self._copy(pool)
            await copy.replica.check()
            sent = True
            try:
                result = await copy.replica.call(call, copy.name, begun=copy.begun)
            except Failed as failure:
                self._drop(pool.name)
                if failure.made:
                    return _unknown(call, str(failure))
                sent = False
                raise
            copy.begun = True
            return result

        try:
            return await self._tried(pool, call, once)
        except ToolDown as error:
            if sent:
                return _unknown(call, str(error))
            raise

    async def _copy(self, pool: Pool) -> _Copy:
        """The session's state in a live server of `pool`, made from the journal where there is none. Raises `Failed`."""
        copy = self._copies.get(pool.name)
        if copy is not None and not copy.replica.live:
            self._drop(pool.name)
            copy = None
        if copy is None:
            replica = await pool.pick(lambda replica: replica.sessions)
            copy = self._copies[pool.name] = _Copy(replica)
            replica.sessions += 1
            try:
                for call in [call for call in self._journal if self._of[call.name] is pool]:
                    if (result := await replica.call(call, copy.name, begun=copy.begun)).error:
                        copy.note = f"note: the session was made again, and a call of {call.name} failed ({result.text[:300]})\n"
                    copy.begun = True
            except BaseException as error:
                self._drop(pool.name)
                if isinstance(error, Failed):  # not the fault of the call that waits for this
                    raise Failed(str(error), made=False) from error
                raise
        return copy

    def _drop(self, server: str) -> None:
        if (copy := self._copies.pop(server, None)) is not None:
            copy.replica.sessions -= 1
            self._tools.spawn(copy.replica.end(copy.name))


def _unknown(call: ToolCall, why: str) -> ToolResult:
    """Not `error`, which would say that nothing changed."""
    return ToolResult(f"{call.name}: it is not known whether the call was made ({why}); find out before you repeat it")


def _unsendable(call: ToolCall) -> str | None:
    """A policy may write what no JSON message can carry; sent, it would end the connection that others share."""
    try:
        json.dumps(call.arguments, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        return str(error)
    return None

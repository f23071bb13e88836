"""The environment: one episode of a policy that thinks, calls tools and answers.

`reset` or `restore`, then `step` until done, then `close`. What a policy wrote is called as written or not at all: a turn
that is no step is told to it as an error, and nothing of it is carried out.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field, ValidationError

from infra.tools.base import Effect, ToolDown, ToolResult, Tools, ToolSession, ToolSpec
from rl.context import MEMORY_TOOLS, Context, ContextState, Ids
from rl.formats import TurnFormat
from rl.tokens import Answer, FormatError, FormatKind, ToolCalls
from schemas.base import Record
from schemas.config import describe_errors
from schemas.episode import Limits
from schemas.errors import TouchstoneError
from schemas.task import Task
from schemas.trajectory import StopReason, ToolCall

NO_SUMMARY = "no_summary"
"""The fault of a turn that was to be a summary and is none."""
_SAYS_NOTHING = frozenset({FormatKind.NO_ACTION, FormatKind.EMPTY_ANSWER})


class EnvError(TouchstoneError):
    """An environment used against its contract."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a turn led to. `text` is what the policy is shown, absent when it is shown nothing more.

    `stop` is set exactly when the episode is over; `calls` are the turn's calls as written, made or not; `fault` says why
    the turn was no step; `error` what broke that is not the policy's.
    """

    text: str | None = None
    calls: tuple[ToolCall, ...] = ()
    stop: StopReason | None = None
    answer: str | None = None
    error: str = ""
    fault: str = ""

    @property
    def done(self) -> bool:
        return self.stop is not None


class Snapshot(Record):
    """An episode between two turns: with its task it goes on in another process. `journal` makes the tools' state again."""

    task_id: str
    turns: int = Field(ge=0)
    errors: int = Field(ge=0)
    repeated: int = Field(ge=0)
    last_calls: tuple[ToolCall, ...]
    context: ContextState
    journal: tuple[ToolCall, ...]


class Env:
    """One episode at a time; environments share nothing but `tools`.

    A task is offered the tools it names, those that someone added to ours (`extra`), and where the context is managed
    `plan` and `note`.
    """

    def __init__(
        self, tools: Tools, format: TurnFormat, limits: Limits | None = None, extra: Sequence[str] = ()
    ) -> None:
        self.limits = limits or Limits()
        self.format = format
        self._tools = tools
        self._extra = tuple(extra)
        self._episode: _Episode | None = None
        self._memory = MEMORY_TOOLS if self.limits.management.mode != "off" else {}
        if clash := sorted(set(self._memory) & set(tools.specs)):
            raise EnvError(f"tools {clash}: the environment has tools of that name itself; rename them on their server")

    def reset(self, task: Task) -> Ids:
        """Start an episode. Gives its first prompt."""
        self._begin(task, ())
        return self.prompt

    def snapshot(self) -> Snapshot:
        """The running episode, as it stands between two turns."""
        it = self._running
        return Snapshot(
            task_id=it.task_id,
            turns=it.turns,
            errors=it.errors,
            repeated=it.repeated,
            last_calls=it.last_calls,
            context=it.context.state,
            journal=it.session.journal,
        )

    def restore(self, task: Task, snapshot: Snapshot) -> Ids:
        """Go on with an episode of the task. The tools' state is made again by their own calls, when one is next called.

        Raises `EnvError` where the snapshot is not of the task and this tokenizer, or no state an episode can have.
        """
        if snapshot.task_id != task.task_id:
            raise EnvError(f"snapshot of task {snapshot.task_id}: is not one of {task.task_id}; give the task it is of")
        try:
            Snapshot.model_validate(snapshot.model_dump())
        except ValidationError as error:
            raise EnvError(f"snapshot of task {task.task_id}: {describe_errors(error)}") from None
        if not self.format.knows(snapshot.context.prompt):
            raise EnvError(f"snapshot of task {task.task_id}: has ids that are no tokens; give the tokenizer it is of")
        it = self._begin(task, snapshot.journal)
        it.turns, it.errors = snapshot.turns, snapshot.errors
        it.repeated, it.last_calls = snapshot.repeated, snapshot.last_calls
        it.context.state = snapshot.context
        return self.prompt

    def _begin(self, task: Task, journal: Sequence[ToolCall]) -> "_Episode":
        if self._episode is not None:
            raise EnvError("reset: an episode is running; close it first")
        wanted = dict.fromkeys((*task.tools, *self._extra))
        missing = sorted(set(wanted) - set(self._tools.specs))
        if missing:
            raise EnvError(f"tools {missing} of task {task.task_id}: not among {sorted(self._tools.specs)}; add them")
        offered = {**{name: self._tools.specs[name] for name in wanted}, **self._memory}
        context = Context(
            self.format, self.limits.management, self.limits.context, task.question, tuple(offered.values())
        )
        self._episode = _Episode(task.task_id, offered, context, self._tools.session(journal))
        return self._episode

    async def close(self) -> None:
        """End the episode, if one is running. The environment can be reset again."""
        if self._episode is not None:
            episode, self._episode = self._episode, None
            await episode.session.close()

    @property
    def _running(self) -> "_Episode":
        if self._episode is None:
            raise EnvError("no episode is running; call reset first")
        return self._episode

    @property
    def prompt(self) -> Ids:
        """What the next turn is to be sampled from."""
        return self._running.context.prompt

    @property
    def shown(self) -> Ids:
        """The end of the prompt that the policy has not continued yet: all of it at the start of a segment."""
        return self._running.context.shown

    @property
    def segment(self) -> int:
        return self._running.context.state.segment

    @property
    def owes_summary(self) -> bool:
        """Whether the next turn is to be a summary in plain text, and no step."""
        return self._running.context.state.owes_summary

    @property
    def budget(self) -> int:
        """Tokens the next turn may sample; none are left when the window is full."""
        return max(0, min(self._wanted, self._running.context.room))

    @property
    def _wanted(self) -> int:
        return self._running.context.memory_tokens if self.owes_summary else self.limits.max_tokens

    async def step(self, ids: Sequence[int]) -> Observation:
        """Take one sampled turn."""
        it = self._running
        if it.over:
            raise EnvError("step: the episode is over; close it and call reset")
        seen = await self._step(it, ids)
        it.over = seen.done
        return seen

    async def _step(self, it: "_Episode", ids: Sequence[int]) -> Observation:
        cut_by_window = self.budget < self._wanted
        it.turns += 1
        if self.owes_summary:
            given = it.context.summarise(ids, self.limits.max_tokens)
            return self._shown("", fault="" if given else NO_SUMMARY)
        match self.format.parse(ids, {name: spec.schema for name, spec in it.offered.items()}):
            case Answer(text=text):
                return Observation(stop=StopReason.ANSWERED, answer=text)
            case FormatError(kind=FormatKind.TRUNCATED as kind):
                cut = StopReason.CONTEXT_OVERFLOW if cut_by_window else StopReason.MAX_TOKENS
                return Observation(stop=cut, fault=kind)
            case FormatError(kind=FormatKind.UNKNOWN_TOKEN as kind):  # in no prompt can it stand
                return Observation(stop=StopReason.FORMAT, fault=kind)
            case FormatError(kind=kind) as broken:
                it.errors += 1
                if it.errors > self.limits.shown_errors:
                    return Observation(
                        stop=StopReason.NO_ANSWER if kind in _SAYS_NOTHING else StopReason.FORMAT, fault=kind
                    )
                results, calls, fault = [ToolResult(str(broken), error=True)], (), str(kind)
            case ToolCalls(calls=calls):
                fault = ""
                if stop := self._spent(it, calls):
                    return Observation(stop=stop, calls=calls)
                try:
                    results = await self._call_all(it, calls)
                except ToolDown as down:
                    return Observation(stop=StopReason.TOOL_DOWN, calls=calls, error=str(down))
        if it.turns >= self.limits.max_turns:
            return Observation(stop=StopReason.MAX_TURNS, calls=calls, fault=fault)
        it.context.add(ids, results, self.limits.max_tokens)
        return self._shown("\n".join(result.text for result in results), calls, fault)

    def _spent(self, it: "_Episode", calls: tuple[ToolCall, ...]) -> StopReason | None:
        """Why these calls are not made any more, if they are not."""
        it.repeated = it.repeated + 1 if calls == it.last_calls else 0
        it.last_calls = calls
        if it.turns >= self.limits.max_turns:
            return StopReason.MAX_TURNS
        return StopReason.LOOP if it.repeated >= self.limits.repeats else None

    def _shown(self, text: str, calls: tuple[ToolCall, ...] = (), fault: str = "") -> Observation:
        stop = None if self.budget else StopReason.CONTEXT_OVERFLOW
        return Observation(text, calls, stop, fault=fault)

    async def _call_all(self, it: "_Episode", calls: Sequence[ToolCall]) -> list[ToolResult]:
        """The results in the order of the calls, which are made in that order; side by side where none changes anything."""
        if all(it.offered[call.name].effect is Effect.READ for call in calls):
            return await _together([it.session.call(call) for call in calls])
        return [
            it.context.remember(call) if call.name in self._memory else await it.session.call(call) for call in calls
        ]


async def _together(calls: Sequence[Awaitable[ToolResult]]) -> list[ToolResult]:
    """Every result, or the first failure once all have ended."""
    ended = await asyncio.gather(*calls, return_exceptions=True)
    for one in ended:
        if isinstance(one, BaseException):
            raise one
    return [one for one in ended if isinstance(one, ToolResult)]


@dataclass(slots=True)
class _Episode:
    task_id: str
    offered: Mapping[str, ToolSpec]
    context: Context
    session: ToolSession
    turns: int = 0
    errors: int = 0
    repeated: int = 0
    last_calls: tuple[ToolCall, ...] = ()
    over: bool = False

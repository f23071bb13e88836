"""The environment: one episode of a policy that thinks, calls tools and answers."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from infra.tools.base import ToolSpec
from rl.formats import TurnFormat
from rl.tokens import Answer, FormatError, FormatKind
from rl.tools import Tool
from schemas.base import Options
from schemas.errors import TouchstoneError
from schemas.task import Task
from schemas.trajectory import StopReason, ToolCall


class EnvError(TouchstoneError):
    """An environment used against its contract."""


class Limits(Options):
    """What one episode may spend."""

    max_turns: int = Field(default=12, ge=1)
    """Turns; the last one can only answer, its calls are not made."""
    max_tokens: int = Field(default=128, ge=1)
    """Tokens a turn may sample. A turn that is cut ends the episode: `max_tokens`, or `context_overflow` if the window cut it."""
    context: int = Field(default=2048, ge=1)
    """Tokens of the whole episode, what is shown included."""
    shown_errors: int = Field(default=1, ge=0)
    """Format errors the policy is told about and may recover from; the next one ends the episode. 0 ends it at the first."""
    tool_seconds: float = Field(default=30, gt=0)
    """Time one tool call may take; later it counts as broken."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a turn led to. `text` is what the policy is shown, `ids` its tokens; both absent when it is shown nothing more.

    `stop` is set exactly when the episode is over; `calls` are the turn's calls as written, made or not.
    """

    text: str | None = None
    ids: tuple[int, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    stop: StopReason | None = None
    answer: str | None = None
    error: str = ""

    @property
    def done(self) -> bool:
        return self.stop is not None


class Env:
    """`reset`, then `step` until done. `prompt` always holds the ids the next turn is to be sampled from."""

    def __init__(self, tools: Mapping[str, Tool], format: TurnFormat, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._all_tools = dict(tools)
        self.format = format
        self._tools: dict[str, Tool] = {}
        self.prompt: tuple[int, ...] = ()
        self._turns = self._errors = 0
        self._open = False

    def reset(self, task: Task) -> tuple[int, ...]:
        """Start an episode with the tools the task names."""
        missing = sorted(set(task.tools) - set(self._all_tools))
        if missing:
            raise EnvError(f"tools {missing} of task {task.task_id}: not among {sorted(self._all_tools)}; add them")
        self.close()
        self._tools = {name: self._all_tools[name] for name in task.tools}
        specs = [ToolSpec(name, "", tool.schema) for name, tool in self._tools.items()]
        self.prompt = self.format.opening(task.question, specs)
        self._open = True
        return self.prompt

    def close(self) -> None:
        """Forget the episode. The environment can be reset again."""
        self._tools, self.prompt = {}, ()
        self._turns = self._errors = 0
        self._open = False

    @property
    def budget(self) -> int:
        """Tokens the next turn may sample; none are left when the window is full."""
        return max(0, min(self.limits.max_tokens, self.limits.context - len(self.prompt)))

    async def step(self, ids: Sequence[int]) -> Observation:
        """Take one sampled turn."""
        if not self._open:
            raise EnvError("step: no episode is running; call reset first")
        cut_by_window = self.budget < self.limits.max_tokens
        self.prompt += tuple(ids)
        self._turns += 1
        calls: tuple[ToolCall, ...] = ()
        match self.format.parse(ids, {name: tool.schema for name, tool in self._tools.items()}):
            case Answer(text=text):
                return self._end(StopReason.ANSWERED, answer=text)
            case FormatError(kind=FormatKind.TRUNCATED):
                return self._end(StopReason.CONTEXT_OVERFLOW if cut_by_window else StopReason.MAX_TOKENS)
            case FormatError() as broken:
                self._errors += 1
                if self._errors > self.limits.shown_errors:
                    return self._end(StopReason.FORMAT)
                shown = str(broken)
            case step:
                calls, shown = step.calls, ""
        if self._turns >= self.limits.max_turns:
            return self._end(StopReason.MAX_TURNS, calls=calls)
        if calls:
            try:
                shown = "\n".join([await self._call(call) for call in calls])
            except _ToolDown as down:
                return self._end(StopReason.TOOL_DOWN, calls=calls, error=str(down))
        return self._show(shown, calls)

    async def _call(self, call: ToolCall) -> str:
        try:
            async with asyncio.timeout(self.limits.tool_seconds):
                return await self._tools[call.name](dict(call.arguments))
        except TimeoutError as error:
            raise _ToolDown(f"{call.name}: no answer within {self.limits.tool_seconds} s") from error
        except Exception as error:
            raise _ToolDown(f"{call.name}: {type(error).__name__}: {error}") from error

    def _show(self, text: str, calls: tuple[ToolCall, ...]) -> Observation:
        ids = self.format.observation([text])
        self.prompt += ids
        if self.budget:
            return Observation(text, ids, calls)
        self._open = False
        return Observation(text, ids, calls, StopReason.CONTEXT_OVERFLOW)

    def _end(
        self, stop: StopReason, *, calls: tuple[ToolCall, ...] = (), answer: str | None = None, error: str = ""
    ) -> Observation:
        self._open = False
        return Observation(calls=calls, stop=stop, answer=answer, error=error)


class _ToolDown(Exception):
    """A tool broke or hung."""

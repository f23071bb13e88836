"""The tool `python`: a session of the sandbox."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from infra.sandbox import Closed, JournalFull, NoIsolation, Outcome, Sandbox, SessionLost, cut
from infra.sandbox.limits import MIB
from infra.tools.base import Effect, ToolDown, ToolResult, ToolSpec

SHOWN = 2_000
"""Characters of output that a policy gets of one call."""
_SPEC = ToolSpec(
    name="python",
    description=(
        "Run Python code. Variables and imports stay for later calls. Returns what the code prints and the value of its last "
        "expression. The standard library, numpy and sympy are there; there is no network."
    ),
    schema={
        "type": "object",
        "properties": {"code": {"type": "string", "minLength": 1}},
        "required": ["code"],
        "additionalProperties": False,
    },
    effect=Effect.SESSION,
)
_REASONS = {
    Outcome.TIMEOUT: "took longer than the {seconds:g} s that a call has",
    Outcome.MEMORY_LIMIT: "needed more memory than the {memory} MiB that a session has",
    Outcome.PROCESS_LIMIT: "started more processes or threads than the {processes} that a session may have",
    Outcome.OUTPUT_LIMIT: "wrote more than the {written} MiB that a call may write",
    Outcome.CRASHED: "ended the interpreter",
}


_CHANGED = "note: the session was made again, and call {} gave another output than before\n"
_NOTES = 5


class PythonTools:
    """A toolset over one sandbox, which it closes."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    @property
    def specs(self) -> Sequence[ToolSpec]:
        return (_SPEC,)

    async def call(self, session: str, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        """What the code wrote, or that it went too far: its state is then that before the call.

        A session that cannot be made again starts anew with the call: code may depend on the time, and that is the policy's doing.
        """
        code, lost = str(arguments["code"]), ""
        try:
            try:
                ran = await self._sandbox.run(session, code)
            except SessionLost as error:
                await self._sandbox.end(session)
                lost = f"note: the session was lost and started anew with this call; nothing of before is left ({error.reason})\n"
                ran = await self._sandbox.run(session, code)
        except JournalFull as error:
            return ToolResult(str(error), error=True)
        except (NoIsolation, Closed) as error:
            raise ToolDown(str(error)) from error
        shown = lost + "".join(_CHANGED.format(number) for number in ran.changed[:_NOTES]) + cut(ran.output, SHOWN)
        if ran.outcome.kept:
            return ToolResult(shown)
        limits = self._sandbox.limits
        reason = _REASONS[ran.outcome].format(
            seconds=limits.seconds,
            memory=limits.memory // MIB,
            processes=limits.processes,
            written=limits.written // MIB,
        )
        return ToolResult(f"{ran.outcome}: the code {reason}; nothing it did was kept\n{shown}".rstrip(), error=True)

    async def end(self, session: str) -> None:
        await self._sandbox.end(session)

    async def close(self) -> None:
        await self._sandbox.close()

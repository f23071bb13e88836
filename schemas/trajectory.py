"""What a policy saw, sampled and was told, turn by turn."""

from enum import StrEnum

from pydantic import JsonValue, model_validator

from schemas.base import Record


class StopReason(StrEnum):
    """How an attempt ended."""

    ANSWERED = "answered"
    NO_ANSWER = "no_answer"
    MAX_TURNS = "max_turns"
    MAX_TOKENS = "max_tokens"
    CONTEXT_OVERFLOW = "context_overflow"
    FORMAT = "format"
    LOOP = "loop"
    TIME_BUDGET = "time_budget"
    TOOL_DOWN = "tool_down"
    INFRA = "infra"


class ToolCall(Record):
    """A call exactly as the policy wrote it."""

    name: str
    arguments: dict[str, JsonValue]


class Turn(Record):
    """One model call. `output_ids` are the sampled ids, never re-encoded; `logprobs` are the sampler's, one each.

    All ids are empty where a server returns none. `version` names the weights; `observation` is what the tools answered;
    `fault` says why the turn was no step, where it was none.
    """

    prompt_tokens: int
    segment: int = 0
    """Turns of one segment share a context that only grew: the prompt is all that was shown and sampled in it so far."""
    shown_ids: tuple[int, ...] = ()
    """What the prompt has beyond that of the segment's turn before: all of it at the segment's start."""
    output_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    text: str
    version: str
    call_id: str
    tool_calls: tuple[ToolCall, ...] = ()
    observation: str | None = None
    fault: str = ""

    @model_validator(mode="after")
    def _one_logprob_a_token(self) -> "Turn":
        if self.logprobs and len(self.logprobs) != len(self.output_ids):
            raise ValueError(f"{len(self.logprobs)} log-probabilities for {len(self.output_ids)} tokens")
        return self


class Trajectory(Record):
    """One attempt at a task. `answer` is the final answer's text, `None` unless `stop` is `answered`.

    `error` says what broke where `stop` is `tool_down` or `infra`; such an attempt is nobody's failure.
    """

    task_id: str
    solver: str
    arm: str
    seed: int
    turns: tuple[Turn, ...]
    stop: StopReason
    answer: str | None = None
    error: str = ""
    tokens: int = 0
    """Prompt and completion tokens of all turns."""

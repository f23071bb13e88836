"""One attempt at one task: the oracle's, in the real environment over real servers, with and without a small window."""

from pathlib import Path

import pytest

from infra.settings import Settings
from rl.scripted import NoScript
from rl.solve import SolveOptions, solve
from schemas.answer import EntityAnswer
from schemas.config import MathConfig, Served
from schemas.episode import ContextOptions, Limits
from schemas.query import Band, Clue, Query
from schemas.task import Task
from schemas.trajectory import StopReason, Trajectory, Turn
from tests.rl.test_env import task
from tests.worlds import toy_world

ORACLE = Served(model="oracle")
BIG = Clue(relation="area", target=Band(low=1_266_000, high=1_268_000))
TASK = Task.create(
    **task("search", "open").model_dump(exclude={"task_id", "constraints", "answer", "lineage"}),
    answer=EntityAnswer(entity="country/niger", name="Niger"),
    constraints=Query(type="country", clues=(BIG,)),
    lineage=task().lineage,
)
"""No search finds a number: pages have to be read until one fits."""


def solved(tmp_path: Path, asked: Task, limits: Limits | None = None, watch: list[Turn] | None = None) -> Trajectory:
    settings = Settings.from_env({"TOUCHSTONE_STORE": str(tmp_path / "store")})
    seen: list[Turn] = [] if watch is None else watch
    options = SolveOptions(limits=limits, seed=3)
    return solve(asked, ORACLE, options, world=toy_world(), settings=settings, watch=seen.append)


def test_the_oracle_finds_the_answer_and_every_turn_is_watched(tmp_path: Path) -> None:
    watched: list[Turn] = []
    found = solved(tmp_path, TASK, watch=watched)
    assert (found.stop, found.answer, found.solver) == (StopReason.ANSWERED, "Niger", "oracle")
    assert tuple(watched) == found.turns
    assert {call.name for turn in found.turns for call in turn.tool_calls} == {"open", "note"}


@pytest.mark.parametrize("mode", ["drop", "summarise"])
def test_in_a_window_too_small_for_all_pages_the_context_is_written_anew(tmp_path: Path, mode: str) -> None:
    management = ContextOptions.model_validate({"mode": mode})
    limits = Limits(max_turns=200, max_tokens=150, context=1000, management=management)
    found = solved(tmp_path, TASK, limits)
    assert found.stop is StopReason.ANSWERED and found.answer == "Niger"
    assert found.turns[-1].segment >= 1
    assert max(turn.prompt_tokens + len(turn.output_ids) for turn in found.turns) <= 1000


def test_rows_of_a_segment_are_what_the_policy_saw(tmp_path: Path) -> None:
    """Each prompt is what was shown and sampled in its segment so far, so training needs no other record of it."""
    limits = Limits(max_turns=200, max_tokens=150, context=700, management=ContextOptions(mode="drop"))
    found = solved(tmp_path, TASK, limits)
    row: list[int] = []
    segment = -1
    for turn in found.turns:
        if turn.segment != segment:
            row, segment = [], turn.segment
        row += turn.shown_ids
        assert len(row) == turn.prompt_tokens
        row += turn.output_ids
    assert segment >= 1


def test_no_oracle_solves_a_computed_problem(tmp_path: Path) -> None:
    from pipeline.families.math import Math

    problem = Math(MathConfig())(seed=0, index=0)
    assert isinstance(problem, Task)
    with pytest.raises(NoScript, match="no oracle solves tasks of math; give a model"):
        solved(tmp_path, problem)

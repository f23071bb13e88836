"""Evaluation by solvers that toss coins, break or repeat themselves, and by a policy behind a scripted server."""

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.settings import Settings
from pipeline.solver import SolverDown
from rl.evaluate import EvaluationError, compare, evaluate
from rl.heldout import Held, evaluate_policy, policy_folder, write
from rl.learn.records import Graded, Verdict
from rl.policy import Policy
from rl.train.run import create
from schemas.answer import EntityAnswer, canonical_answer
from schemas.arrow import ATTEMPTS
from schemas.evaluation import Counts, EvaluateConfig, Evaluation
from schemas.query import Problem
from schemas.task import Lineage, Task
from schemas.training import EvaluationOptions, TrainConfig
from schemas.trajectory import StopReason, Trajectory, Turn
from tests.rl.servers import ScriptedPolicy, served
from tests.rl.test_env import ANSWER
from tests.rl.test_env import task as search_task
from tests.rl.tiny import FORMAT
from tests.rl.train.finished import released
from tests.worlds import toy_world

OPTIONS = EvaluationOptions(attempts=4)


def asked(index: int, stratum: str = "a") -> Task:
    return Task.create(
        family="benchmark",
        stratum=stratum,
        question=f"Question {index}?",
        answer=EntityAnswer(entity=f"e{index}", name=f"Name {index}"),
        tools=(),
        constraints=Problem(template="test", parameters={"id": index}),
        lineage=Lineage(generator="test", version="1", seed=0, index=index, knobs={}),
    )


TASKS = [asked(index, "odd" if index % 2 else "even") for index in range(20)]


@dataclass
class Coin:
    """Right with probability `right`, in two turns, the first of them no step where it is `flawed`; `stop` ends it without an answer."""

    right: float = 0.5
    stop: StopReason = StopReason.ANSWERED
    flawed: bool = False
    says: str = ""
    name: str = "coin@1"
    arm: str = "tools"

    async def __call__(self, task: Task, seed: int) -> Trajectory:
        right = random.Random(f"{task.task_id}/{seed}").random() < self.right
        said = self.says or (canonical_answer(task.answer) if right else f"nothing, {seed}")
        fault = "no_action" if self.flawed else ""
        turns = tuple(
            Turn(
                prompt_tokens=9, output_ids=(1, 2), logprobs=(-8.0, -8.0), text=text, version="1", call_id="", fault=why
            )
            for text, why in (("search" if self.says else f"search {seed}", fault), (said, ""))
        )
        return Trajectory(
            task_id=task.task_id,
            solver=self.name,
            arm=self.arm,
            seed=seed,
            turns=turns,
            stop=self.stop,
            answer=said if self.stop is StopReason.ANSWERED else None,
        )


async def measured(sampled: Coin, greedy: Coin | None = None) -> tuple[Evaluation, list[Graded]]:
    return await evaluate(TASKS, OPTIONS, sampled=sampled, greedy=greedy or Coin(right=1.0), on="test")


async def test_counts_close_and_every_attempt_comes_back() -> None:
    found, attempts = await measured(Coin())
    assert (found.sampled.counts.attempts, found.greedy.counts.attempts, len(attempts)) == (80, 20, 100)
    right = sum(one.verdict is Verdict.RIGHT for one in attempts[20:])
    assert found.sampled.counts == Counts(right=right, wrong=80 - right, attempts=80)
    assert found.sampled.rate is not None and found.sampled.rate.value == pytest.approx(right / 80)
    assert list(found.sampled.pass_at) == [2, 4]
    assert set(found.sampled.strata) == {"odd", "even"}
    assert (found.rows, found.tasks, found.policy) == (20, 20, "coin@1")


async def test_greedy_is_one_attempt_and_sampled_ones_have_a_seed_each() -> None:
    _, attempts = await measured(Coin())
    assert [one.uid for one in attempts[:20]] == [f"{task.task_id}/greedy" for task in TASKS]
    of_first = [one for one in attempts[20:] if one.trajectory.task_id == TASKS[0].task_id]
    assert [one.uid.split("/")[1] for one in of_first] == ["0", "1", "2", "3"]
    assert len({one.trajectory.seed for one in of_first}) == 4


async def test_equal_seeds_make_equal_evaluations() -> None:
    assert await measured(Coin()) == await measured(Coin())


async def test_what_broke_is_lost_and_no_zero() -> None:
    found, attempts = await measured(Coin(stop=StopReason.TIME_BUDGET))
    assert found.sampled.counts == Counts(lost=80, attempts=80)
    assert found.sampled.rate is None and found.sampled.pass_at == {}
    assert {one.verdict for one in attempts[20:]} == {Verdict.NONE}


async def test_an_attempt_without_an_answer_is_wrong() -> None:
    found, attempts = await measured(Coin(stop=StopReason.MAX_TURNS))
    assert found.sampled.counts == Counts(wrong=80, attempts=80)
    assert found.sampled.stops == {"max_turns": 80}
    assert {one.verdict for one in attempts[20:]} == {Verdict.NONE}


async def test_turns_of_right_attempts_and_turns_that_were_no_step() -> None:
    found, _ = await measured(Coin(right=0.9, flawed=True), Coin(right=0.0))
    assert (found.sampled.turns_right, found.sampled.format_errors) == (2.0, 0.5)
    assert (found.greedy.turns_right, found.greedy.format_errors) == (None, 0.0)


async def test_attempts_that_are_copies_are_refused() -> None:
    """Two tokens of probability e^-8 each, twice: three copies have a chance of e^-96."""
    with pytest.raises(EvaluationError, match="are one attempt repeated"):
        await measured(Coin(says="the same"))


async def test_a_solver_that_is_down_ends_it() -> None:
    with pytest.raises(SolverDown, match="attempts in a row broke"):
        await evaluate(TASKS, OPTIONS, sampled=Coin(), greedy=Coin(stop=StopReason.INFRA), on="x", concurrency=4)


async def test_rows_that_are_no_tasks_or_not_asked_for_are_counted() -> None:
    options = EvaluationOptions(attempts=1, tasks=5)
    found, _ = await evaluate(TASKS, options, sampled=Coin(), greedy=Coin(), on="x", skipped={"image": 3})
    assert (found.rows, found.tasks, found.skipped) == (23, 5, {"image": 3, "beyond_the_first": 15})
    with pytest.raises(EvaluationError, match="x: holds no task"):
        await evaluate([], options, sampled=Coin(), greedy=Coin(), on="x")


async def test_an_evaluation_comes_back_from_its_file_and_its_attempts_from_their_table(tmp_path: Path) -> None:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    found, attempts = await measured(Coin())
    folder = write(found, attempts, tmp_path)
    assert Evaluation.model_validate_json((folder / "evaluation.json").read_text()) == found
    assert ATTEMPTS.unpack(pq.read_table(folder / "attempts.parquet")) == [one.trajectory for one in attempts]


async def test_a_better_policy_is_above_a_worse_one_task_by_task() -> None:
    (worse, _), (better, _) = await measured(Coin(right=0.2, name="a@1")), await measured(Coin(right=0.8, name="b@1"))
    found = compare(worse, better)
    assert (found.before, found.after) == ("a@1", "b@1")
    assert found.sampled is not None and found.sampled.low > 0.3
    assert found.greedy is not None and found.greedy.value == 0
    with pytest.raises(EvaluationError, match="on=test: is not other"):
        compare(worse, better.model_copy(update={"on": "other"}))


async def test_a_served_policy_is_asked_at_temperature_0_once_and_sampled_with_seeds_of_their_own() -> None:
    model = ScriptedPolicy(ANSWER)
    held = Held("toy", (search_task("search"),), toy_world())
    with served(model) as endpoint:
        found, _ = await evaluate_policy(Policy(FORMAT), endpoint, held, EvaluateConfig(attempts=1))
    assert [request["temperature"] for request in model.requests] == [0.0, 1.0]
    assert found.greedy.counts == found.sampled.counts == Counts(right=1, attempts=1)
    assert found.policy == "scripted@r1"


async def test_a_tool_that_is_not_there_is_named_before_anything_is_asked() -> None:
    model = ScriptedPolicy(ANSWER)
    held = Held("toy", (search_task("search", "telescope"),), toy_world())
    with served(model) as endpoint, pytest.raises(EvaluationError, match="offered=telescope: no such tools here"):
        await evaluate_policy(Policy(FORMAT), endpoint, held, EvaluateConfig())
    assert model.requests == []


def test_of_a_run_the_last_checkpoint_is_meant(tmp_path: Path) -> None:
    release = released(tmp_path)
    settings = Settings(store=str(tmp_path), cache=tmp_path)
    run = create(TrainConfig(release=release.version), settings)
    with pytest.raises(EvaluationError, match="latest: the run has no checkpoint yet"):
        policy_folder("latest", settings)
    for step in ("step-000009", "step-000010", "step-000002", ".making-000011"):
        (run.path / "checkpoints" / step).mkdir(parents=True)
    for name in (run.id, str(run.path), "latest"):
        assert policy_folder(name, settings) == str(run.path / "checkpoints/step-000010")
    assert policy_folder("starter", settings) == "starter"

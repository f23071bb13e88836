"""Rounds: what each of them follows, and what stays apart."""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import ValidationError

from infra.models import UnavailableModel
from infra.settings import Settings
from infra.store import Store
from pipeline import earlier, plans
from pipeline.apart import HeldOut
from pipeline.release import Release, ReleaseError, load
from rl.rounds import Rounds, RoundsError, begin, curation, go_on, opened, training
from rl.train.run import TrainRun, find
from schemas.config import CurateConfig, Served
from schemas.query import Query
from schemas.rounds import Round, RoundsConfig
from schemas.task import Task
from tests.pipeline.tasks import MALI, math_task, search_task
from tests.rl.couples import CONFIG, STEPS, Dies, Parts, begun, handed, played

NIGER = Query(type="country", clues=MALI.clues[:1])
"""Mali is one of several that border it."""
ONE = CONFIG.model_copy(update={"rounds": 1})


class Home(NamedTuple):
    """A folder where one round was played, and later another."""

    folder: Path
    first: list[str]
    """Steps that were begun for one round."""
    rounds: Rounds
    parts: Parts
    """Of the second call."""

    @property
    def settings(self) -> Settings:
        return Settings(store=str(self.folder), cache=self.folder)

    def release(self, number: int) -> Release:
        return released(self.folder, str(self.rounds.round(number).release))

    def run(self, number: int) -> TrainRun:
        return find(str(self.rounds.round(number).run), self.settings)


def released(folder: Path, version: str) -> Release:
    return load(folder / "releases" / version)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("rounds") / "home"
    folder.mkdir()
    played(folder, ONE)
    first = begun(folder)
    return Home(folder, first, *played(folder))


def test_every_round_ends_with_a_release_a_run_a_policy_and_a_plan(home: Home) -> None:
    for number in (1, 2):
        ended = home.rounds.round(number)
        run = home.run(number)
        assert home.release(number).splits("math").keys() == {"train"}
        assert ended.policy == str(run.path / "checkpoints/step-000001")
        plan = plans.load(Store(str(home.folder)), str(ended.plan))
        assert (plan.release, plan.run) == (ended.release, ended.run)
    assert home.rounds.rounds == [home.rounds.round(1), home.rounds.round(2)]


def test_more_rounds_go_on_after_those_that_are_there(home: Home) -> None:
    assert home.first == [*STEPS[:4]]
    assert begun(home.folder) == [*STEPS]
    assert opened("latest", home.settings) == opened(home.rounds.path.name, home.settings) == home.rounds
    assert begin(ONE, home.settings).path == home.rounds.path == begin(CONFIG, home.settings).path


def test_what_is_held_out_is_fixed_before_the_first_round_and_stays(home: Home) -> None:
    held_out = str(home.rounds.held_out)
    assert released(home.folder, held_out).splits("math").keys() == {"test"}
    for number in (1, 2):
        assert home.run(number).config.evaluation.release == held_out
        assert home.release(number).manifest.configs["math"]["held_out"] == held_out
        assert home.run(number).held_out.version == held_out


def test_nothing_that_is_kept_asks_what_a_held_out_task_asks(home: Home) -> None:
    known = HeldOut.of(row.task for row in released(home.folder, str(home.rounds.held_out)).rows("math"))
    rejected = 0
    for number in (1, 2):
        release = home.release(number)
        assert not [row.task for row in release.rows("math") if known.shared(row.task)]
        rejected += sum(row.filter == "contaminated" for row in release.rejected())
    assert rejected > 0


def test_the_second_round_measures_and_trains_what_the_first_has_trained(home: Home) -> None:
    [policy] = {str(home.rounds.round(1).policy)}
    made = [CurateConfig.model_validate(home.release(number).manifest.configs["math"]) for number in (1, 2)]
    assert [config.resolved_solver().model for config in made] == ["starter", policy]
    assert [home.run(number).config.policy for number in (1, 2)] == ["starter", policy]
    assert home.run(1).origin.revision != home.run(2).origin.revision


def test_the_second_round_follows_the_plan_of_the_first_and_tries_its_too_hard_tasks_again(home: Home) -> None:
    first, second = (CurateConfig.model_validate(home.release(n).manifest.configs["math"]) for n in (1, 2))
    plan = plans.load(Store(str(home.folder)), str(home.rounds.round(1).plan))
    assert (first.plan, first.aims, first.earlier) == (None, (), None)
    assert (second.plan, second.aims) == (plan.id, plans.aims_of(plan))
    assert second.earlier == home.rounds.round(1).release
    too_hard = {row.task.task_id for row in home.release(1).rejected() if row.reason == "too_hard"}
    counts = home.release(2).manifest.strata.values()
    assert sum(each.carried for each in counts) == round(earlier.MOST * 24) < len(too_hard)
    assert plans.load(Store(str(home.folder)), str(home.rounds.round(2).plan)).parent == plan.id


def test_every_round_has_candidates_of_its_own(home: Home) -> None:
    configs = [released(home.folder, str(home.rounds.held_out)), home.release(1), home.release(2)]
    assert [release.manifest.configs["math"]["seed"] for release in configs] == [5, 6, 7]
    assert [home.run(number).config.seed for number in (1, 2)] == [5, 5]


def test_what_was_measured_after_a_round_is_not_measured_again_before_the_next(home: Home) -> None:
    """Each training here measures 20 of 100 before it learns, unless that is known, and 58 after."""
    before, after = home.run(1).evaluation(0), home.run(1).evaluation(1)
    assert before is not None and after is not None
    assert (before.sampled.counts.right, after.sampled.counts.right) == (80, 232)  # of 4 attempts each
    assert home.run(2).evaluation(0) == after


def test_fewer_rounds_forget_none_that_are_over(home: Home) -> None:
    assert [each.number for each in begin(ONE, home.settings).rounds] == [1, 2]
    begin(CONFIG, home.settings)


def test_rounds_that_are_over_are_not_done_again(home: Home) -> None:
    _, parts = played(home.folder)
    assert (parts.curated, parts.trained) == ([], [])
    assert begun(home.folder) == [*STEPS]


@pytest.mark.parametrize(
    ("trained", "reason"),
    [(search_task(), "same question"), (search_task(NIGER, question="Which one?"), "same answer")],
)
def test_a_release_that_shares_a_question_or_an_answer_with_held_out_tasks_is_not_trained_on(
    tmp_path: Path, trained: Task, reason: str
) -> None:
    settings = Settings(store=str(tmp_path), cache=tmp_path)
    held_out, release = handed(tmp_path, "test", search_task()), handed(tmp_path, "train", trained)
    rounds, parts = begin(RoundsConfig(held_out=held_out), settings), Parts(settings)
    rounds.write(Round(number=1, release=release))
    with pytest.raises(RoundsError, match=f"task {trained.task_id} has the {reason} as a held-out one.*curate with"):
        asyncio.run(go_on(rounds, parts, settings))
    assert parts.trained == [] and not (tmp_path / "training").exists()


def test_the_latest_release_is_held_out_as_it_is_when_rounds_begin(tmp_path: Path) -> None:
    dies = Dies("1/curate", "begun", killed=False)
    held_out = []
    for task in (search_task(), search_task(NIGER)):
        handed(tmp_path, "test", task)
        with pytest.raises(RuntimeError, match="1/curate: begun"):
            played(tmp_path, RoundsConfig(held_out="latest"), dies)
        held_out.append(opened("latest", Settings(store=str(tmp_path), cache=tmp_path)).held_out)
    assert held_out[0] == held_out[1] is not None


def test_held_out_tasks_that_are_not_there_are_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="nowhere: no release of"):
        played(tmp_path, RoundsConfig(held_out="nowhere"))
    assert not (tmp_path / "begun").exists()


def test_held_out_tasks_are_of_the_family_and_in_the_split_that_is_held_out(tmp_path: Path) -> None:
    for task, split in ((search_task(), "test"), (math_task("What is 7 + 5?"), "train")):
        version = handed(tmp_path, split, task)
        with pytest.raises(RoundsError, match=f"{version}: has no math rows in its split test, so nothing is held out"):
            played(tmp_path, RoundsConfig.model_validate({**BASE, "held_out": version}))
    assert not (tmp_path / "begun").exists()


def test_a_policy_that_is_not_there_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(UnavailableModel, match="no/policy: is neither a recipe"):
        played(tmp_path, RoundsConfig.model_validate({**BASE, "policy": "no/policy"}))
    assert not any(tmp_path.iterdir())


BASE = {"curate": {"family": "math"}, "train": {"family": "math"}}
OVER = Round(number=1, release="r-1", run="train-1", policy="/a/policy", plan="p-1")
AIMS = ({"stratum": "math/2/none/number/integers"},)


def rounds(tmp_path: Path, **changes: object) -> Rounds:
    return Rounds(tmp_path, RoundsConfig.model_validate(CONFIG.model_dump(exclude_unset=True) | changes))


def test_rounds_that_are_not_steered_are_all_as_the_first(tmp_path: Path) -> None:
    given = {"curate": {"family": "math", "aims": AIMS}, "steered": False}
    first, second = (curation(rounds(tmp_path, **given), n, b, "h") for n, b in ((1, None), (2, OVER)))
    solver = Served(model="/a/policy")
    assert second == first.model_copy(update={"seed": 7, "solver": solver, "earlier": "r-1"})
    assert second.aims and second.plan is None


def test_a_plan_takes_the_place_of_what_the_first_round_aimed_at(tmp_path: Path) -> None:
    second = curation(rounds(tmp_path, curate={"family": "math", "aims": AIMS}), 2, OVER, "h")
    assert (second.plan, second.aims) == ("p-1", ())


def test_too_hard_tasks_are_left_alone_where_that_is_asked_for(tmp_path: Path) -> None:
    assert curation(rounds(tmp_path, again=False), 2, OVER, "h").earlier is None


def test_training_keeps_what_else_was_set(tmp_path: Path) -> None:
    given = {"family": "math", "steps": 3, "evaluation": {"attempts": 2}}
    config = training(rounds(tmp_path, train=given), OVER, None, "h")
    assert (config.steps, config.evaluation.attempts, config.evaluation.release) == (3, 2, "h")
    assert (config.release, config.policy) == ("r-1", "starter")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"train": {"evaluation": {"split": "dev"}}},
            r"train\.evaluation\.split=dev: `test` is held out; leave it out",
        ),
        ({"curate": {"seed": 3}}, r"curate\.seed: is set by the rounds themselves; leave it out"),
        ({"curate": {"held_out": "r-1"}}, r"curate\.held_out: is set by the rounds"),
        ({"curate": {"earlier": "r-1"}}, r"curate\.earlier: is set by the rounds"),
        ({"curate": {"solver": {"model": "memory"}}}, r"curate\.solver: is set by the rounds"),
        ({"curate": {"test_share": 0.2}}, r"curate\.test_share: is set by the rounds"),
        ({"train": {"release": "r-1"}}, r"train\.release: is set by the rounds"),
        ({"train": {"policy": "memory"}}, r"train\.policy: is set by the rounds"),
        ({"train": {"seed": 1}}, r"train\.seed: is set by the rounds"),
        ({"train": {"evaluation": {"release": "r-1"}}}, r"train\.evaluation\.release: is set by the rounds"),
        ({"train": {"family": "hard_search"}}, r"curate\.family=math: is curated, and train\.family=hard_search"),
        ({"round": 2}, "round: is no setting here; the settings are rounds, seed, policy"),
        ({"rounds": 0}, "greater than or equal to 1"),
        ({"curate": {"plan": "latest"}}, r"curate\.plan=latest: may be another one when the rounds go on; give its id"),
        ({"curate": {"plan": "latest-if-any"}}, r"curate\.plan=latest-if-any: may be another one"),
        ({"train": {"steps": 0}}, r"train\.steps=0: a round that trains nothing has nothing to steer by"),
        (
            {"held_out": "r-1", "held_out_candidates": 9},
            "held_out=r-1: no other release is made; leave out held_out_cand",
        ),
    ],
    ids=str,
)
def test_what_rounds_set_themselves_is_refused(given: dict[str, Any], reason: str) -> None:
    base: dict[str, Any] = {"curate": {"family": "math"}, "train": {"family": "math"}}
    config = {**given, **{name: {**base[name], **given.get(name, {})} for name in base}}
    with pytest.raises(ValidationError, match=reason):
        RoundsConfig.model_validate(config)

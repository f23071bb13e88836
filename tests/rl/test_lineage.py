"""From a trained policy back to where learning began, and what is said of what is gone on the way."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.settings import ASSETS, Settings
from infra.store import Store
from pipeline import plans
from pipeline.release import publish
from rl.history import history
from rl.lineage import LineageError, Origin, lineage
from rl.rounds import Rounds
from rl.train.run import TrainRunError, find
from schemas.config import CurateConfig
from schemas.rounds import Round
from tests.pipeline.test_release import part
from tests.rl.couples import played
from tests.rl.test_steer import PARENT, following


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Rounds:
    return played(tmp_path_factory.mktemp("home"))[0]


def settings(rounds: Rounds) -> Settings:
    home = rounds.path.parents[1]
    return Settings(store=str(home), cache=home)


def home(rounds: Rounds) -> Path:
    return settings(rounds).cache


@contextmanager
def without(path: Path) -> Iterator[None]:
    """While it lasts, the file or folder is gone."""
    aside = path.with_name(f"aside-{path.name}")
    path.rename(aside)
    try:
        yield
    finally:
        aside.rename(path)


def traced(rounds: Rounds, name: str | None = None) -> list[tuple[int, str, str]]:
    return [(each.depth, each.kind, each.name) for each in lineage(name or last(rounds), settings(rounds))]


def last(rounds: Rounds) -> str:
    return str(rounds.round(2).policy)


def of_round(depth: int, rounds: Rounds, ended: Round) -> list[tuple[int, str, str | None]]:
    number = f"{rounds.path.name}/{ended.number}"
    return [(depth, "policy", ended.policy), (depth + 1, "round", number), (depth + 1, "run", ended.run)]


def test_a_checkpoint_leads_through_both_rounds_back_to_the_starter(rounds: Rounds) -> None:
    first, second = rounds.rounds
    held_out = rounds.held_out
    assert traced(rounds) == [
        *of_round(0, rounds, second),
        (2, "release", second.release),
        (3, "plan", first.plan),
        (3, "held-out", held_out),
        (3, "earlier", first.release),
        (2, "held-out", held_out),
        *of_round(2, rounds, first),
        (4, "release", first.release),
        (5, "held-out", held_out),
        (4, "held-out", held_out),
        (4, "policy", str(ASSETS / "starter")),
    ]


def test_it_says_what_came_of_each(rounds: Rounds) -> None:
    """Held-out tasks: 20 of 100 right at first, 58 after the first round and after the second."""
    first = rounds.round(1)
    said = {(each.kind, each.name): each.said for each in lineage(last(rounds), settings(rounds))}
    assert said["policy", last(rounds)] == said["policy", str(first.policy)] == "after step 1"
    assert said["policy", str(ASSETS / "starter")] == "where learning began"
    assert said["run", str(first.run)] == "held-out pass@1 0.200 -> 0.580"
    assert said["run", str(rounds.round(2).run)] == "held-out pass@1 0.580 -> 0.580"
    assert said["plan", str(first.plan)] == f"drawn from run {first.run} on release {first.release}"
    assert said["release", str(first.release)].endswith("tasks, measured on starter")
    assert said["round", f"{rounds.path.name}/1"] == "steered"


def test_a_run_is_as_good_as_its_last_checkpoint(rounds: Rounds) -> None:
    second = rounds.round(2)
    run = find(str(second.run), settings(rounds))
    for name in (run.id, str(run.path)):
        assert traced(rounds, name)[1:] == traced(rounds)[1:]


def gone(rounds: Rounds, kind: str, name: str | None) -> Origin:
    [found] = [each for each in lineage(last(rounds), settings(rounds)) if (each.kind, each.name) == (kind, name)][:1]
    return found


def test_what_is_gone_is_said_to_be_gone(rounds: Rounds) -> None:
    first, there, policy = rounds.round(1), home(rounds), last(rounds)
    with without(there / "releases" / str(first.release)):
        assert "cannot be read any more: " in gone(rounds, "release", first.release).said
        assert traced(rounds)[-1] == (4, "policy", str(ASSETS / "starter"))
    with without(there / "plans" / f"{first.plan}.json"):
        assert "cannot be read any more: " in gone(rounds, "plan", first.plan).said
    with without(there / "training" / str(first.run)):
        assert gone(rounds, "policy", first.policy).said == "its run is gone"
    with without(there / "training" / str(first.run) / "run.json"):
        assert gone(rounds, "policy", first.policy).said == "its run is gone"
    with without(rounds.path):
        assert "round" not in {kind for _, kind, _ in traced(rounds, policy)}


def test_a_run_that_was_not_measured_after_says_no_gain(rounds: Rounds) -> None:
    second = rounds.round(2)
    run = find(str(second.run), settings(rounds))
    with without(run.evaluation_file(1)):
        assert gone(rounds, "run", second.run).said == "held-out pass@1 0.580"
        assert history(rounds, settings(rounds)).rounds[1].after is None


def test_candidates_that_came_to_nothing_are_told_with_the_others(rounds: Rounds) -> None:
    """Eleven went into the funnel; of none is it known which stratum it was to be of."""
    first, store = rounds.round(1), Store(str(home(rounds)))
    other = publish(store, [part(config=CurateConfig(family="math"), strata={})])
    try:
        rounds.write(first.model_copy(update={"release": other.version}))
        assert history(rounds, settings(rounds)).rounds[0].asked == 11
    finally:
        rounds.write(first)


def test_rounds_that_cannot_be_read_hide_nothing_else(rounds: Rounds) -> None:
    other = rounds.path.with_name("rounds-of-another-version")
    other.mkdir()
    (other / "rounds.json").write_text('{"old": 1}')
    try:
        assert gone(rounds, "round", other.name).said.startswith("cannot be read any more: ")
        assert [each for each in traced(rounds) if each[2] != other.name][-1][2] == str(ASSETS / "starter")
    finally:
        shutil.rmtree(other)


def test_a_checkpoint_that_was_removed_still_comes_from_somewhere(rounds: Rounds) -> None:
    with without(Path(last(rounds))):
        assert lineage(last(rounds), settings(rounds))[0] == Origin(
            0, "policy", last(rounds), "after step 1, no longer kept"
        )


@pytest.mark.parametrize("name", ["starter", "data/starter", "train-0", "training/train-0/checkpoints/step-000001"])
def test_what_no_run_has_made_is_refused(rounds: Rounds, name: str) -> None:
    with pytest.raises(LineageError, match=f"{name}: is no checkpoint or run of training; give the folder of one"):
        lineage(name, settings(rounds))


@pytest.mark.parametrize("name", ["scores.json", "step-", "step-one", ".making-000001"])
def test_what_lies_beside_checkpoints_is_none(rounds: Rounds, name: str) -> None:
    with pytest.raises(LineageError, match="is no checkpoint"):
        lineage(str(Path(last(rounds)).with_name(name)), settings(rounds))


def test_no_run_at_all_says_how_to_begin_one(tmp_path: Path) -> None:
    with pytest.raises(TrainRunError, match="holds no training run; begin one with `touchstone train`"):
        lineage("latest", Settings(store=str(tmp_path), cache=tmp_path))


def test_it_goes_through_more_plans_than_calls_may_be_nested(tmp_path: Path) -> None:
    store, plan = Store(str(tmp_path)), PARENT
    for _ in range(1100):
        plans.keep(store, plan)
        plan = plan.model_copy(update={"parent": plan.id})
    run = following(tmp_path, plan)
    kinds = [each.kind for each in lineage(run.id, Settings(store=str(tmp_path), cache=tmp_path))]
    assert kinds.count("plan") == 1101 and kinds[-1] == "policy"

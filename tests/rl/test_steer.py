"""The plan after a training run: what it goes on from, what it is drawn from, and what no plan can be drawn from."""

import asyncio
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from infra.settings import Settings
from infra.store import Store
from pipeline import plans
from pipeline.families.hard_search import generator as hard_search
from pipeline.families.math.generator import VERSION, Math
from pipeline.plans import EVEN, PlanError
from pipeline.release import ReleaseError, publish
from rl.steer import SteerError, drawn
from rl.train.run import FAILURES_FILE, TrainRun, create
from schemas.arrow import FAILURES, KEPT
from schemas.config import CurateConfig, MathConfig
from schemas.errors import TouchstoneError
from schemas.manifest import StratumCounts
from schemas.row import Kept
from schemas.steering import Line, Plan, SteeringOptions, Tally
from schemas.task import Task
from schemas.training import TrainConfig
from tests.pipeline.test_release import part
from tests.rl.couples import trained
from tests.worlds import atlas

OPTIONS = SteeringOptions()
CONFIG = CurateConfig.model_validate({"family": "math", "math": {"templates": ["gcd", "ages"]}})
GCD, AGES = "math/2/none/number/integers", "math/3/none/number/proportion"
COUNTS = {
    GCD: StratumCounts(generated=10, missed=1, kept=7, samples=80, correct=30, judged=11, tokens=1100),
    AGES: StratumCounts(missed=1, generated=1, tokens=400),
    "math/1/none/number/none": StratumCounts(generated=5),
}
"""The last is none that can be asked for."""
PARENT = Plan(
    family="math",
    generator=VERSION,
    release="r-0",
    group=8,
    lines=(
        Line(stratum=GCD, share=0.6, kept=Tally(yes=10, no=10), pin=0.4),
        Line(stratum=AGES, share=0.4, kept=Tally(yes=5, no=5)),
    ),
)


def settings(folder: Path) -> Settings:
    return Settings(store=str(folder), cache=folder)


def run_on(folder: Path, config: CurateConfig = CONFIG) -> TrainRun:
    """A run that is over, on a release of this config: a group of 4 attempts at each of 7 tasks."""
    make = Math(CONFIG.math)
    rows = [Kept(task=task, difficulty=()) for i in range(10) if isinstance(task := make.at(1, i, GCD), Task)]
    splits = {"train": KEPT.pack(rows[:7]), "test": KEPT.pack(rows[7:])}
    made = part(config=config, strata=COUNTS, splits=splits, generator=VERSION)
    release = publish(Store(str(folder)), [made])
    limits = {"family": "math", "steps": 1, "rollout": {"group": 4}}
    run = create(TrainConfig.model_validate({**limits, "release": release.version}), settings(folder))
    asyncio.run(trained(run))
    return run


def following(folder: Path, plan: Plan) -> TrainRun:
    """A run on a release that has followed the plan."""
    plans.keep(Store(str(folder)), plan)
    return run_on(folder, CONFIG.model_copy(update={"plan": plan.id, "aims": plans.aims_of(plan)}))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> TrainRun:
    return run_on(tmp_path_factory.mktemp("first"))


@pytest.fixture
def run(first: TrainRun, tmp_path: Path) -> TrainRun:
    """The same, to be damaged."""
    path = shutil.copytree(first.path, tmp_path / first.id)
    return TrainRun(path, first.config, first.origin)


def home(run: TrainRun) -> Settings:
    return settings(Path(run.origin.release).parents[1])


def lines(plan: Plan) -> dict[str, Line]:
    return {line.stratum: line for line in plan.lines}


def test_without_a_plan_shares_are_as_they_came_out(first: TrainRun) -> None:
    """1,100 and 400 tokens of 1,500, of strata that can be asked for; others of those join with none."""
    plan = drawn(first, home(first), OPTIONS)
    assert (plan.parent, plan.release, plan.run, plan.world) == (None, first.origin.version, first.id, "")
    assert plan.group == first.config.rollout.group == 4
    assert {name: round(line.was, 3) for name, line in lines(plan).items() if line.was} == {GCD: 0.733, AGES: 0.267}
    assert lines(plan).keys() == {*Math(CONFIG.math).strata}
    assert sum(line.share for line in plan.lines) == pytest.approx(1)
    assert lines(plan)[GCD].kept == Tally(yes=7, no=4)
    assert lines(plan)[GCD].tokens == 1100


def test_attempts_of_training_say_how_hard_a_stratum_is_and_those_that_broke_are_advice(first: TrainRun) -> None:
    """Of 4 attempts at each of 7 tasks one breaks the format; the other 21 are right or not."""
    plan = drawn(first, home(first), OPTIONS)
    assert lines(plan)[GCD].right.n == 21
    assert plan.advice == {"format": 7}


def test_equal_inputs_make_an_equal_plan_and_nothing_is_written(first: TrainRun) -> None:
    place = home(first)
    assert drawn(first, place, OPTIONS) == drawn(first, place, OPTIONS)
    assert drawn(first, place, SteeringOptions(seed=1)).id != drawn(first, place, OPTIONS).id
    assert not (Path(place.store) / "plans").exists()


def test_a_plan_goes_on_from_what_the_release_followed(tmp_path: Path) -> None:
    """Evidence of the round before counts 0.8: 0.8 * 10 + 7 kept, 0.8 * 10 + 4 not. The pin was .4 of the budget."""
    run = following(tmp_path, PARENT)
    plan = drawn(run, settings(tmp_path), OPTIONS)
    assert (plan.parent, plan.release, plan.run, plan.group) == (PARENT.id, run.origin.version, run.id, 4)
    assert lines(plan)[GCD].kept == Tally(yes=15, no=12)
    assert {name: line.was for name, line in lines(plan).items()} == {GCD: 0.4, AGES: 0.6}


def test_a_pin_holds_in_the_plans_that_follow(tmp_path: Path) -> None:
    run = following(tmp_path, PARENT)
    plan = drawn(run, settings(tmp_path), OPTIONS)
    assert (lines(plan)[GCD].pin, lines(plan)[GCD].share) == (0.4, 0.4)
    changed = tuple(line.model_copy(update={"pin": None if line.pin is None else 0}) for line in plan.lines)
    vetoed = plan.model_copy(update={"lines": changed})
    after = drawn(following(tmp_path, vetoed), settings(tmp_path), OPTIONS)
    assert (lines(after)[GCD].pin, lines(after)[GCD].share, lines(after)[AGES].share) == (0, 0, 1)
    assert lines(after)[GCD].why == "vetoed"


def test_all_strata_alike_is_no_plan_to_go_on_from(tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"plan": EVEN, "aims": plans.aims_of(PARENT)})
    assert drawn(run_on(tmp_path, config), settings(tmp_path), OPTIONS).parent is None


def test_a_run_without_statistics_says_what_writes_them(run: TrainRun) -> None:
    (run.path / FAILURES_FILE).unlink()
    with pytest.raises(SteerError, match=rf"is not there; `touchstone report {run.path}` writes it"):
        drawn(run, home(run), OPTIONS)


@pytest.mark.parametrize("left", [b"", b"PAR1", b"PAR1 half of it"])
def test_statistics_that_are_damaged_are_no_ground_for_a_plan(run: TrainRun, left: bytes) -> None:
    (run.path / FAILURES_FILE).write_bytes(left)
    with pytest.raises(
        SteerError, match=r"failures\.parquet: cannot be read .* write it anew with `touchstone report`"
    ):
        drawn(run, home(run), OPTIONS)


def test_versions_that_are_no_numbers_are_told(run: TrainRun) -> None:
    path = run.path / FAILURES_FILE
    rows = FAILURES.unpack(pq.read_table(path))
    pq.write_table(FAILURES.pack(row.model_copy(update={"version": "abc"}) for row in rows), path)
    with pytest.raises(
        SteerError, match=r"failures\.parquet: counts weights of version 'abc', and versions are numbers"
    ):
        drawn(run, home(run), OPTIONS)


@pytest.mark.parametrize("change", ["another", "without_read", "text_for_numbers"])
def test_statistics_of_another_schema_are_told(run: TrainRun, change: str) -> None:
    path = run.path / FAILURES_FILE
    table = pq.read_table(path)
    if change == "another":
        table = pa.table({"stratum": ["math"], "failed": [3]})
    elif change == "without_read":
        table = table.drop_columns(["read"])
    else:
        table = table.set_column(table.schema.names.index("n"), "n", pa.array(["many"] * table.num_rows))
    pq.write_table(table, path)
    with pytest.raises(SteerError, match=r"failures\.parquet: cannot be read .* write it anew") as caught:
        drawn(run, home(run), OPTIONS)
    assert "\n" not in str(caught.value)


def test_a_run_that_ended_no_attempt_is_nothing_to_steer_by(run: TrainRun) -> None:
    pq.write_table(FAILURES.pack([]), run.path / FAILURES_FILE)
    with pytest.raises(SteerError, match="counts no attempt; train first, there is nothing to steer by"):
        drawn(run, home(run), OPTIONS)


def test_a_release_of_strata_that_cannot_be_asked_for_is_told(tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"math": MathConfig(templates=("fence",))})
    with pytest.raises(SteerError, match="has no candidate of a stratum that can be asked for; curate more"):
        drawn(run_on(tmp_path, config), settings(tmp_path), OPTIONS)


def test_statistics_of_another_run_are_told_by_their_strata(run: TrainRun) -> None:
    row = FAILURES.unpack(pq.read_table(run.path / FAILURES_FILE))[0].model_copy(update={"stratum": "math/9"})
    pq.write_table(FAILURES.pack([row]), run.path / FAILURES_FILE)
    with pytest.raises(SteerError, match=rf"counts math/9, which release {run.origin.version} has no task of"):
        drawn(run, home(run), OPTIONS)


def test_a_release_that_is_gone_or_another_is_told(tmp_path: Path) -> None:
    run = run_on(tmp_path)
    manifest = Path(run.origin.release) / "_touchstone/manifest.json"
    manifest.write_text(manifest.read_text().replace('"judged": 11', '"judged": 12'))
    with pytest.raises(ReleaseError, match="was changed after it was written"):
        drawn(run, settings(tmp_path), OPTIONS)
    shutil.rmtree(run.origin.release)
    with pytest.raises(ReleaseError, match="is half-written or no release"):
        drawn(run, settings(tmp_path), OPTIONS)


def test_a_plan_that_is_gone_or_of_another_generator_is_told(tmp_path: Path) -> None:
    run = following(tmp_path, PARENT)
    for file in (tmp_path / "plans").glob("p-*"):
        file.unlink()
    with pytest.raises(PlanError, match=rf"{PARENT.id}\.json: no such plan; draw one"):
        drawn(run, settings(tmp_path), OPTIONS)
    run = following(tmp_path, PARENT.model_copy(update={"generator": "0"}))
    reason = f"is for the generator 0, and this is {VERSION}; follow `uniform`, and steer from its"
    with pytest.raises(PlanError, match=reason):
        drawn(run, settings(tmp_path), OPTIONS)


@pytest.mark.parametrize("planned", [False, True])
def test_a_world_that_has_changed_since_is_told(tmp_path: Path, planned: bool) -> None:
    now = atlas().hash
    (tmp_path / "worlds").symlink_to(Settings.from_env().cache / "worlds")
    config = CurateConfig(family="hard_search")
    if planned:
        plan = PARENT.model_copy(update={"family": "hard_search", "generator": hard_search.VERSION, "world": "other"})
        plans.keep(Store(str(tmp_path)), plan)
        config = config.model_copy(update={"plan": plan.id, "aims": plans.aims_of(plan)})
    made = part(family="hard_search", config=config, worlds={"atlas": "other"})
    release = publish(Store(str(tmp_path)), [made])
    run = create(TrainConfig(release=release.version, steps=1), settings(tmp_path))
    asyncio.run(trained(run))
    reason = "is for the world other" if planned else f"asks about atlas as it was then, and it is {now} now"
    with pytest.raises(TouchstoneError, match=reason):
        drawn(run, settings(tmp_path), OPTIONS)

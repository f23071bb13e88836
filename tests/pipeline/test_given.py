"""What a run is given by earlier ones: a plan to follow, tasks that stay apart, tasks to try again."""

import asyncio
from pathlib import Path

import pytest

from infra.store import Store
from pipeline import assemble, plans, stages
from pipeline.apart import HeldOut
from pipeline.curate import Here, curate, publish
from pipeline.earlier import tried_again
from pipeline.families import generator
from pipeline.release import Release, ReleaseError
from pipeline.release import publish as publish_parts
from pipeline.replay import replay
from pipeline.runs import Run
from schemas.answer import EntityAnswer
from schemas.config import Aim, CurateConfig
from schemas.errors import TouchstoneError
from schemas.steering import Line, Plan, Tally
from tests.pipeline.runs import CONFIG, coins
from tests.pipeline.test_release import part
from tests.worlds import toy_world

WORLD = toy_world()


def curated(folder: Path, store: Store, *, right: float = 0.5, **settings: object) -> tuple[Run, Release]:
    """One run with models that toss coins, published."""
    config = CurateConfig.model_validate({**CONFIG.model_dump(), **settings})
    work = Here(WORLD, coins(folder / "log", solver=right))
    run = asyncio.run(curate(config, world=WORLD, runs=folder / "runs", store=store, work=work))
    return run, publish([run], store).release


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Store, Release]:
    """A store with one release of a solver that is right one time in ten: much is too hard for it."""
    folder = tmp_path_factory.mktemp("home")
    store = Store(str(folder / "store"))
    return folder, store, curated(folder, store, right=0.1)[1]


def test_nothing_that_is_kept_asks_what_a_held_out_task_asks_or_for_what_it_asks_for(home) -> None:
    folder, store, _ = home
    _, held = curated(folder, store, seed=3, candidates=15, test_share=1.0)
    assert held.splits("hard_search").keys() == {"test"}
    known = HeldOut.of(row.task for row in held.rows("hard_search"))
    run, release = curated(folder, store, seed=4, held_out=held.version)
    step = next(step for step in release.manifest.funnel["hard_search"] if step.filter == "contaminated")
    assert step.rejected > 0 and set(step.reasons) <= {"same_question", "same_answer"}
    kept = [row.task for row in release.rows("hard_search")]
    assert kept and not any(known.shared(task) for task in kept)
    entities = {task.answer.entity for task in kept if isinstance(task.answer, EntityAnswer)}
    assert not entities & known.entities
    assert run.config.held_out == held.version


def test_a_task_is_its_own_contamination_and_computed_answers_are_not() -> None:
    from tests.pipeline.tasks import math_task, search_task

    held = HeldOut.of([search_task(), math_task("What is 7 + 5?")])
    assert held.shared(search_task()) == "same_question"
    assert held.shared(math_task("What is 7 + 5?")) == "same_question"
    assert held.shared(math_task("What is 6 + 6?")) == ""  # 12 as well


def test_too_hard_tasks_are_tried_again_before_new_ones_and_counted_apart(home) -> None:
    folder, store, before = home
    wanted = tried_again(before, CONFIG)
    too_hard = {row.task.task_id for row in before.rejected() if row.reason == "too_hard"}
    assert wanted and {task.task_id for task in wanted} <= too_hard
    run, release = curated(folder, store, right=0.6, seed=8, earlier=before.version)
    assert list(run.carried) == wanted
    assert stages.tasks(run, 0)[: len(wanted)] == wanted
    strata = release.manifest.strata.values()
    assert sum(counts.carried for counts in strata) == len(wanted)
    kept = [row.task.task_id for row in release.rows("hard_search")]
    revived = [task for task in wanted if task.task_id in kept]
    assert revived and sum(counts.revived for counts in strata) == len(revived)
    assert sum(counts.kept for counts in strata) == len(kept) - len(revived)
    assert release.manifest.funnel["hard_search"][0].seen == 45 + len(wanted)
    assert replay(revived[0].task_id, release, WORLD) == revived[0]


def test_tasks_of_strata_without_a_share_are_not_tried_again(home) -> None:
    before = home[2]
    many = CONFIG.model_copy(update={"candidates": 200})
    one, *others = sorted({task.stratum for task in tried_again(before, many)})
    aims = (Aim(stratum=one, weight=0.2), *(Aim(stratum=other, weight=0.0) for other in others))
    assert {task.stratum for task in tried_again(before, many.model_copy(update={"aims": aims}))} == {one}


def test_a_tenth_of_the_candidates_is_tried_again_however_many_a_budget_allows(home) -> None:
    before = home[2]
    counts = before.manifest.strata.values()
    each = sum(count.tokens for count in counts) / sum(count.asked for count in counts)
    ten = CONFIG.model_copy(update={"candidates": 10})
    many = CONFIG.model_copy(update={"candidates": 10**6})
    paid = many.model_copy(update={"budget": round(10 * each)})
    assert tried_again(before, paid) == tried_again(before, ten) != tried_again(before, many)


def test_a_carried_task_that_the_generator_makes_too_is_there_once(home) -> None:
    """The same seed makes the same candidates: those that are tried again are misses when their turn comes."""
    folder, store, before = home
    run, release = curated(folder, store, right=0.6, earlier=before.version)
    misses = release.manifest.funnel["hard_search"][0].reasons
    assert misses["tried_again_already"] == len(run.carried)
    ids = [row.task.task_id for row in release.rows("hard_search")]
    assert len(ids) == len(set(ids))


def test_what_a_run_was_given_stays_with_it(home, tmp_path) -> None:
    """Opened elsewhere, without the store: held-out tasks and those to try again are as they were."""
    folder, store, before = home
    run, _ = curated(folder, store, right=0.6, seed=8, earlier=before.version)
    again = Run.open(run.path)
    assert (again.carried, again.held_out, again.config) == (run.carried, run.held_out, run.config)
    assert assemble.finished(again) == assemble.finished(run)


@pytest.mark.parametrize("setting", ["held_out", "earlier"])
def test_a_release_that_is_not_there_is_refused_before_any_work(tmp_path, setting) -> None:
    with pytest.raises(ReleaseError, match="nowhere: no release of"):
        curated(tmp_path, Store(str(tmp_path)), **{setting: "nowhere"})
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("setting", ["held_out", "earlier"])
def test_a_release_of_another_family_is_refused_before_any_work(tmp_path, setting) -> None:
    version = publish_parts(Store(str(tmp_path)), [part(family="math")]).version
    with pytest.raises(ReleaseError, match=f"{version}: is a release of math, not of hard_search; name another"):
        curated(tmp_path, Store(str(tmp_path)), **{setting: version})
    assert not (tmp_path / "runs").exists()


def plan(strata, **changes) -> Plan:
    fields = {
        "family": "hard_search",
        "generator": "1",
        "world": WORLD.hash,
        "release": "r-0",
        "group": 8,
        "lines": tuple(Line(stratum=name, share=1 / (i + 1)) for i, name in enumerate(strata)),
    }
    return Plan(**{**fields, **changes})


STRATA = generator(CONFIG, WORLD).strata


def test_the_latest_plan_is_followed_and_named(home) -> None:
    folder, store, _ = home
    plans.publish(store, plan(STRATA[:1]))
    drawn = plan(STRATA[:2])
    plans.publish(store, drawn)
    run, release = curated(folder, store, seed=9, plan="latest")
    assert run.config.plan == drawn.id
    assert [(aim.stratum, round(aim.weight, 2)) for aim in run.config.aims] == [(STRATA[0], 0.67), (STRATA[1], 0.33)]
    assert release.manifest.configs["hard_search"]["plan"] == drawn.id
    made = release.manifest.strata
    assert set(made) == set(STRATA[:2]) and made[STRATA[0]].asked == pytest.approx(30, abs=2)


def test_a_plan_is_followed_by_its_id_whatever_was_drawn_since(home) -> None:
    store = home[1]
    named = plan(STRATA[2:4])
    plans.keep(store, named)
    config = CurateConfig.model_validate({**CONFIG.model_dump(), "plan": named.id})
    found = plans.followed(config, store, lambda: generator(CONFIG, WORLD), WORLD.hash)
    assert (found.plan, found.aims) == (named.id, plans.aims_of(named))
    with pytest.raises(plans.PlanError, match=r"p-000000000000\.json: no such plan"):
        plans.followed(
            config.model_copy(update={"plan": "p-000000000000"}), store, lambda: generator(CONFIG, WORLD), WORLD.hash
        )


def test_candidates_are_as_many_as_the_share_of_the_budget_pays_for() -> None:
    """Equal shares, one of them four times as dear: a fifth and four fifths, but for what is not yet known for sure."""
    dear = Line(stratum="a", share=0.5, kept=Tally(yes=1e6, no=1e6), tokens=8e6)
    cheap = Line(stratum="b", share=0.5, kept=Tally(yes=1e6, no=1e6), tokens=2e6)
    aims = plans.aims_of(plan((), lines=(dear, cheap)))
    assert [round(aim.weight, 3) for aim in aims] == [0.2, 0.8]


def test_a_pin_holds_in_the_very_plan_that_it_is_written_into() -> None:
    pinned = (Line(stratum="a", share=0.5, pin=0.2), Line(stratum="b", share=0.3, pin=0), Line(stratum="c", share=0.1))
    found = plan((), lines=(*pinned, Line(stratum="d", share=0.3)))
    assert {name: round(share, 3) for name, share in found.shares.items()} == {"a": 0.2, "b": 0, "c": 0.2, "d": 0.6}
    aims = plans.aims_of(found)  # nothing was tried, so all cost alike
    assert {aim.stratum: round(aim.weight, 3) for aim in aims} == {"a": 0.2, "c": 0.2, "d": 0.6}
    assert [row[:2] for row in plans.lines(found)] == [("d", "60.0%"), ("a", "20.0%"), ("c", "20.0%"), ("b", "0.0%")]


def test_uniform_aims_at_every_stratum_alike(home) -> None:
    store = home[1]
    config = CurateConfig.model_validate({**CONFIG.model_dump(), "plan": "uniform"})
    found = plans.followed(config, store, lambda: generator(CONFIG, WORLD), WORLD.hash)
    assert [(aim.stratum, aim.weight) for aim in found.aims] == [(stratum, 1.0) for stratum in STRATA]
    assert plans.followed(found, store, lambda: generator(CONFIG, WORLD), WORLD.hash) == found
    assert CurateConfig.model_validate(found.model_dump(mode="json")) == found


def test_before_there_is_a_plan_the_family_has_its_own_mix(tmp_path) -> None:
    store = Store(str(tmp_path))
    config = CurateConfig.model_validate({**CONFIG.model_dump(), "plan": "latest-if-any"})
    assert plans.followed(config, store, lambda: pytest.fail("no plan"), WORLD.hash).aims == ()
    plans.publish(store, plan(("math/1",), family="math"))
    assert plans.latest(store, "hard_search") is None
    with pytest.raises(plans.PlanError, match="holds no plan of hard_search; draw one with `touchstone steer`"):
        plans.followed(
            config.model_copy(update={"plan": "latest"}), store, lambda: generator(CONFIG, WORLD), WORLD.hash
        )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"family": "math"}, "is for the family math"),
        ({"generator": "0"}, "is for the generator 0"),
        ({"world": "other"}, "is for the world other"),
        ({"lines": (Line(stratum="hard_search/99", share=1),)}, "has the stratum hard_search/99, which hard_search does not"),
    ],
)  # fmt: skip
def test_a_plan_that_does_not_fit_is_refused(tmp_path, changes, reason) -> None:
    path = tmp_path / "plan.json"
    path.write_text(plan(STRATA[:2], **changes).model_dump_json())
    config = CurateConfig.model_validate({**CONFIG.model_dump(), "plan": str(path)})
    with pytest.raises(plans.PlanError, match=reason):
        plans.followed(config, Store(str(tmp_path)), lambda: generator(CONFIG, WORLD), WORLD.hash)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ('{"family": "hard_search"}', "lines: Field required"),
        (plan(STRATA[:2]).model_dump_json().replace('"share":1.0', '"share":-1.0'), "greater than or equal to 0"),
        (
            plan(STRATA[:1]).model_dump_json().replace('"share":1.0', '"share":0.0'),
            "shares of what pins leave, 1, add up to 0",
        ),
        (
            plan(STRATA[:1]).model_dump_json().replace('"share":1.0', '"share":NaN'),
            "greater than or equal to 0|less than or equal",
        ),
        (plan((STRATA[0],)).model_dump_json().replace('"pin":null', '"pin":1.5'), "less than or equal to 1"),
        (plan((STRATA[0],)).model_dump_json().replace('"share":1.0', '"share":1e308'), "less than or equal to 1"),
        (plan((STRATA[0],)).model_dump_json().replace('"tokens":0.0', '"tokens":1e308'), "less than or equal to 1"),
        (
            plan((STRATA[0],)).model_dump_json().replace('"share":1.0', '"share":5e-324'),
            "shares of what pins leave, 1,",
        ),
        (plan((STRATA[0],)).model_dump_json().replace('"pin":null', '"pin":null,"pin":0.5'), "'pin' is written twice"),
        (
            plan((STRATA[0],), parent="p-000000000000").model_dump_json().replace("p-0", "../"),
            "parent=.*String should match",
        ),
        ("[" * 100_000, "recursion|Recursion"),
    ],
)
def test_a_file_that_is_no_plan_says_why(tmp_path, text, reason) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(plans.PlanError, match=reason):
        plans.load(Store(str(tmp_path)), str(path))


def test_twice_the_same_stratum_and_pins_beyond_the_budget_are_no_plan() -> None:
    with pytest.raises(ValueError, match="is there twice"):
        plan((STRATA[0], STRATA[0]))
    with pytest.raises(ValueError, match="all are vetoed"):
        plan((), lines=tuple(Line(stratum=name, share=1, pin=0) for name in STRATA[:2]))
    with pytest.raises(ValueError, match=r"the pins add up to 1\.2"):
        plan((), lines=tuple(Line(stratum=name, share=1, pin=0.6) for name in STRATA[:2]))
    with pytest.raises(ValueError, match=r"the shares of what pins leave, 0\.9, add up to 0"):
        plan((), lines=(Line(stratum=STRATA[0], share=1, pin=0.1), Line(stratum=STRATA[1], share=0)))
    with pytest.raises(ValueError, match=r"the shares of what pins leave, 0\.98, add up to 0"):
        plan((), lines=tuple(Line(stratum=name, share=1, pin=0.01) for name in STRATA[:2]))


def test_aims_beside_a_plan_are_its_own_or_refused(home) -> None:
    store = home[1]
    named = plan(STRATA[:2])
    plans.keep(store, named)

    def followed(**changes: object) -> CurateConfig:
        config = CurateConfig.model_validate({**CONFIG.model_dump(), "plan": named.id, **changes})
        return plans.followed(config, store, lambda: generator(CONFIG, WORLD), WORLD.hash)

    assert followed(aims=plans.aims_of(named)) == followed()
    with pytest.raises(plans.PlanError, match=f"plan={named.id}: the aims beside it are not its own"):
        followed(aims=({"stratum": STRATA[2]},))
    with pytest.raises(plans.PlanError, match=r"p-000000000000\.json: no such plan"):
        followed(aims=plans.aims_of(named), plan="p-000000000000")


def test_notes_in_a_plans_document_are_kept_and_what_is_followed_stays_as_it_was_drawn(tmp_path) -> None:
    store, drawn = Store(str(tmp_path)), plan(STRATA[:2])
    where = Path(plans.keep(store, drawn))
    where.with_suffix(".md").write_text("# Mine\n")
    plans.keep(store, drawn)
    assert where.with_suffix(".md").read_text() == "# Mine\n"
    where.write_bytes(b"\xef\xbb\xbf" + where.read_bytes())  # as some editors begin a file
    assert plans.load(store, drawn.id) == drawn
    where.write_text(where.read_text("utf-8-sig").replace('"share": 1.0', '"share": 2.0'))
    with pytest.raises(plans.PlanError, match=f"{drawn.id}.json: was edited, which makes another plan of it; move it"):
        plans.load(store, drawn.id)
    assert plans.load(store, str(where)).lines[0].share == 2.0


def test_a_plan_that_is_not_there_is_named(tmp_path) -> None:
    for name in ("p-000000000000", "no/such.json", str(tmp_path)):
        with pytest.raises(TouchstoneError, match=r"no such plan|directory"):
            plans.load(Store(str(tmp_path)), name)


def test_a_plan_reads_as_a_document_and_comes_back_as_it_was(tmp_path) -> None:
    store, drawn = Store(str(tmp_path)), plan(STRATA[:2], advice={"format": 3})
    where = plans.publish(store, drawn)
    plans.publish(store, drawn)  # the same again is no second one
    assert plans.latest(store, "hard_search") == drawn == plans.load(store, where) == plans.load(store, drawn.id)
    text = Path(where).with_suffix(".md").read_text()
    assert f"| {STRATA[0]} | 66.7% |" in text and "| format | 3 |" in text

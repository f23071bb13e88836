"""From a config to a release: counts close, nothing done is done again, and equal runs end in the same release."""

import asyncio
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from infra.files import FolderInUse
from infra.settings import ROOT
from infra.store import Store, StoreUnreachable
from pipeline import assemble, stages
from pipeline.assemble import NothingKept, split_rows
from pipeline.curate import Here, Published, curate, publish, start
from pipeline.release import load, own
from pipeline.replay import ReplayError, replay
from pipeline.runs import Run, RunError
from pipeline.solver import SolverDown
from schemas.certificate import Outcome
from schemas.config import CurateConfig, Served
from schemas.row import Kept
from tests.pipeline.runs import CONFIG, calls, coins, opened
from tests.pipeline.test_release import kept
from tests.worlds import toy_world

WORLD = toy_world()
MATH = CurateConfig(family="math", candidates=40, seed=1)


def go(folder: Path, config: CurateConfig = CONFIG, **coin: object) -> Run:
    """One curation in `folder`, with models that toss coins."""
    return asyncio.run(
        curate(
            config,
            world=WORLD,
            runs=folder / "runs",
            store=Store(str(folder / "store")),
            work=Here(WORLD, coins(folder / "log", **coin)),
        )
    )


def prime(folder: Path, first: tuple[Path, Run, Published], config: CurateConfig = CONFIG) -> None:
    """Give `folder` the run of `config` with the candidates of `first`, screened where the census is the same one."""
    run = start(config, WORLD, folder / "runs", Store(str(folder)))
    for done in ("candidates-*", *(["certificates/screen-*"] if config.by_batch is False else [])):
        for file in first[1].path.glob(done):
            (run.path / file.relative_to(first[1].path)).parent.mkdir(exist_ok=True)
            shutil.copy(file, run.path / file.relative_to(first[1].path))


def out(folder: Path, run: Run) -> Published:
    return publish([run], Store(str(folder / "store")))


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> tuple[Path, Run, Published]:
    folder = tmp_path_factory.mktemp("first")
    run = go(folder)
    return folder, run, out(folder, run)


def test_counts_close_from_candidates_to_released_rows(first):
    _, _, published = first
    steps = published.release.manifest.funnel["hard_search"]
    assert steps[0].filter == "generate" and steps[0].seen == CONFIG.candidates
    for before, after in itertools.pairwise(steps):
        assert after.seen == before.kept
    rows = list(published.release.rows("hard_search"))
    assert len(rows) == steps[-1].kept > 0
    assert len(rows) + len(list(published.release.rejected())) == steps[0].kept
    for step in steps:
        assert sum(step.reasons.values()) == step.seen - step.kept


def test_every_row_and_every_reject_has_its_certificates(first):
    _, _, published = first
    release = published.release
    names = [step.filter for step in release.manifest.funnel["hard_search"]][1:]
    written = list(release.certificates())
    for row in release.rows("hard_search"):
        mine = [c for c in written if c.task_id == row.task.task_id and c.outcome is Outcome.KEEP]
        assert sorted({c.filter for c in mine}) == sorted(names)
    for reject in release.rejected():
        stops = [c for c in written if c.task_id == reject.task.task_id and c.outcome is not Outcome.KEEP]
        assert (reject.filter, reject.reason) in [(c.filter, c.reason) for c in stops]


def test_difficulty_counts_what_the_attempts_show(first):
    _, _, published = first
    release = published.release
    for row in release.rows("hard_search"):
        alone, measured = row.difficulty
        assert (alone.arm, measured.arm) == ("closed_book", "tools")
        attempts = list(release.attempts(row.task.task_id))
        assert [t.seed for t in attempts] == list(measured.seeds)
        assert measured.n == len(attempts) and 1 <= measured.correct <= 7
        assert len(set(measured.seeds)) == len(measured.seeds)


def test_strata_add_up_to_the_funnel(first):
    _, _, published = first
    manifest = published.release.manifest
    assert sum(c.generated for c in manifest.strata.values()) == manifest.funnel["hard_search"][0].kept
    assert sum(c.kept for c in manifest.strata.values()) == manifest.funnel["hard_search"][-1].kept


def test_an_equal_run_does_nothing_and_finds_the_release(first):
    folder, run, published = first
    before = (folder / "log").read_text()
    again = go(folder)
    assert again == run and (folder / "log").read_text() == before
    second = out(folder, again)
    assert not second.new and second.release.manifest == published.release.manifest


def test_equal_configs_make_the_same_release_in_other_folders_and_batches_in_any_order(first, tmp_path):
    _, _, published = first
    run = go(tmp_path, seconds=0.001)
    assert out(tmp_path, run).release.version == published.release.version


def test_a_row_is_made_again_byte_for_byte(first):
    _, _, published = first
    release = published.release
    for row in [*release.rows("hard_search")][:3] + [*release.rejected()][:2]:
        assert replay(row.task.task_id, release, WORLD).model_dump_json() == row.task.model_dump_json()
    task_id = next(release.rows("hard_search")).task.task_id
    with pytest.raises(ReplayError, match="none is given"):
        replay(task_id, release, None)


SCRIPT = """
import asyncio, sys
from pathlib import Path
from tests.pipeline.runs import CONFIG, coins
from tests.worlds import toy_world
from infra.store import Store
from pipeline.curate import Here, curate
folder = Path(sys.argv[1])
world = toy_world()
work = Here(world, coins(folder / "log", seconds=0.05))
asyncio.run(curate(CONFIG, world=world, runs=folder / "runs", store=Store(str(folder / "store")), work=work))
"""


def started(folder: Path) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder)], cwd=ROOT, env=env)


def test_a_full_disk_ends_the_run_and_with_space_it_goes_on_to_the_same_release(first, tmp_path):
    """No file may pass 1 KiB: the first file of candidates does not fit, the description of the run was there before."""
    _, _, published = first
    start(CONFIG, WORLD, tmp_path / "runs", Store(str(tmp_path)))
    script = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))\n{SCRIPT}"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert "infra.store.DiskFull" in process.stderr and "free some space and run again" in process.stderr
    prime(tmp_path, first)
    assert out(tmp_path, go(tmp_path)).release.version == published.release.version


def wait_for(condition, process: subprocess.Popen[bytes], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_run_stopped_in_the_middle_repeats_no_call_that_was_answered(first, tmp_path, stop):
    """Stopped after the first calls of the last stage. What is in flight then was never answered and is made anew."""
    _, _, published = first
    prime(tmp_path, first)
    process = started(tmp_path)
    wait_for(lambda: (tmp_path / "log").exists() and "open tools" in (tmp_path / "log").read_text(), process)
    asked = len(calls(tmp_path / "log"))
    wait_for(lambda: len(calls(tmp_path / "log")) > asked + 3, process)
    process.send_signal(stop)
    process.wait()
    before = calls(tmp_path / "log")
    run = go(tmp_path)
    after = calls(tmp_path / "log")
    repeated = [key for key in set(after) if after.count(key) > 1]
    # A call is written to the log just before its response reaches the journal: only those at that point may come twice.
    assert len(repeated) <= 1 if stop == signal.SIGINT else len(repeated) <= CONFIG.concurrency
    assert len(repeated) < len(before) / 2
    assert out(tmp_path, run).release.version == published.release.version


def test_two_runs_of_one_config_at_once_are_refused(first, tmp_path):
    prime(tmp_path, first)
    process = started(tmp_path)
    wait_for(lambda: (tmp_path / "log").exists(), process)
    with pytest.raises(FolderInUse, match=f"process {process.pid} works on this run"):
        go(tmp_path)
    process.kill()
    process.wait()


def test_a_run_that_keeps_nothing_says_where_everything_went_and_publishes_nothing(first, tmp_path):
    prime(tmp_path, first)
    run = go(tmp_path, solver=0.0)
    with pytest.raises(NothingKept, match=r"0 of 45 candidates kept; .*top1 stopped .*too_hard"):
        out(tmp_path, run)
    assert not (tmp_path / "store/releases").exists()
    assert len(assemble.finished(run)) == 3 and calls(tmp_path / "log")


def test_no_solver_is_opened_when_no_task_is_left_for_it(first, tmp_path):
    prime(tmp_path, first)
    run = go(tmp_path, closed_book=1.0)
    assert opened(tmp_path / "log") == ["closed_book"]
    assert assemble.finished(run) == [0, 1, 2]
    with pytest.raises(NothingKept, match="closed_book stopped"):
        out(tmp_path, run)


def test_accept_goes_on_until_enough_are_kept(first, tmp_path):
    """The cap is 8 * 10 candidates, 6 batches of 15; about 3 in 10 are kept, so about 2 batches are needed."""
    config = CurateConfig.model_validate({**CONFIG.model_dump(), "candidates": None, "accept": 8, "tries": 10})
    prime(tmp_path, first, config)
    run = go(tmp_path, config)
    done = assemble.finished(run)
    per_batch = [len(assemble.kept(run, batch)) for batch in done]
    assert sum(per_batch[:-1]) < 8 <= sum(per_batch)
    assert len(done) < len(stages.batches(run))
    release = out(tmp_path, run).release
    assert sum(release.splits("hard_search").values()) == 8
    assert release.manifest.endings == {"hard_search": "accepted"}
    first_step, *_, last_step = release.manifest.funnel["hard_search"]
    assert first_step.seen == 15 * len(done)
    assert (last_step.filter, last_step.seen, last_step.kept) == ("accept", sum(per_batch), 8)
    surplus = [row for row in release.rejected() if row.reason == "surplus"]
    assert len(surplus) == sum(per_batch) - 8
    assert all(own(row, release.certificates(row.task.task_id))[-1].reason == "surplus" for row in surplus)


def test_a_budget_of_tokens_ends_a_run_after_the_batch_that_spends_it(first, tmp_path):
    """A batch costs a few thousand tokens; the second begins while less than the budget is spent."""
    _, run, _ = first
    costs = [sum(c.cost for _, c in stages.verdicts(run, batch)) for batch in stages.batches(run)]
    config = CurateConfig.model_validate({**CONFIG.model_dump(), "budget": costs[0] + 1})
    prime(tmp_path, first, config)
    stopped = go(tmp_path, config)
    assert assemble.finished(stopped) == [0, 1]
    release = out(tmp_path, stopped).release
    assert release.manifest.endings == {"hard_search": "budget"}
    assert sum(counts.tokens for counts in release.manifest.strata.values()) >= config.budget


def test_accept_gives_up_at_its_cap_and_publishes_what_there_is(tmp_path):
    """5 tasks at 2 tries each: 10 candidates, all of them in one batch."""
    config = CurateConfig.model_validate({**CONFIG.model_dump(), "candidates": None, "accept": 5, "tries": 2})
    run = go(tmp_path, config)
    assert assemble.finished(run) == [0]
    assert out(tmp_path, run).release.manifest.funnel["hard_search"][0].seen == 10


def test_models_are_expected_once_while_candidates_are_made_and_not_when_a_run_goes_on(tmp_path):
    expected: list[Served] = []
    for _ in range(2):
        work = Here(None, coins(tmp_path / "log"), expect=expected.extend)
        store = Store(str(tmp_path / "store"))
        asyncio.run(curate(MATH, world=None, runs=tmp_path / "runs", store=store, work=work))
    assert expected == list(MATH.models)


def test_math_is_measured_before_it_is_probed(tmp_path):
    """Nothing is asked bare that Pass@N rejects; what is kept has both difficulties, the bare one first."""
    work = Here(None, coins(tmp_path / "log", solver=0.3))
    store = Store(str(tmp_path / "store"))
    run = asyncio.run(curate(MATH, world=None, runs=tmp_path / "runs", store=store, work=work))
    assert opened(tmp_path / "log") == ["reasoning", "no_reasoning"]
    steps = {step.filter: step for step in assemble.funnel(run, [0])}
    assert list(steps)[-2:] == ["pass_at_n", "closed_book"]
    assert 0 < steps["closed_book"].seen == steps["pass_at_n"].kept < steps["pass_at_n"].seen
    assert {tuple(d.arm for d in row.difficulty) for row in assemble.kept(run, 0)} == {("no_reasoning", "reasoning")}
    hard = [row for row in assemble.rejected(run, 0) if row.filter == "pass_at_n"]
    assert {tuple(d.arm for d in row.difficulty) for row in hard} == {("reasoning",)}


def test_a_task_waits_for_a_solver_only_once(first, tmp_path):
    """Duplicates share a task id; their certificates are told apart by their order."""
    _, run, _ = first
    for batch in stages.batches(run):
        seen = [(task.lineage.index, c.filter) for task, c in stages.verdicts(run, batch)]
        assert len(seen) == len(set(seen))


def test_another_solver_in_the_middle_of_a_run_is_refused(first, tmp_path):
    prime(tmp_path, first)
    run = start(CONFIG, WORLD, tmp_path / "runs", Store(str(tmp_path)))
    run.use_solver("tools", "starter@old")
    with pytest.raises(RunError, match="measured with starter@old, and coin@1 is served now"):
        go(tmp_path)


class Down:
    """Refuses every connection."""

    arm, name = "closed_book", "down@1"

    async def __call__(self, task, seed):
        raise ConnectionError("refused")


@pytest.mark.parametrize("concurrency", [2, 1000])
def test_a_solver_that_is_down_ends_the_run_and_what_was_done_stays(first, tmp_path, concurrency):
    """At 2 slots the 32 broken attempts in a row tell; at 1000 too few attempts are made for that, and all tasks fail."""
    config = CONFIG.model_copy(update={"concurrency": concurrency})
    prime(tmp_path, first, config)
    work = Here(WORLD, lambda *_, **__: nullcontext(Down()))
    store = Store(str(tmp_path / "store"))
    with pytest.raises(SolverDown, match=r"down@1: (\d+ attempts in a row broke|failed on all \d+ tasks).*refused"):
        asyncio.run(curate(config, world=WORLD, runs=tmp_path / "runs", store=store, work=work))
    run = start(config, WORLD, tmp_path / "runs", Store(str(tmp_path)))
    assert all(run.has("certificates/screen", batch) for batch in stages.batches(run))
    assert not any(run.has("certificates/probe", batch) for batch in stages.batches(run))


def test_a_store_that_cannot_be_written_is_found_out_before_any_work(tmp_path, s3_server):
    work = Here(WORLD, coins(tmp_path / "log"))
    with pytest.raises(StoreUnreachable, match="no such bucket"):
        asyncio.run(
            curate(CONFIG, world=WORLD, runs=tmp_path / "runs", store=Store("s3://never-made-either"), work=work)
        )
    assert not (tmp_path / "runs").exists()


def test_a_run_is_published_to_a_bucket_as_to_a_disk(first, bucket):
    _, run, published = first
    in_bucket = publish([run], Store(bucket)).release
    assert in_bucket.manifest == published.release.manifest
    assert load(in_bucket.url).url.startswith("s3://")


def test_progress_counts_to_the_end(tmp_path):
    """A tenth of the usual candidates, made anew."""
    config = CONFIG.model_copy(update={"candidates": 5, "batch": 3})
    told: dict[str, list[tuple[int, int]]] = {}

    def progress(stage: str, done: int, total: int) -> None:
        told.setdefault(stage, []).append((done, total))

    work = Here(WORLD, coins(tmp_path / "log"), progress)
    store = Store(str(tmp_path / "store"))
    asyncio.run(curate(config, world=WORLD, runs=tmp_path / "runs", store=store, work=work, progress=progress))
    assert list(told)[:2] == ["generate", "screen"] and told["generate"][-1] == (5, 5)
    for steps in told.values():
        assert [done for done, _ in steps] == list(range(steps[-1][1] + 1))


def rows(n: int) -> list[Kept]:
    return [kept(i) for i in range(n)]


def test_a_task_is_on_the_same_side_whatever_else_is_released():
    """400 rows at a fifth: 80 expected, standard deviation 8."""
    large = split_rows(rows(400), 0.2)
    small = split_rows(rows(200), 0.2)
    sides = {row.task.task_id: name for name, side in large.items() for row in side}
    assert all(sides[row.task.task_id] == name for name, side in small.items() for row in side)
    assert 50 <= len(large["test"]) <= 110


@pytest.mark.parametrize(
    ("n", "share", "sizes"), [(1, 0.9, (1, 0)), (2, 0.99, (1, 1)), (4, 0.1, (4, 0)), (9, 0.0, (9, 0))]
)
def test_no_side_is_ever_empty_and_few_rows_all_train(n, share, sizes):
    """4 rows at a tenth: 0.4 of a row, less than half."""
    sides = split_rows(rows(n), share)
    assert (len(sides["train"]), len(sides.get("test", []))) == sizes
    assert sorted(sides) == (["test", "train"] if sizes[1] else ["train"])


def test_five_rows_at_a_tenth_have_one_in_test_even_if_chance_says_none():
    for first_index in range(0, 50, 5):
        sides = split_rows([kept(i) for i in range(first_index, first_index + 5)], 0.1)
        assert len(sides["test"]) >= 1

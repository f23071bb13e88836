"""A whole run with the real worker, tools, trainer and buffer; turns are sampled by the starter in this process."""

import asyncio
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file

from infra.files import FolderInUse, locked
from infra.settings import ASSETS, Settings
from infra.store import Store
from pipeline.release import publish
from rl.learn.checkpoint import TrainerError
from rl.starter.data import hard_tasks
from rl.train import coach
from rl.train.account import account
from rl.train.buffer import Buffer, BufferError, Counts
from rl.train.checkpoints import Checkpoints
from rl.train.coach import learn, weights_folder
from rl.train.fleet import Recipe
from rl.train.progress import Progress
from rl.train.run import TrainRun, TrainRunError, create, find, open_run, possible
from schemas.arrow import KEPT
from schemas.config import HardSearchConfig
from schemas.errors import TouchstoneError
from schemas.row import Kept
from schemas.training import TrainConfig
from tests.pipeline.test_release import kept, part
from tests.rl.train.torch_engine import TorchEngine
from tests.worlds import atlas

ENGINE = Recipe(TorchEngine, (ASSETS / "starter",))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of real hard-search tasks: 8 to train on, 2 held out."""
    folder = tmp_path_factory.mktemp("store")
    found = hard_tasks(atlas(), HardSearchConfig(types=("element",), min_clues=3, max_clues=3), 5, 10)
    rows = [Kept(task=task) for task in found]
    splits = {"train": KEPT.pack(rows[:8]), "test": KEPT.pack(rows[8:])}
    publish(Store(str(folder)), [part(family="hard_search", splits=splits)])
    return folder


def config(**others: object) -> TrainConfig:
    small = {"groups": 2, "steps": 3, "rollout": {"group": 4, "slots": 8}, "tools": {"replicas": 0}}
    return TrainConfig.model_validate(small | {"checkpoint": {"every": 2, "keep": 1}} | others)


@pytest.fixture
def settings(store: Path, tmp_path: Path) -> Settings:
    (tmp_path / "worlds").symlink_to(Settings.from_env().cache / "worlds")
    return Settings(store=str(store), cache=tmp_path)


async def counts_of(run: TrainRun) -> Counts:
    buffer = Buffer(run.path / "buffer.sqlite")
    try:
        return await buffer.counts()
    finally:
        buffer.close()


async def learnt(run: TrainRun, settings: Settings) -> tuple[Checkpoints, list[Progress]]:
    seen: list[Progress] = []
    checkpoints = Checkpoints(run.path, run.config.checkpoint)
    await learn(run, checkpoints, settings, seen.append, engine=ENGINE)
    return checkpoints, seen


async def test_a_run_leaves_checkpoints_that_are_models_and_every_attempt_it_trained(settings: Settings) -> None:
    run = create(config(), settings)
    checkpoints, seen = await learnt(run, settings)
    counts = await counts_of(run)
    assert counts.missing == 0 and counts.trained + sum(counts.dropped.values()) == 3 * 2 * 4
    assert checkpoints.steps == [2, 3] or checkpoints.steps == [3]  # the last, and the best where that is another
    folder = checkpoints.path(3)
    assert {"model.safetensors", "config.json", "tokenizer.json", "build.json", "buffer.sqlite"} <= set(
        os.listdir(folder)
    )
    began, now = load_file(ASSETS / "starter/model.safetensors"), load_file(folder / "model.safetensors")
    assert began.keys() == now.keys()
    if counts.trained:
        assert any(not began[name].equal(now[name]) for name in began)
    trained = [row for path in (run.path / "trajectories").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    assert len(trained) == 24  # dropped ones too
    assert {turn["version"] for row in trained for turn in row["turns"]} <= {"0", "1", "2"}
    assert seen[-1].step == 3
    with weights_folder(run, shared=False) as weights:
        assert not weights.exists()  # what passed through memory is gone


async def test_equal_settings_are_one_run_however_far_it_goes(settings: Settings) -> None:
    first = create(config(steps=1), settings)
    await learnt(first, settings)
    again = create(config(steps=2), settings)
    assert again.path == first.path
    await learnt(again, settings)
    counts = await counts_of(again)
    assert counts.trained + sum(counts.dropped.values()) == 2 * 2 * 4
    assert create(config(seed=1), settings).path != first.path


@pytest.mark.parametrize("limit", [{"steps": 1}, {"steps": None, "epochs": 1}], ids=str)
async def test_a_run_that_is_over_starts_no_server(settings: Settings, limit: dict[str, int | None]) -> None:
    run = create(config(**limit), settings)
    checkpoints, _ = await learnt(run, settings)
    await learn(run, checkpoints, settings, engine=Recipe(UnwantedEngine))
    with pytest.raises(AssertionError, match="unwanted"):  # and it is asked for where a step is left
        await learn(create(config(steps=9, epochs=2), settings), checkpoints, settings, engine=Recipe(UnwantedEngine))


class UnwantedEngine:
    def __init__(self) -> None:
        raise AssertionError("unwanted")


async def test_a_run_that_was_ended_goes_on_from_its_batches(settings: Settings) -> None:
    """Ended after the batch of step 3 was written down and before any checkpoint holds it: it is taken again, not lost."""
    run = create(config(checkpoint={"every": 100}), settings)
    running = asyncio.ensure_future(learnt(run, settings))
    buffer = Buffer(run.path / "buffer.sqlite")
    while await buffer.last_step() < 2:
        await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    taken = {step: [[one.uid for one in group] for group in await buffer.batch(step)] for step in (1, 2)}
    buffer.close()
    checkpoints, _ = await learnt(run, settings)
    assert checkpoints.last == 3
    counts = await counts_of(run)
    assert counts.missing == 0 and counts.trained + sum(counts.dropped.values()) == 3 * 2 * 4
    assert len({uid for groups in taken.values() for group in groups for uid in group}) == 16


async def test_a_run_whose_buffer_is_gone_goes_on_from_that_of_its_last_checkpoint(settings: Settings) -> None:
    run = create(config(steps=2), settings)
    await learnt(run, settings)
    (run.path / "buffer.sqlite").unlink()
    checkpoints, _ = await learnt(create(config(steps=3), settings), settings)
    counts = await counts_of(run)
    assert checkpoints.last == 3
    # Without the copy only the third step's groups would be known.
    assert counts.trained + sum(counts.dropped.values()) == 3 * 2 * 4


async def test_a_report_makes_no_buffer_where_that_of_the_run_is_gone_or_empty(settings: Settings) -> None:
    run = create(config(steps=2), settings)
    await learnt(run, settings)
    whole, buffer = await account(run), run.path / "buffer.sqlite"
    assert whole.counts.dropped and whole.steps == 2
    for damage in (Path.unlink, lambda path: path.write_bytes(b"")):
        damage(buffer)
        with pytest.raises(TrainRunError, match=r"buffer\.sqlite: is gone"):
            await account(run)
        assert not buffer.exists() or not buffer.stat().st_size
    assert (await learnt(run, settings))[0].last == 2
    assert (await account(run)).counts == whole.counts


async def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(settings: Settings) -> None:
    run = create(config(steps=3, checkpoint={"every": 2, "keep": 2}), settings)
    checkpoints, _ = await learnt(run, settings)
    assert checkpoints.steps == [2, 3]
    (run.path / "evaluations").mkdir()
    measured = run.evaluation_file(3)
    measured.write_text("of weights that are gone")
    (checkpoints.path(3) / "model.safetensors").write_bytes(b"damaged")
    further = create(config(steps=5, checkpoint={"every": 2, "keep": 2}), settings)
    with pytest.raises(TrainerError, match=r"remove the checkpoint and the run's buffer\.sqlite"):
        await learnt(further, settings)
    shutil.rmtree(checkpoints.path(3))
    with pytest.raises(BufferError, match="archived with a checkpoint that is gone; remove this file"):
        await learnt(further, settings)
    (run.path / "buffer.sqlite").unlink()
    await learnt(further, settings)
    counts = await counts_of(run)
    attempts = [
        (row["task_id"], row["seed"])
        for path in sorted((run.path / "trajectories").iterdir())
        for row in pq.read_table(path, columns=["task_id", "seed"]).to_pylist()
    ]
    assert not measured.exists() and counts.missing == 0
    assert len(set(attempts)) == len(attempts) == counts.trained + sum(counts.dropped.values()) == 5 * 2 * 4


async def test_files_of_somebody_else_in_a_run_are_left_alone_and_damaged_ones_named(settings: Settings) -> None:
    run = create(config(steps=2), settings)
    checkpoints, _ = await learnt(run, settings)
    (run.path / "evaluations").mkdir()
    (run.path / "evaluations" / "notes.json").write_text("{}")
    (run.path / "checkpoints" / "step-old1").mkdir()
    assert checkpoints.steps == [2] and (await account(run)).after is None
    for name in ("evaluations/step-000002.json", "trajectories/step-000002.parquet"):
        (run.path / name).write_bytes(b"damaged")
        with pytest.raises(TrainRunError, match=f"{name}: is .*; remove it"):
            await account(run)
        (run.path / name).unlink()
    (run.path / "checkpoints" / "scores.json").write_text("[")
    with pytest.raises(TouchstoneError, match=r"scores\.json: is damaged .*; remove it"):
        checkpoints.best  # noqa: B018


async def test_two_processes_do_not_share_a_run(settings: Settings) -> None:
    run = create(config(), settings)
    with locked(run.path):
        with pytest.raises(FolderInUse, match="works on this run"):
            await coach.train(run, settings=settings)
        with pytest.raises(FolderInUse, match="works on this run"):
            create(config(steps=9), settings)
    assert open_run(run.path).config.steps == 3


def test_a_run_is_found_by_id_folder_or_as_the_latest(settings: Settings) -> None:
    run = create(config(), settings)
    assert find(run.id, settings) == find(str(run.path), settings) == find("latest", settings) == open_run(run.path)
    with pytest.raises(TrainRunError, match="is no training run of this version"):
        find("train-000000000000", settings)


def test_what_was_not_set_stays_unset_in_a_run_that_is_read_back(settings: Settings) -> None:
    run = create(config(limits={"max_turns": 4}), settings)
    limits = open_run(run.path).config.limits
    assert limits is not None and limits.model_fields_set == {"max_turns"}


def test_a_split_that_the_release_lacks_is_refused_with_those_it_has(settings: Settings) -> None:
    with pytest.raises(
        TrainRunError, match="has no rows of hard_search/dev; it has hard_search/train, hard_search/test"
    ):
        create(config(split="dev"), settings)
    with pytest.raises(TrainRunError, match="has no rows of math/train"):
        create(config(family="math"), settings)


def test_tasks_of_another_release_are_held_out_where_one_is_named(settings: Settings, tmp_path: Path) -> None:
    held_out = {"test": KEPT.pack([kept(i, "hard_search") for i in range(4)])}
    other = publish(Store(str(tmp_path / "other")), [part(family="hard_search", splits=held_out)])
    run = create(config(evaluation={"release": other.url}), settings)
    assert run.held_out.version == other.version and run.release.version != other.version
    assert run.id != create(config(), settings).id
    with pytest.raises(
        TrainRunError, match=f"{other.version}: has no rows of hard_search/dev; it has hard_search/test"
    ):
        create(config(evaluation={"release": other.url, "split": "dev"}), settings)
    gone = replace(run, origin=run.origin.model_copy(update={"held_out_content": "r-000000000000"}))
    with pytest.raises(TrainRunError, match="is another release than the run"):
        _ = gone.held_out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"optimiser": {"ranks": 2}}, "optimiser.ranks=2: each is a process of its own; set TOUCHSTONE_RAY=local"),
        ({"rollout": {"workers": 3}}, "rollout.workers=3: each is a process of its own"),
        ({"tools": {"pages": "/nowhere"}}, "tools.pages=/nowhere: is not there"),
    ],
)
def test_what_cannot_be_done_here_is_refused_before_there_is_a_run(
    settings: Settings, given: dict[str, object], said: str
) -> None:
    with pytest.raises(TrainRunError, match=said):
        create(config(**given), settings)
    assert not (settings.cache / "training").exists()
    possible(config(optimiser={"ranks": 2}, rollout={"workers": 3}), replace(settings, ray="local"))


async def test_a_run_over_ray_is_not_gone_on_with_where_there_is_none(settings: Settings) -> None:
    run = create(config(optimiser={"ranks": 2}), replace(settings, ray="local"))
    with pytest.raises(TrainRunError, match=r"optimiser\.ranks=2: each is a process of its own"):
        await learnt(run, settings)
    assert not (run.path / "buffer.sqlite").exists()


def test_a_release_that_was_replaced_is_not_trained_on(settings: Settings, tmp_path: Path) -> None:
    run = create(config(), settings)
    other = replace(run, origin=run.origin.model_copy(update={"content": "r-000000000000"}))
    with pytest.raises(TrainRunError, match="is another release than the run"):
        other.tasks("train")


def test_a_damaged_run_file_is_told_in_one_line(settings: Settings) -> None:
    run = create(config(), settings)
    described = json.loads((run.path / "run.json").read_text())
    (run.path / "run.json").write_text(json.dumps(described | {"config": {"groups": 0}}))
    with pytest.raises(TrainRunError, match="groups=0"):
        open_run(run.path)

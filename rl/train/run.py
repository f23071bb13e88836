"""The folder of a training run: everything that it needs to go on, and everything it has come to.

`run.json` holds the config and what it was resolved to, `buffer.sqlite` every attempt and batch, `checkpoints/` the last and the
best (each a model folder), `trajectories/` what was trained turn by turn, `evaluations/` held-out tasks by step; `report` adds
`metrics.parquet`, `failures.parquet` and `report.html`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from infra.files import locked, write_whole
from infra.models import resolve
from infra.pages.place import WEB
from infra.place import LOCAL
from infra.settings import Settings
from infra.store import KeyMissing, Store, explained
from pipeline import release as releases
from pipeline.curate import ABOUT_A_WORLD
from rl.policy import Policy
from schemas.arrow import SCHEMA_VERSION
from schemas.base import Record, content_hash
from schemas.config import CurateConfig, describe_errors
from schemas.errors import TouchstoneError
from schemas.evaluation import Evaluation
from schemas.task import Task
from schemas.training import TrainConfig

FOLDER, EVALUATIONS = "training", "evaluations"
RUN_FILE = "run.json"
FAILURES_FILE = "failures.parquet"


class TrainRunError(TouchstoneError):
    """No training run, or one that cannot be made."""


class TrainOrigin(Record):
    """What a run trains on, and from where."""

    release: str
    """Its URL."""
    version: str
    content: str
    """Hash of the release's content."""
    held_out: str
    """URL of the release that holds the tasks it is evaluated on: the same, or another one."""
    held_out_content: str
    policy: str
    """Name of the model that learning begins with."""
    revision: str
    folder: str
    """Where it lies on this machine."""
    world: str | None
    """The name of the world that the tasks are about, absent where they are about none."""


@dataclass(frozen=True, slots=True)
class TrainRun:
    """One run. Equal settings on an equal release and policy are the same run, however long it is to go on."""

    path: Path
    config: TrainConfig
    origin: TrainOrigin

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def policy(self) -> Path:
        return Path(self.origin.folder)

    def tasks(self, split: str) -> list[Task]:
        """The tasks of a split of the release. Raises `ReleaseError` or `StoreError` where it is gone or changed."""
        return [row.task for row in self.release.rows(self.config.family, split)]

    @property
    def release(self) -> releases.Release:
        """Read and compared whole, every time."""
        return self._same(self.origin.release, self.origin.content)

    @property
    def held_out(self) -> releases.Release:
        """What it is evaluated on; as `release`."""
        return self._same(self.origin.held_out, self.origin.held_out_content)

    def _same(self, url: str, content: str) -> releases.Release:
        release = releases.load(url)
        if release.manifest.content != content:
            raise TrainRunError(f"{url}: is another release than the run {self.id} began with; begin anew")
        return release

    def evaluation_file(self, step: int) -> Path:
        """Of the policy after so many steps; 0 is where learning began."""
        return self.path / EVALUATIONS / f"step-{step:06d}.json"

    def evaluation(self, step: int) -> Evaluation | None:
        """What was measured after so many steps, `None` where nothing was."""
        path = self.evaluation_file(step)
        try:
            return Evaluation.model_validate_json(path.read_bytes()) if path.exists() else None
        except ValidationError as error:
            why = describe_errors(error, "; ")
            raise TrainRunError(
                f"{path}: is no evaluation of this version ({why}); remove it, and it is measured again"
            ) from error

    @property
    def before_and_after(self) -> tuple[Evaluation | None, Evaluation | None]:
        """Where learning began, and the last policy after that which was measured."""
        return self.evaluation(0), self.evaluation(self.evaluated[-1]) if any(self.evaluated) else None

    @property
    def evaluated(self) -> list[int]:
        """Steps after which the policy was measured, ascending."""
        return steps_in(self.path / EVALUATIONS, ".json")


def create(config: TrainConfig, settings: Settings) -> TrainRun:
    """The run of these settings, new or as it was left; its limits (`steps`, `minutes`, `epochs`) are those of `config`.

    Raises `ReleaseError`, `BrokenRelease`, `UnavailableModel`, `PolicyError`, `TrainRunError` or, where another process works
    on the run, `FolderInUse`. What is refused leaves nothing behind.
    """
    possible(config, settings)
    store = Store(settings.store)
    release = releases.load(releases.resolve(store, config.release))
    held_out = release
    if (other := config.evaluation.release) is not None:
        held_out = releases.load(releases.resolve(store, other))
    for found, split in ((release, config.split), (held_out, config.evaluation.split)):
        if split not in found.splits(config.family):
            known = ", ".join(f"{family}/{name}" for family in found.manifest.funnel for name in found.splits(family))
            raise TrainRunError(f"{found.version}: has no rows of {config.family}/{split}; it has {known}")
    curated = CurateConfig.model_validate(release.manifest.configs[config.family])
    model = resolve(config.policy, settings.cache)
    Policy.load(model.path, config.limits)
    origin = TrainOrigin(
        release=release.url,
        version=release.version,
        content=release.manifest.content,
        held_out=held_out.url,
        held_out_content=held_out.manifest.content,
        policy=model.name,
        revision=model.revision,
        folder=str(model.path),
        world=curated.world if config.family in ABOUT_A_WORLD else None,
    )
    limits = {"steps", "minutes", "epochs", "release"}
    key = content_hash(
        [
            config.model_dump(mode="json", exclude={**dict.fromkeys(limits, True), "evaluation": {"release"}}),
            origin.content,
            origin.held_out_content,
            origin.revision,
            SCHEMA_VERSION,
        ],
        length=12,
    )
    run = TrainRun(settings.cache / FOLDER / f"train-{key}", config, origin)
    with explained(str(run.path)):
        run.path.mkdir(parents=True, exist_ok=True)
    with locked(run.path):
        _write(run)
    return run


def possible(config: TrainConfig, settings: Settings) -> None:
    """Raises `TrainRunError` for what this machine, as it is set up, cannot do."""
    for name, parts in (("optimiser.ranks", config.optimiser.ranks), ("rollout.workers", config.rollout.workers)):
        if settings.ray is None and parts > 1:
            raise TrainRunError(
                f"{name}={parts}: each is a process of its own; set TOUCHSTONE_RAY={LOCAL}, or {name}=1"
            )
    if (pages := config.tools.pages) not in (None, WEB) and not Path(str(pages)).expanduser().exists():
        raise TrainRunError(f"tools.pages={pages}: is not there; give a folder, a .zim file, or `{WEB}` for the web")


def find(name: str, settings: Settings) -> TrainRun:
    """A run by its folder or id, or the `latest`. Raises `TrainRunError`."""
    folder = settings.cache / FOLDER
    if name == "latest":
        found = sorted(_runs(folder), key=lambda path: path.stat().st_mtime)
        if not found:
            raise TrainRunError(f"{folder}: holds no training run; begin one with `touchstone train`")
        return open_run(found[-1].parent)
    path = Path(name) if "/" in name or Path(name).is_dir() else folder / name
    return open_run(path)


def open_run(path: Path) -> TrainRun:
    """Raises `TrainRunError` for a folder that is no run of this version."""
    try:
        with explained(str(path)):
            described = json.loads((path / RUN_FILE).read_bytes())
        return TrainRun(
            path.absolute(),
            TrainConfig.model_validate(described["config"]),
            TrainOrigin.model_validate(described["origin"]),
        )
    except (KeyMissing, ValueError, KeyError, TypeError) as error:
        why = describe_errors(error, "; ") if isinstance(error, ValidationError) else error
        raise TrainRunError(
            f"{path}: is no training run of this version ({why}); begin one with `touchstone train`"
        ) from error


def steps_in(folder: Path, suffix: str = "") -> list[int]:
    """Steps that something in a folder is named after, as `step-000010<suffix>`; ascending, other names left alone."""
    names = (re.fullmatch(rf"step-(\d{{6,}}){re.escape(suffix)}", path.name) for path in folder.glob("step-*"))
    return sorted(int(name[1]) for name in names if name)


def _write(run: TrainRun) -> None:
    # What was not set stays unset: of `limits`, that is what the policy was built with.
    config = run.config.model_dump(mode="json", exclude_unset=True)
    described = {"config": config, "origin": run.origin.model_dump(mode="json")}
    write_whole(run.path / RUN_FILE, json.dumps(described, indent=1).encode())


def _runs(folder: Path) -> Iterator[Path]:
    return folder.glob(f"*/{RUN_FILE}")

"""The folder of one curation run: what is done is a complete file, what is not is no file.

Invariants: a file appears whole, by rename after it is on the disk; equal configs on equal inputs share a folder, and one
process at a time works in it; a killed run goes on from the files it left, and its model calls from the journal.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pydantic import ValidationError

from infra.files import write_table, write_whole
from infra.store import explained
from pipeline.apart import HeldOut
from schemas.arrow import CANDIDATES, SCHEMA_VERSION, Table
from schemas.base import Record, canonical_json, content_hash
from schemas.config import CurateConfig, describe_errors
from schemas.errors import TouchstoneError
from schemas.row import Candidate
from schemas.task import Task
from schemas.world import Source

R = TypeVar("R", bound=Record)
_HELD_OUT, _CARRIED = "held-out.json", "carried.parquet"


class RunError(TouchstoneError):
    """A run folder that cannot be used now."""


class Origin(Record):
    """What candidates are made from, and which filters judge them: with the config, everything that decides a run."""

    generator: str
    filters: dict[str, str]
    """Version by name."""
    world: str = ""
    world_hash: str = ""
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Run:
    """One run's folder. Files in it are named `<what>-<batch>`."""

    path: Path
    config: CurateConfig
    origin: Origin

    @classmethod
    def create(cls, folder: Path, config: CurateConfig, origin: Origin) -> "Run":
        """The run of `config` under `folder`, new or as it was left."""
        key = content_hash([config.model_dump(mode="json"), origin.model_dump(mode="json"), SCHEMA_VERSION], length=12)
        run = cls(folder / f"{config.family}-{key}", config, origin)
        if not (run.path / "run.json").exists():
            described = {"config": config.model_dump(mode="json"), "origin": origin.model_dump(mode="json")}
            run._write("run.json", json.dumps(described, indent=1).encode())
        return run

    @classmethod
    def open(cls, path: Path) -> "Run":
        """A run that was created before, perhaps by another process."""
        try:
            described = json.loads((path / "run.json").read_bytes())
            return cls(
                path, CurateConfig.model_validate(described["config"]), Origin.model_validate(described["origin"])
            )
        except (OSError, ValueError, KeyError) as error:
            why = describe_errors(error, "; ") if isinstance(error, ValidationError) else error
            raise RunError(f"{path}: is no run of this version ({why}); start one with `touchstone curate`") from error

    def take_in(self, held_out: HeldOut, carried: Sequence[Task]) -> None:
        """Keep what the run is given from releases beside it, unless it is there: its stages are done where no store is known."""
        if not (self.path / _HELD_OUT).exists():
            given = [Candidate(index=i, task=task) for i, task in enumerate(carried)]
            write_table(self.path / _CARRIED, CANDIDATES.pack(given))
            self._write(_HELD_OUT, canonical_json(held_out).encode())

    @cached_property
    def held_out(self) -> HeldOut:
        with explained(str(self.path / _HELD_OUT)):
            return HeldOut.model_validate_json((self.path / _HELD_OUT).read_bytes())

    @cached_property
    def carried(self) -> tuple[Task, ...]:
        """Tasks of an earlier release that come before new candidates."""
        with explained(str(self.path / _CARRIED)):
            given = CANDIDATES.unpack(pq.read_table(self.path / _CARRIED))
        return tuple(one.task for one in given if one.task is not None)

    @cached_property
    def places(self) -> dict[str, int]:
        """Of `carried`, by task id: below 0, in order."""
        return {task.task_id: i - len(self.carried) for i, task in enumerate(self.carried)}

    def place(self, task: Task) -> int:
        """The task's place among the candidates of the run, which no other has; new ones are numbered from 0."""
        return self.places.get(task.task_id, task.lineage.index)

    @property
    def journal(self) -> Path:
        return self.path / "journal.sqlite"

    def has(self, name: str, batch: int) -> bool:
        """Whether the file is there and reads as Parquet; a damaged one counts as not done."""
        try:
            pq.read_metadata(self._file(name, batch))
        except (OSError, pa.ArrowInvalid):
            return False
        return True

    def write(self, name: str, batch: int, table: pa.Table) -> None:
        write_table(self._file(name, batch), table)

    def table(self, name: str, batch: int) -> pa.Table:
        with explained(str(self._file(name, batch))):
            return pq.read_table(self._file(name, batch))

    def read(self, name: str, batch: int, schema: Table[R]) -> list[R]:
        return schema.unpack(self.table(name, batch))

    @property
    def solvers(self) -> dict[str, str]:
        """The name of the solver in each arm that the run has used."""
        found = sorted(self.path.glob("solver-*.json"))
        return {path.stem.removeprefix("solver-"): json.loads(path.read_bytes())["name"] for path in found}

    def use_solver(self, arm: str, name: str) -> None:
        """Record who answers in an arm. Raises `RunError` for another one than before: counts of two would be mixed."""
        if (before := self.solvers.get(arm, name)) != name:
            raise RunError(
                f"{self.path}: batches of this run were measured with {before}, and {name} is served now; serve the former, "
                "or remove the folder to measure all anew"
            )
        self._write(f"solver-{arm}.json", canonical_json({"name": name}).encode())

    def _file(self, name: str, batch: int) -> Path:
        return self.path / f"{name}-{batch:05d}.parquet"

    def _write(self, name: str, data: bytes) -> None:
        write_whole(self.path / name, data)

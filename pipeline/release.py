"""Releases: written once, named by their content, whole or not there.

Invariants: the manifest is written last, so a reader sees a whole release or none; a release holds exactly the files its
manifest lists, with their rows and hashes, whatever else lies beside them; nothing depends on listing a folder.
"""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pydantic import ValidationError

from infra.revision import code_revision
from infra.store import KeyExists, KeyMissing, Store, explained, measure
from pipeline.card import card
from schemas.arrow import ATTEMPTS, CERTIFICATES, KEPT, REJECTED, SCHEMA_VERSION, Table
from schemas.base import canonical_json, content_hash
from schemas.certificate import Certificate
from schemas.config import CurateConfig
from schemas.errors import TouchstoneError
from schemas.manifest import FunnelStep, Manifest, Shard, StratumCounts
from schemas.row import Kept, Rejected
from schemas.trajectory import Trajectory
from schemas.world import Source

MANIFEST = "_touchstone/manifest.json"
ROWS_PER_SHARD = 20_000
LEDGERS: dict[str, Table[Any]] = {"certificates": CERTIFICATES, "rejected": REJECTED, "attempts": ATTEMPTS}


class ReleaseError(TouchstoneError):
    """No release, or one that cannot be published."""


class ReleaseExists(ReleaseError):
    """The version is published already; what is there was not touched."""

    def __init__(self, url: str, version: str) -> None:
        super().__init__(f"{version}: is published already at {url}; nothing was written, load it from there")
        self.url = url
        self.version = version


class BrokenRelease(ReleaseError):
    """A release that is half-written, damaged or changed; says what is wrong with which file."""


@dataclass(frozen=True)
class Part:
    """What one finished run contributes: tables in the schemas of `schemas.arrow`, and what the manifest says of them."""

    config: CurateConfig
    splits: Mapping[str, pa.Table]
    certificates: pa.Table
    rejected: pa.Table
    attempts: pa.Table
    funnel: tuple[FunnelStep, ...]
    strata: Mapping[str, StratumCounts]
    generator: str
    solvers: Mapping[str, str] = field(default_factory=dict)
    worlds: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Release:
    """A published release. `store` is rooted at it."""

    store: Store
    manifest: Manifest

    @property
    def version(self) -> str:
        return self.manifest.version

    @property
    def url(self) -> str:
        return self.store.root

    def splits(self, config: str) -> dict[str, int]:
        """Rows by split."""
        counts: Counter[str] = Counter()
        for shard in self.manifest.shards:
            if shard.config == config:
                counts[shard.split] += shard.rows
        return dict(counts)

    def data_files(self, config: str) -> dict[str, list[str]]:
        """What `datasets.load_dataset("parquet", data_files=..., storage_options=...)` takes."""
        return {
            split: [self.store.url(s.path) for s in self.manifest.shards if (s.config, s.split) == (config, split)]
            for split in self.splits(config)
        }

    def rows(self, config: str, split: str | None = None) -> Iterator[Kept]:
        """The kept tasks of a family; of every split if none is named."""
        for shard in self.manifest.shards:
            if shard.config == config and split in (None, shard.split):
                yield from KEPT.unpack(self._read(shard))

    def rejected(self) -> Iterator[Rejected]:
        return self._ledger("rejected")

    def certificates(self, task_id: str | None = None) -> Iterator[Certificate]:
        return (c for c in self._ledger("certificates") if task_id in (None, c.task_id))

    def attempts(self, task_id: str | None = None) -> Iterator[Trajectory]:
        return (t for t in self._ledger("attempts") if task_id in (None, t.task_id))

    def find(self, task_id: str) -> Kept | Rejected:
        """The row of a task, kept or rejected. Raises `ReleaseError` for an unknown one."""
        for shard in (*self.manifest.shards, *(s for s in self.manifest.ledgers if s.config == "rejected")):
            table: Table[Any] = REJECTED if shard.config == "rejected" else KEPT
            data = self._read(shard)
            if (at := pc.index(data["task_id"], task_id).as_py()) >= 0:
                found: list[Kept | Rejected] = table.unpack(data.slice(at, 1))
                return found[0]
        raise ReleaseError(f"{task_id}: no task of release {self.version}; ids stand in the column task_id")

    def _ledger(self, name: str) -> Iterator[Any]:
        for shard in self.manifest.ledgers:
            if shard.config == name:
                yield from LEDGERS[name].unpack(self._read(shard))

    def _read(self, shard: Shard) -> pa.Table:
        return pq.read_table(BytesIO(self.store.get(shard.path)))


def publish(
    store: Store, parts: Sequence[Part], version: str | None = None, *, rows_per_shard: int = ROWS_PER_SHARD
) -> Release:
    """Write one release of several runs under `store`. Without `version` it is named after its content.

    Raises `ReleaseExists` for a version that is there, `ReleaseError` for an empty split or two runs of one family, and
    `SchemaError` for a table off its schema; nothing is written then. After a crash the same call completes the release.
    """
    _refuse_unpublishable(parts, version)
    with tempfile.TemporaryDirectory(prefix="touchstone-") as folder, explained(folder):
        files = _write_shards(parts, Path(folder), rows_per_shard)
        manifest = _manifest(parts, tuple(files), version)
        target = store.under(f"releases/{manifest.version}")
        if target.exists(MANIFEST):
            raise ReleaseExists(target.root, manifest.version)
        for shard, path in files.items():
            target.ensure(shard.path, path)
    target.ensure("README.md", card(manifest).encode())
    # Before the manifest, so that a crash in between leaves a pointer to nothing, which readers pass over, and never a
    # release that `latest` does not know.
    _point(store, manifest.version)
    try:
        target.put(MANIFEST, manifest.model_dump_json(indent=1).encode())
    except KeyExists:
        raise ReleaseExists(target.root, manifest.version) from None
    return Release(target, manifest)


def load(path: str | Path, verify: bool = True) -> Release:
    """The release at a local path or `s3://` URL; every byte is read and compared unless `verify` is false.

    Raises `BrokenRelease` naming each file that is missing, cut off or changed.
    """
    store = Store(str(path))
    try:
        manifest = Manifest.model_validate_json(store.get(MANIFEST))
    except KeyMissing:
        raise BrokenRelease(
            f"{path}: has no {MANIFEST}, which is written last: it is half-written or no release; publish again, or give "
            "the folder of one version"
        ) from None
    except (ValidationError, UnicodeDecodeError) as error:
        raise BrokenRelease(f"{path}: {MANIFEST} cannot be read ({error}); publish again") from error
    release = Release(store, manifest)
    if problems := list(_problems(release)) if verify else []:
        raise BrokenRelease(f"{path}: {'; '.join(problems)}; publish again under another version")
    return release


def resolve(store: Store, name: str) -> str:
    """The URL of a release given as path, URL, version, or `latest`."""
    if name == "latest":
        name = latest(store)
    elif "/" in name or Path(name).is_dir():
        return name
    if not store.exists(f"releases/{name}/{MANIFEST}"):
        raise ReleaseError(
            f"{name}: no release of {store.root}; `latest`, a version under releases/ or a path are known"
        )
    return f"{store.root}/releases/{name}"


def latest(store: Store) -> str:
    """The version published last. Raises `ReleaseError` when there is none."""
    for number in range(_last_pointer(store), 0, -1):
        version = str(json.loads(store.get(_pointer(number)))["version"])
        if store.exists(f"releases/{version}/{MANIFEST}"):
            return version
    raise ReleaseError(f"{store.root}: holds no release; make one with `touchstone curate`")


def _point(store: Store, version: str) -> None:
    """Add a numbered pointer. Two publishers at once take two numbers, for a number is written once."""
    number = _last_pointer(store)
    if number and json.loads(store.get(_pointer(number)))["version"] == version:
        return
    while True:
        number += 1
        try:
            store.put(_pointer(number), canonical_json({"version": version}).encode())
        except KeyExists:
            continue
        return


def _pointer(number: int) -> str:
    return f"latest/{number:08d}.json"


def _last_pointer(store: Store) -> int:
    """Numbers have no gaps, so doubling and then halving finds the last one; 0 when there is none."""
    above = 1
    while store.exists(_pointer(above)):
        above *= 2
    below = above // 2
    while above - below > 1:
        middle = (above + below) // 2
        below, above = (middle, above) if store.exists(_pointer(middle)) else (below, middle)
    return below


def _refuse_unpublishable(parts: Sequence[Part], version: str | None) -> None:
    if version is not None and not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,63}", version):
        raise ReleaseError(f"version={version!r}: not a name; use up to 64 of a-z, 0-9, dot and dash")
    families = Counter(part.config.family for part in parts)
    if not parts or max(families.values()) > 1:
        raise ReleaseError(f"runs of {', '.join(p.config.family for p in parts) or 'nothing'}: give one run a family")
    seen: set[str] = set()
    for part in parts:
        if not part.splits:
            raise ReleaseError(f"{part.config.family}: no row was kept; there is nothing to publish")
        for split, table in part.splits.items():
            KEPT.check(table)
            if not table.num_rows:
                raise ReleaseError(f"{part.config.family}/{split}: an empty split cannot be loaded; leave it out")
            ids = table["task_id"].to_pylist()
            if twice := sorted(seen.intersection(ids)) or [i for i, n in Counter(ids).items() if n > 1]:
                raise ReleaseError(f"{part.config.family}/{split}: task {twice[0]} is there twice; a task has one row")
            seen.update(ids)
        for name, ledger in LEDGERS.items():
            ledger.check(getattr(part, name))


def _write_shards(parts: Sequence[Part], folder: Path, rows_per_shard: int) -> dict[Shard, Path]:
    files: dict[Shard, Path] = {}
    for part in parts:
        for split, table in part.splits.items():
            files |= _shards(table, part.config.family, split, part.config.family, folder, rows_per_shard)
    for name in LEDGERS:
        table = pa.concat_tables([getattr(part, name) for part in parts])
        files |= _shards(table, name, name, "_touchstone", folder, rows_per_shard)
    return files


def _shards(
    table: pa.Table, config: str, split: str, under: str, folder: Path, rows_per_shard: int
) -> dict[Shard, Path]:
    count = -(-table.num_rows // rows_per_shard)
    files = {}
    for i in range(count):
        rows = table.slice(i * rows_per_shard, rows_per_shard)
        key = f"{under}/{split}-{i:05d}-of-{count:05d}.parquet"
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path, compression="zstd")
        written = measure(path)
        files[
            Shard(path=key, config=config, split=split, rows=rows.num_rows, bytes=written.bytes, sha256=written.sha256)
        ] = path
    return files


def _manifest(parts: Sequence[Part], files: Sequence[Shard], version: str | None) -> Manifest:
    manifest = Manifest(
        version="",
        schema_version=SCHEMA_VERSION,
        shards=tuple(s for s in files if s.config not in LEDGERS),
        ledgers=tuple(s for s in files if s.config in LEDGERS),
        worlds={name: hash for part in parts for name, hash in part.worlds.items()},
        sources=tuple(dict.fromkeys(source for part in parts for source in part.sources)),
        generators={part.config.family: part.generator for part in parts},
        solvers={f"{part.config.family}/{arm}": name for part in parts for arm, name in part.solvers.items()},
        code_revision=code_revision(),
        funnel={part.config.family: part.funnel for part in parts},
        strata={name: counts for part in parts for name, counts in sorted(part.strata.items())},
        guess={f"{p.config.family}/{split}": _guess(table) for p in parts for split, table in p.splits.items()},
        configs={part.config.family: part.config.model_dump(mode="json") for part in parts},
    )
    return manifest.model_copy(update={"version": version or _content_version(manifest)})


def _content_version(manifest: Manifest) -> str:
    return "r-" + content_hash(manifest.model_dump(mode="json", exclude={"version"}), length=12)


def _guess(table: pa.Table) -> float:
    counts: Counter[str] = Counter(table["answer"].to_pylist())
    return float(round(max(counts.values()) / table.num_rows, 4))


def _problems(release: Release) -> Iterator[str]:
    manifest = release.manifest
    if manifest.version.startswith("r-") and manifest.version != _content_version(manifest):
        yield f"{MANIFEST} was changed after it was written: its content is {_content_version(manifest)}"
    if not release.store.exists("README.md"):
        yield "README.md is missing"
    for shard in (*manifest.shards, *manifest.ledgers):
        try:
            data = release.store.get(shard.path)
        except KeyMissing:
            yield f"{shard.path} is missing"
            continue
        found = measure(data)
        if found.bytes != shard.bytes:
            yield f"{shard.path} has {found.bytes} bytes instead of {shard.bytes}"
        elif found.sha256 != shard.sha256:
            yield f"{shard.path} was changed after it was written"
        elif (rows := pq.read_metadata(BytesIO(data)).num_rows) != shard.rows:
            yield f"{shard.path} has {rows} rows instead of {shard.rows}"

"""Releases: written once, named by their content, whole or not there.

Invariants: the manifest is written last, so a reader sees a whole release or none; a release holds exactly the files its
manifest lists, with their rows and hashes, whatever else lies beside them; nothing depends on listing a folder. A name that
starts with `r-` is the hash of the content; under a chosen name the manifest records that hash.
"""

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pydantic import ValidationError

from infra.revision import code_revision
from infra.store import KeyExists, KeyMissing, Store, explained, measure
from pipeline import pointers
from pipeline.card import card
from schemas.arrow import ATTEMPTS, CERTIFICATES, KEPT, REJECTED, SCHEMA_VERSION, SchemaError, Table
from schemas.base import content_hash
from schemas.certificate import Certificate, Outcome
from schemas.config import CurateConfig, describe_errors
from schemas.errors import TouchstoneError
from schemas.manifest import Ending, FunnelStep, Manifest, Shard, StratumCounts
from schemas.row import Kept, Rejected
from schemas.trajectory import Trajectory
from schemas.world import Source

MANIFEST = "_touchstone/manifest.json"
CARD = "README.md"
ROWS_PER_SHARD = 20_000
ROWS_AT_ONCE = 1_000
"""Rows of a shard that are unpacked together when it is read."""
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

    def __init__(self, url: str, problems: Sequence[str], way_out: str = "remove it and publish again") -> None:
        super().__init__(f"{url}: {'; '.join(problems)}; {way_out}")
        self.problems = tuple(problems)


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
    ending: Ending = Ending.CANDIDATES
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
                yield from self._read(shard)

    def rejected(self) -> Iterator[Rejected]:
        return self._ledger("rejected")

    def certificates(self, task_id: str | None = None) -> Iterator[Certificate]:
        return self._ledger("certificates", task_id)

    def attempts(self, task_id: str | None = None) -> Iterator[Trajectory]:
        return self._ledger("attempts", task_id)

    def find(self, task_id: str) -> Kept | Rejected:
        """The row of a task, kept or rejected. Raises `ReleaseError` for an unknown one."""
        for shard in (*self.manifest.shards, *(s for s in self.manifest.ledgers if s.config == "rejected")):
            found: Kept | Rejected
            for found in self._read(shard, task_id):
                return found
        raise ReleaseError(f"{task_id}: no task of release {self.version}; ids stand in the column task_id")

    def _ledger(self, name: str, task_id: str | None = None) -> Iterator[Any]:
        for shard in self.manifest.ledgers:
            if shard.config == name:
                yield from self._read(shard, task_id)

    def _read(self, shard: Shard, task_id: str | None = None) -> Iterator[Any]:
        """The records of a shard, or those of one task. Raises `BrokenRelease`."""
        # A shell hands over any bytes; Arrow takes text alone.
        asked = None if task_id is None else task_id.encode(errors="replace").decode()
        with _opened(self.store, shard) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE):
                rows = pa.Table.from_batches([batch])
                wanted = rows if asked is None else rows.filter(pc.equal(rows["task_id"], asked))
                yield from _table(shard).unpack(wanted)


def publish(
    store: Store, parts: Sequence[Part], version: str | None = None, *, rows_per_shard: int = ROWS_PER_SHARD
) -> Release:
    """Write one release of several runs under `store`. Without `version` it is named after its content.

    A damaged pointer to the latest release does not matter: the new one is read first.

    Raises `ReleaseExists` for a version that is there, `ReleaseError` for an empty split or two runs of one family, and
    `SchemaError` for a table off its schema; nothing is written then. After a crash the same call completes the release.
    """
    _refuse_unpublishable(parts, version)
    with tempfile.TemporaryDirectory(prefix="touchstone-") as folder, explained(folder):
        files = _write_shards(parts, Path(folder), rows_per_shard)
        manifest = _manifest(parts, tuple(files), version)
        target = store.under(f"releases/{manifest.version}")
        if target.exists(MANIFEST):
            pointers.heal(store, manifest.version)
            raise ReleaseExists(target.root, manifest.version)
        for shard, path in files.items():
            target.ensure(shard.path, path)
    target.ensure(CARD, card(manifest).encode())
    # Before the manifest, so that a crash in between leaves a pointer to nothing, which readers pass over, and never a
    # release that `latest` does not know.
    pointers.add(store, manifest.version)
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
        problem = f"has no {MANIFEST}, which is written last: it is half-written or no release"
        raise BrokenRelease(store.root, [problem], "publish again, or give the folder of one version") from None
    except ValidationError as error:
        raise BrokenRelease(store.root, [f"{MANIFEST} cannot be read ({describe_errors(error, '; ')})"]) from error
    if manifest.schema_version != SCHEMA_VERSION:
        problem = f"is of schema version {manifest.schema_version}, and {SCHEMA_VERSION} is read here"
        raise BrokenRelease(store.root, [problem], f"read it by the code that wrote it, {manifest.code_revision}")
    release = Release(store, manifest)
    if problems := list(_problems(release)) if verify else []:
        raise BrokenRelease(store.root, problems)
    return release


def own(row: Kept | Rejected, certificates: Iterable[Certificate]) -> list[Certificate]:
    """The verdicts this row got, one a filter: equal candidates share a task id, and so the list."""
    fate = (row.filter, row.outcome) if isinstance(row, Rejected) else None
    found: dict[str, Certificate] = {}
    for certificate in certificates:
        if fate and certificate.filter == fate[0]:
            if certificate.outcome is fate[1]:
                return [*found.values(), certificate]
        elif certificate.outcome is Outcome.KEEP:
            found.setdefault(certificate.filter, certificate)
    return list(found.values())


def resolve(store: Store, name: str) -> str:
    """The URL of a release given as path, URL, version, or `latest`; of a store's path or URL its latest."""
    if name == "latest":
        name = latest(store)
    elif "/" in name or os.path.isdir(name):
        there = Store(name)
        return resolve(there, "latest") if pointers.last(there) and not there.exists(MANIFEST) else name
    if not re.fullmatch(pointers.NAME, name) or not store.exists(f"releases/{name}/{MANIFEST}"):
        raise ReleaseError(
            f"{name}: no release of {store.root}; `latest`, a version under releases/ or a path are known"
        )
    return f"{store.root}/releases/{name}"


def latest(store: Store) -> str:
    """The version published last. Raises `ReleaseError` when there is none, or when the pointer to it is damaged."""
    for number in range(pointers.last(store), 0, -1):
        if (version := pointers.read(store, number)) is None:
            raise ReleaseError(f"{store.url(pointers.key(number))}: is damaged; name a version, or publish again")
        if store.exists(f"releases/{version}/{MANIFEST}"):
            return version
    raise ReleaseError(f"{store.root}: holds no release; make one with `touchstone curate`")


def _refuse_unpublishable(parts: Sequence[Part], version: str | None) -> None:
    if version is not None and not re.fullmatch(pointers.NAME, version):
        raise ReleaseError(f"version={version!r}: not a name; use up to 64 of a-z, 0-9, dot and dash")
    if version is not None and (version == "latest" or version.startswith("r-")):
        raise ReleaseError(f"version={version!r}: `latest` and names that start with r- have a meaning; choose another")
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
        content="",
        card="",
        schema_version=SCHEMA_VERSION,
        shards=tuple(s for s in files if s.config not in LEDGERS),
        ledgers=tuple(s for s in files if s.config in LEDGERS),
        worlds={name: hash for part in parts for name, hash in part.worlds.items()},
        sources=tuple(dict.fromkeys(source for part in parts for source in part.sources)),
        generators={part.config.family: part.generator for part in parts},
        solvers={f"{part.config.family}/{arm}": name for part in parts for arm, name in part.solvers.items()},
        code_revision=code_revision(),
        funnel={part.config.family: part.funnel for part in parts},
        endings={part.config.family: part.ending for part in parts},
        strata={name: counts for part in parts for name, counts in sorted(part.strata.items())},
        guess={f"{p.config.family}/{split}": _guess(table) for p in parts for split, table in p.splits.items()},
        configs={part.config.family: part.config.model_dump(mode="json") for part in parts},
    )
    manifest = manifest.model_copy(update={"card": measure(card(manifest).encode()).sha256})
    content = _content(manifest)
    return manifest.model_copy(update={"content": content, "version": version or content})


def _content(manifest: Manifest) -> str:
    return "r-" + content_hash(manifest.model_dump(mode="json", exclude={"version", "content"}), length=12)


def _guess(table: pa.Table) -> float:
    counts: Counter[str] = Counter(table["answer"].to_pylist())
    return float(round(max(counts.values()) / table.num_rows, 4))


def _problems(release: Release) -> Iterator[str]:
    manifest, store = release.manifest, release.store
    try:
        content = _content(manifest)
    except ValueError as error:
        content = f"no JSON ({error})"
    if manifest.content != content:
        yield f"{MANIFEST} was changed after it was written: its content is {content}"
    *_, above, name = ["", *store.root.split("/")]
    called = name if above == "releases" else manifest.version
    if called != manifest.version or (called.startswith("r-") and called != manifest.content):
        yield f"what is called {called} is {manifest.version} with the content {manifest.content}"
    try:
        if store.digest(CARD).sha256 != manifest.card:
            yield f"{CARD} was changed after it was written"
    except KeyMissing:
        yield f"{CARD} is missing"
    for shard in (*manifest.shards, *manifest.ledgers):
        try:
            yield from _differences(store, shard)
        except BrokenRelease as error:
            yield from error.problems


def _differences(store: Store, shard: Shard) -> Iterator[str]:
    """Between a file and what the manifest says of it."""
    try:
        found = store.digest(shard.path)
    except KeyMissing:
        yield f"{shard.path} is missing"
        return
    if found.bytes != shard.bytes:
        yield f"{shard.path} has {found.bytes} bytes instead of {shard.bytes}"
    elif found.sha256 != shard.sha256:
        yield f"{shard.path} was changed after it was written"
    else:
        with _opened(store, shard) as file:
            if (rows := file.metadata.num_rows) != shard.rows:
                yield f"{shard.path} has {rows} rows instead of {shard.rows}"


def _table(shard: Shard) -> Table[Any]:
    return LEDGERS.get(shard.config, KEPT)


@contextmanager
def _opened(store: Store, shard: Shard) -> Iterator[pq.ParquetFile]:
    """A shard with the columns of its table. Raises `BrokenRelease` for damage that is met here or while it is open."""
    with store.open(shard.path) as stored:
        try:
            file = pq.ParquetFile(stored)
            _table(shard).check(file.schema_arrow.empty_table())
            yield file
        except (pa.ArrowException, SchemaError, ValueError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # The machine's; pyarrow reports damage as one without a number.
            said = " ".join(str(error).split())
            raise BrokenRelease(store.root, [f"{shard.path} cannot be read ({said})"]) from error

"""The dataset card of a release: what `datasets` reads of it, and what a person should know before training on it."""

from collections.abc import Iterable

from pipeline.markdown import table
from schemas.manifest import FunnelStep, Manifest, Shard, StratumCounts

COLUMNS = {
    "task_id": "hash of what is asked and what is right; equal tasks are one task wherever they were made",
    "family": "the generator's family, which is also the config",
    "stratum": "`family/hops/tools/answer kind/obfuscation`, the cell that rates are counted in",
    "question": "what the solver is asked",
    "answer": "the gold as one canonical text",
    "answer_spec": "the gold as JSON with its kind, aliases, tolerance or unit; grade against this, not against `answer`",
    "tools": "the tools a solver may use",
    "evidence": "document id and hash, character span and quote behind each fact",
    "constraints": "the formal question as JSON",
    "near_misses": "wrong answers that almost fit, and why they do not",
    "difficulty": "by solver and arm: `correct` of `n` samples, truncated, undecided, seeds; counts, never a bare rate",
    "lineage": "generator, version, seed, index and knobs that make the row again byte for byte",
}


def card(manifest: Manifest) -> str:
    """The README.md of a release. Knows neither where the release lies nor its version, which hashes this text too."""
    return f"{_front_matter(manifest)}\n\n{_page(manifest, 'Touchstone release', 'path/to/release')}\n"


def page(manifest: Manifest, url: str) -> str:
    """The card's text for a release at `url`, a local folder or an `s3://` address, with lines that load it from there."""
    return _page(manifest, f"Touchstone release {manifest.version}", url)


def _page(manifest: Manifest, title: str, url: str) -> str:
    families = _families(manifest)
    sections = [
        f"# {title}\n\n{_summary(manifest)}",
        f"## Load\n\n{_loading(manifest, families[0], url)}",
        f"## Columns\n\n{table(('column', 'meaning'), ((f'`{c}`', m) for c, m in COLUMNS.items()))}",
        *(f"## Funnel of {f}\n\n{_funnel(manifest.funnel.get(f, ()))}" for f in families),
        f"## Yield and difficulty by stratum\n\n{_strata(manifest)}",
        f"## Where it comes from\n\n{_origin(manifest)}",
        f"## Known limits\n\n{_limits(manifest)}",
    ]
    return "\n\n".join(sections)


def _families(manifest: Manifest) -> list[str]:
    return list(dict.fromkeys(shard.config for shard in manifest.shards))


def _front_matter(manifest: Manifest) -> str:
    """Exact file names, no patterns: a stray file in the folder is never loaded."""
    lines = ["---", f"license: {_licence(manifest)}", "language: [en]", "configs:"]
    for family in _families(manifest):
        lines += [f"- config_name: {family}", "  data_files:"]
        for split, shards in _by_split(manifest, family).items():
            lines += [f"  - split: {split}", "    path:", *(f"    - {shard.path}" for shard in shards)]
    return "\n".join([*lines, "---"])


def _by_split(manifest: Manifest, family: str) -> dict[str, list[Shard]]:
    splits: dict[str, list[Shard]] = {}
    for shard in manifest.shards:
        if shard.config == family:
            splits.setdefault(shard.split, []).append(shard)
    return splits


def _licence(manifest: Manifest) -> str:
    """The strictest that the sources ask of what is derived from them."""
    licences = " ".join(source.licence.upper().replace("-", " ") for source in manifest.sources)
    if "BY SA" in licences:
        return "cc-by-sa-4.0"
    return "cc-by-4.0" if "CC BY" in licences else "apache-2.0"


def _summary(manifest: Manifest) -> str:
    rows = []
    for family in _families(manifest):
        for split, shards in _by_split(manifest, family).items():
            guess = manifest.guess.get(f"{family}/{split}")
            rows.append((family, split, sum(s.rows for s in shards), "" if guess is None else f"{guess:.1%}"))
    return (
        "Questions with a verified answer, made by construction from typed facts or computation, filtered, and kept only "
        "where the solver below is right sometimes but not always.\n\n"
        + table(("config", "split", "rows", "right by always giving the most frequent answer"), rows)
    )


def _loading(manifest: Manifest, family: str, url: str) -> str:
    first = next(iter(_by_split(manifest, family).values()))[0]
    by_name = f"""from pipeline.release import load

release = load("{url}")  # every file is compared with the manifest
load_dataset("parquet", data_files=release.data_files("{family}"), storage_options=release.store.storage_options)"""
    if url.startswith("s3://"):
        code = f"from datasets import load_dataset\n{by_name}"
    else:
        code = f"""from datasets import load_dataset

load_dataset("{url}", "{family}")
load_dataset("parquet", data_files="{url}/{first.path}")  # or one file
```

From a bucket, or to have the files checked first:

```python
{by_name}"""
    return f"""```python
{code}
```

Load one version, never the folder `releases/` above it: `datasets` would mix the versions it finds there.
Certificates, rejected tasks and attempts lie in `_touchstone/`, where `load_dataset` does not look."""


def _funnel(steps: Iterable[FunnelStep]) -> str:
    rows = (
        (
            s.filter,
            s.seen,
            s.kept,
            s.rejected,
            s.failed,
            s.undecided,
            s.cost,
            ", ".join(f"{r} {n}" for r, n in s.reasons.items()),
        )
        for s in steps
    )
    return table(("filter", "seen", "kept", "rejected", "failed", "undecided", "tokens", "reasons"), rows)


def _strata(manifest: Manifest) -> str:
    return table(
        ("stratum", "generated", "kept", "kept rate", "solver's rate on kept"),
        (
            (name, c.generated, c.kept, f"{c.kept / c.generated:.1%}", _rate(c))
            for name, c in sorted(manifest.strata.items())
            if c.generated
        ),
    )


def _rate(counts: StratumCounts) -> str:
    return f"{counts.correct / counts.samples:.2f} ({counts.correct} of {counts.samples})" if counts.samples else ""


def _origin(manifest: Manifest) -> str:
    made = [("code", manifest.code_revision), ("schema version", manifest.schema_version)]
    made += [(f"world {name}", hash) for name, hash in manifest.worlds.items()]
    made += [(f"generator of {family}", version) for family, version in manifest.generators.items()]
    made += [(f"solver {role}", name) for role, name in manifest.solvers.items()]
    text = table(("what", "which"), made)
    if manifest.sources:
        sources = ((s.package, s.version, s.licence, s.as_of or "") for s in manifest.sources)
        text += (
            "\n\nFacts come from these sources, joined, checked against each other and put into new words. "
            "This table is the attribution that their licences ask for; keep it with copies.\n\n"
            + table(("source", "version", "licence", "as of"), sources)
        )
    return text


def _limits(manifest: Manifest) -> str:
    return f"""- Difficulty is that of the solver named above in its own tool loop; another model finds other tasks hard.
- The keep band is decided on few samples: a task that is nearly always or nearly never solved can pass it by luck.
- Facts are those of the sources, at their date; a question is unique among what they record or declare complete.
- Questions are put together from templates, in English.
- Answer kinds: {", ".join(_kinds(manifest))}. The table on top gives what guessing the most frequent answer earns."""


def _kinds(manifest: Manifest) -> list[str]:
    return sorted({name.split("/")[3] for name in manifest.strata if name.count("/") >= 4})

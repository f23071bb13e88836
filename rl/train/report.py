"""The page of a run: what was trained on what, what it brought, and what became of everything. A pure function of the account."""

import asyncio
import json
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from infra.files import write_table, write_whole
from pipeline.markdown import table
from rl.analytics import ADVICE, advice
from rl.evaluate import compare
from rl.learn.records import Verdict
from rl.train.account import Account, account
from rl.train.metrics import METRICS_OF, POPULATIONS
from rl.train.run import FAILURES_FILE, TrainRun
from schemas.answer import canonical_answer
from schemas.arrow import FAILURES, METRICS
from schemas.evaluation import Estimate, Evaluation
from schemas.measured import AttemptOutcome, Failure

FILE = "report.html"
LONGEST = 4000
"""Characters of one text on the page."""
KINDS = {Verdict.RIGHT: "right", Verdict.WRONG: "wrong", Verdict.NONE: "no answer"}


class Score(NamedTuple):
    """One line of the comparison. Empty where it was not measured."""

    what: str
    tasks: int
    before: str
    after: str
    difference: str


class Ending(NamedTuple):
    """How many of a stratum's attempts ended so, and their share of it in the first and in the second half of versions."""

    stratum: str
    outcome: AttemptOutcome
    n: int
    first: str
    second: str
    turns: float
    tokens: float


async def write(run: TrainRun) -> Account:
    """Write the run's `report.html`, `metrics.parquet` and `failures.parquet` as it stands."""
    told = await account(run)
    await asyncio.to_thread(_write, run.path, told)
    return told


def _write(folder: Path, told: Account) -> None:
    write_table(folder / "metrics.parquet", METRICS.pack(told.metrics))
    write_table(folder / FAILURES_FILE, FAILURES.pack(told.failures))
    write_whole(folder / FILE, page(told).encode())


def page(account: Account) -> str:
    """One HTML file that needs nothing else. What a model, a task or a page wrote is shown as text."""
    from rl.train.curves import drawn  # matplotlib: only a page waits for it

    return (
        _environment()
        .get_template("report.jinja")
        .render(
            run=account.run,
            config=account.config,
            release=account.release,
            policy=account.policy,
            sentence=sentence(account),
            scores=scores(account.before, account.after),
            after_step=account.after_step,
            curves={title: Markup(svg) for title, svg in drawn(account.metrics).items()},  # noqa: S704  made here, of numbers
            counts=fates(account),
            closes=closes(account),
            endings=endings(account.failures),
            advice=advice(account.failures),
            helps=ADVICE,
            samples=account.samples,
            settings=json.dumps(account.config.model_dump(mode="json"), indent=1, ensure_ascii=False),
            described=METRICS_OF,
            populations=POPULATIONS,
        )
    )


def summary(account: Account) -> dict[str, Any]:
    """The same for machines, in short."""
    counts = account.counts
    return {
        "run": account.run,
        "release": account.release,
        "policy": account.policy,
        "steps": account.steps,
        "minutes": round(account.seconds / 60, 2),
        "admitted": counts.admitted,
        "trained": counts.trained,
        "dropped": dict(counts.dropped),
        "suspended": counts.suspended,
        "before": _rates(account.before),
        "after": _rates(account.after),
    }


def markdown(account: Account) -> str:
    """The comparison and the counts, for where Markdown is shown."""
    lines = [f"# {account.policy} trained on {account.release}", "", sentence(account), ""]
    if rows := scores(account.before, account.after):
        lines.append(table(("what", "tasks", "before", f"after step {account.after_step}", "difference"), rows))
    lines += ["", table(("attempts", "count"), fates(account)), "", closes(account)]
    return "\n".join(lines)


def sentence(account: Account) -> str:
    """How long and on how much, and what it brought."""
    took = f"{account.steps} steps in {account.seconds / 60:.1f} minutes on {account.counts.trained:,} attempts"
    sampled = [each.sampled.rate if each else None for each in (account.before, account.after)]
    if sampled[0] is None or sampled[1] is None:
        return f"{took}."
    return f"{took}; held-out pass@1 went from {_rate(sampled[0])} to {_rate(sampled[1])}."


def scores(before: Evaluation | None, after: Evaluation | None) -> list[Score]:
    """Sampled, greedy and each pass@k of all tasks, then each stratum; nothing where nothing was evaluated.

    The first two are compared task by task, and their difference has an interval.
    """
    old, new = ({} if each is None else _estimates(each) for each in (before, after))
    paired: dict[str, Estimate | None] = {}
    if before and after:
        found = compare(before, after)
        paired = {SAMPLED: found.sampled, GREEDY: found.greedy}
    rows = []
    for what in dict.fromkeys([*old, *new]):
        sides = old.get(what), new.get(what)
        tasks = max(each.tasks for each in sides if each)
        rows.append(Score(what, tasks, _rate(sides[0]), _rate(sides[1]), _difference(*sides, paired.get(what))))
    return rows


def endings(failures: Iterable[Failure]) -> list[Ending]:
    """Versions together in two halves, so that the page stays short however long the run was."""
    rows = list(failures)
    middle = max((_number(row.version) for row in rows), default=0) / 2
    halves: dict[tuple[str, bool], int] = defaultdict(int)
    kinds: dict[tuple[str, AttemptOutcome], list[Failure]] = defaultdict(list)
    for row in rows:
        halves[row.stratum, _number(row.version) > middle] += row.n
        kinds[row.stratum, row.outcome].append(row)
    found = []
    for (stratum, outcome), those in sorted(kinds.items()):
        n = sum(row.n for row in those)
        late = sum(row.n for row in those if _number(row.version) > middle)
        found.append(
            Ending(
                stratum,
                outcome,
                n,
                _share(n - late, halves[stratum, False]),
                _share(late, halves[stratum, True]),
                sum(row.n * row.turns for row in those) / n,
                sum(row.n * row.tokens for row in those) / n,
            )
        )
    return found


SAMPLED, GREEDY = "all, sampled", "all, greedy"


def _estimates(evaluation: Evaluation) -> dict[str, Estimate]:
    sampled = evaluation.sampled
    found = {SAMPLED: sampled.rate, GREEDY: evaluation.greedy.rate}
    found |= {f"all, pass@{k}": estimate for k, estimate in sampled.pass_at.items() if k > 1}
    found |= {f"{stratum}, sampled": score.rate for stratum, score in sampled.strata.items()}
    return {what: estimate for what, estimate in found.items() if estimate is not None}


def _rates(evaluation: Evaluation | None) -> dict[str, Any] | None:
    if evaluation is None:
        return None
    return {what: estimate.model_dump(mode="json") for what, estimate in _estimates(evaluation).items()}


def _rate(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def _difference(old: Estimate | None, new: Estimate | None, paired: Estimate | None) -> str:
    if paired is not None:
        return f"{paired.value:+.3f} ({paired.low:+.3f} to {paired.high:+.3f})"
    return f"{new.value - old.value:+.3f}" if old and new else ""


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _number(version: str) -> int:
    """Weights are numbered in training; an attempt without a turn saw none."""
    return int(version or 0)


def fates(account: Account) -> list[tuple[str, int]]:
    """What became of every attempt that was admitted, and how many."""
    counts = account.counts
    dropped = [(f"dropped: {reason.replace('_', ' ')}", n) for reason, n in sorted(counts.dropped.items())]
    return [("admitted", counts.admitted), ("trained", counts.trained), *dropped, ("suspended", counts.suspended)]


def closes(account: Account) -> str:
    """Whether those counts add up."""
    if missing := account.counts.missing:
        return f"These do not add up: {missing:+,} attempts are unaccounted for."
    return "Admitted = trained + dropped + suspended: the run still holds those, to be played on or trained."


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"cut": _cut, "words": lambda text: text.replace("_", " ")}
    made.globals |= {"kind": KINDS.__getitem__, "gold": lambda task: canonical_answer(task.answer)}
    return made


def _shown(value: Any) -> Any:
    """A control character, and half a surrogate pair that no file can hold, as the sign for what cannot be shown."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "".join("\ufffd" if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t" else c for c in value)


def _cut(text: str, longest: int = LONGEST) -> str:
    more = len(text) - longest
    return text if more <= 0 else f"{text[:longest]} … {more:,} characters more"

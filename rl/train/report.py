"""The page of a run: what was trained on what, what it brought, and what became of everything. A pure function of the account."""

import json
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rl.analytics import Sample
from rl.train.curves import drawn
from rl.train.metrics import METRICS_OF, POPULATIONS
from schemas.answer import canonical_answer
from schemas.evaluation import Block, Estimate, Evaluation
from schemas.measured import Failure, Metric
from schemas.training import TrainConfig

FILE = "report.html"
LONGEST = 4000
"""Characters of one text on the page."""


@dataclass(frozen=True, slots=True)
class Fates:
    """What became of every attempt that was admitted. `waiting` are over and wait for their group or batch."""

    admitted: int = 0
    trained: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    """By reason."""
    suspended: int = 0
    waiting: int = 0

    @property
    def missing(self) -> int:
        """Attempts that nothing is known of; 0, or something was lost."""
        return self.admitted - self.trained - sum(self.dropped.values()) - self.suspended - self.waiting


@dataclass(frozen=True, slots=True)
class Account:
    """All that there is to tell of a run, at its end or on the way."""

    run: str
    config: TrainConfig
    release: str
    policy: str
    """Model and revision."""
    minutes: float = 0.0
    fates: Fates = Fates()
    metrics: Sequence[Metric] = ()
    before: Evaluation | None = None
    after: Evaluation | None = None
    failures: Sequence[Failure] = ()
    samples: Sequence[Sample] = ()

    @property
    def steps(self) -> int:
        return max((each.step for each in self.metrics), default=0)


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
    outcome: str
    n: int
    first: str
    second: str
    turns: float
    tokens: float


def page(account: Account) -> str:
    """One HTML file that needs nothing else. What a model, a task or a page wrote is shown as text."""
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
            curves={title: Markup(svg) for title, svg in drawn(account.metrics).items()},  # noqa: S704  made here, of numbers
            fates=_fates(account.fates),
            closes=_closes(account.fates),
            endings=endings(account.failures),
            samples=account.samples,
            settings=json.dumps(account.config.model_dump(mode="json"), indent=1, ensure_ascii=False),
            described=METRICS_OF,
            populations=POPULATIONS,
        )
    )


def summary(account: Account) -> dict[str, Any]:
    """The same for machines, in short."""
    fates = account.fates
    return {
        "run": account.run,
        "release": account.release,
        "policy": account.policy,
        "steps": account.steps,
        "minutes": round(account.minutes, 2),
        "admitted": fates.admitted,
        "trained": fates.trained,
        "dropped": dict(fates.dropped),
        "suspended": fates.suspended,
        "waiting": fates.waiting,
        "before": _rates(account.before),
        "after": _rates(account.after),
    }


def markdown(account: Account) -> str:
    """The comparison and the counts, for where Markdown is shown."""
    lines = [f"# {account.policy} trained on {account.release}", "", sentence(account), ""]
    if rows := scores(account.before, account.after):
        lines += _table(("what", "tasks", "before", "after", "difference"), rows)
    lines += ["", *_table(("attempts", "count"), _fates(account.fates)), "", _closes(account.fates)]
    return "\n".join(lines)


def sentence(account: Account) -> str:
    """How long and on how much, and what it brought."""
    took = f"{account.steps} steps in {account.minutes:.1f} minutes on {account.fates.trained:,} attempts"
    sampled = [each.sampled.rate if each else None for each in (account.before, account.after)]
    if sampled[0] is None or sampled[1] is None:
        return f"{took}."
    return f"{took}; held-out pass@1 went from {_rate(sampled[0])} to {_rate(sampled[1])}."


def scores(before: Evaluation | None, after: Evaluation | None) -> list[Score]:
    """Sampled, greedy and each pass@k of all tasks, then each stratum; nothing where nothing was evaluated."""
    sides = [{} if each is None else _estimates(each) for each in (before, after)]
    rows = []
    for what in dict.fromkeys([*sides[0], *sides[1]]):
        old, new = (side.get(what) for side in sides)
        difference = f"{new.value - old.value:+.3f}" if old and new else ""
        tasks = max(each.tasks for each in (old, new) if each)
        rows.append(Score(what, tasks, _rate(old), _rate(new), difference))
    return rows


def endings(failures: Iterable[Failure]) -> list[Ending]:
    """Versions together in two halves, so that the page stays short however long the run was."""
    rows = list(failures)
    middle = max((_number(row.version) for row in rows), default=0) / 2
    halves: dict[tuple[str, bool], int] = defaultdict(int)
    kinds: dict[tuple[str, str], list[Failure]] = defaultdict(list)
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


def _estimates(evaluation: Evaluation) -> dict[str, Estimate]:
    sampled: Block = evaluation.sampled
    found = {"all, sampled": sampled.rate, "all, greedy": evaluation.greedy.rate}
    found |= {f"all, pass@{k}": estimate for k, estimate in sampled.pass_at.items() if k > 1}
    found |= {f"{stratum}, sampled": score.rate for stratum, score in sampled.strata.items()}
    return {what: estimate for what, estimate in found.items() if estimate is not None}


def _rates(evaluation: Evaluation | None) -> dict[str, Any] | None:
    if evaluation is None:
        return None
    return {what: estimate.model_dump(mode="json") for what, estimate in _estimates(evaluation).items()}


def _rate(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _number(version: str) -> int:
    """Weights are numbered in training; an attempt without a turn saw none."""
    return int(version or 0)


def _fates(fates: Fates) -> list[tuple[str, int]]:
    dropped = [(f"dropped: {reason.replace('_', ' ')}", n) for reason, n in sorted(fates.dropped.items())]
    waits = [("suspended", fates.suspended), ("waiting for their group or batch", fates.waiting)]
    return [("admitted", fates.admitted), ("trained", fates.trained), *dropped, *waits]


def _closes(fates: Fates) -> str:
    if fates.missing:
        return f"These do not add up: {fates.missing:+,} attempts are unaccounted for."
    return "Admitted = trained + dropped + suspended + waiting."


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    return ["| " + " | ".join(map(str, line)) + " |" for line in (head, ["---"] * len(head), *rows)]


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
    made.globals |= {"gold": lambda task: canonical_answer(task.answer)}
    return made


def _shown(value: Any) -> Any:
    """A control character, and half a surrogate pair that no file can hold, as the sign for what cannot be shown."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "".join("\ufffd" if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t" else c for c in value)


def _cut(text: str, longest: int = LONGEST) -> str:
    more = len(text) - longest
    return text if more <= 0 else f"{text[:longest]} … {more:,} characters more"

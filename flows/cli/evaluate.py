"""`touchstone evaluate`: how good a policy is on tasks that it was not trained on."""

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.console import Json, draw, emit, err, merged, out, progress_bars, read_json
from flows.cli.render import table
from flows.cli.tasks import Where, open_release
from infra.settings import Settings
from rl import heldout
from rl.evaluate import EvaluationError, comparable, compare
from schemas.config import Served
from schemas.evaluation import Block, Comparison, Counts, Estimate, EvaluateConfig, Evaluation


def evaluate(
    policy: Annotated[str, typer.Argument(help="A training run, or a model: `starter`, a folder.", show_default=False)],
    release: Where = "latest",
    split: Annotated[str | None, typer.Option(help="Of the release (test).")] = None,
    on: Annotated[
        Path | None, typer.Option(help="Instead of a release: a file of SimpleQA, FRAMES, HLE, xbench or Seal-0.")
    ] = None,
    format: Annotated[str | None, typer.Option(help="Of that file, where its columns do not tell.")] = None,
    attempts: Annotated[int | None, typer.Option(help="Sampled attempts at a task (4); one more is greedy.")] = None,
    tasks: Annotated[int | None, typer.Option(help="Only the first so many.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the sampled attempts (0).")] = None,
    url: Annotated[str | None, typer.Option(help="Where the model is served already: http://host:8000/v1.")] = None,
    against: Annotated[Path | None, typer.Option(help="An earlier evaluation.json on the same tasks.")] = None,
    config: Annotated[Path | None, typer.Option(help="JSON file of further `EvaluateConfig` settings.")] = None,
    as_json: Json = False,
) -> None:
    """Pass@1, pass@k and avg@k with 95 % intervals, greedy and sampled, per stratum.

    Scores on published benchmarks are a lower bound: the grader is exact, and published ones come from a model that judges.

    Example: `touchstone evaluate starter --split test --attempts 4`
    """
    flags = {"split": split, "attempts": attempts, "tasks": tasks, "seed": seed}
    checked = EvaluateConfig.model_validate(merged(read_json(config) if config else {}, flags))
    _only_what_is_read(on, release, split, format)
    settings = Settings.from_env()
    earlier = Evaluation.model_validate(read_json(against)) if against else None
    if on is None:
        held = heldout.of_release(open_release(release), checked, settings.cache)
    else:
        held = heldout.of_file(on, checked, settings.cache, format)
    if earlier is not None:
        comparable(earlier, held.on)
    served = Served(model=heldout.policy_folder(policy, settings), url=url)
    if url is None:
        err.print(f"{served.model}: starting its server, half a minute or more", style="dim")
    with progress_bars() as report:
        found, graded = heldout.evaluate_served(served, held, checked, settings=settings, progress=report)
    folder = heldout.write(found, graded, settings.cache / "evaluations")
    compared = None if earlier is None else compare(earlier, found)

    def render() -> None:
        _draw(found)
        if compared is not None:
            _draw_gain(compared)
        out.print(f"written to:  {folder}")
        if (wrong := _first_wrong(found.greedy)) and on is None:
            out.print(f"look at one: touchstone solve {wrong} --policy {served.model} --release {release} --watch")
        out.print(f"next time:   touchstone evaluate <run> --against {folder / 'evaluation.json'}")

    value = found.model_dump(mode="json") | {"folder": str(folder)}
    emit(value | ({"compared": compared.model_dump(mode="json")} if compared else {}), as_json, render)


def _only_what_is_read(on: Path | None, release: str, split: str | None, format: str | None) -> None:
    if on is None and format is not None:
        raise EvaluationError(f"--format={format}: is of a file; give one with --on, or leave it out")
    for name, value in (("--release", release if release != "latest" else None), ("--split", split)):
        if on is not None and value is not None:
            raise EvaluationError(f"{name}={value}: is not read beside --on; leave it out")


def _draw(found: Evaluation) -> None:
    sampled, greedy = found.sampled, found.greedy
    rows = [
        (name, _tasks(score.rate), _shown(greedy.strata[name].rate), _shown(score.rate))
        for name, score in sampled.strata.items()
    ]
    if len(rows) > 1:
        draw(table(f"{found.policy} on {found.on}", ("stratum", "tasks", "greedy", f"avg@{sampled.each}"), rows))
    pass_at = [(f"pass@{k}", _tasks(estimate), "", _shown(estimate)) for k, estimate in sampled.pass_at.items()]
    counts = [
        (name, "", str(getattr(greedy.counts, name)), str(getattr(sampled.counts, name)))
        for name in Counts.model_fields
    ]
    whole = [
        ("pass@1", _tasks(sampled.rate), _shown(greedy.rate), _shown(sampled.rate)),
        *pass_at,
        *counts,
        ("turns of right ones", "", _number(greedy.turns_right), _number(sampled.turns_right)),
        ("turns that were no step", "", _percent(greedy.format_errors), _percent(sampled.format_errors)),
        ("stops", "", _stops(greedy), _stops(sampled)),
    ]
    draw(table(f"{found.policy} on all", ("", "tasks", "greedy", f"sampled {sampled.each} times"), whole))
    skipped = ", ".join(f"{reason} {count:,}" for reason, count in found.skipped.items())
    out.print(f"{found.rows:,} rows: {found.tasks:,} tasks{f'; skipped: {skipped}' if skipped else ''}")


def _draw_gain(compared: Comparison) -> None:
    rows = [
        (name, _tasks(gain), "" if gain is None else f"{gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})")
        for name, gain in (("greedy", compared.greedy), ("sampled", compared.sampled))
    ]
    draw(table(f"{compared.after} above {compared.before}, task by task", ("", "tasks", "pass@1"), rows))


def _tasks(estimate: Estimate | None) -> int:
    return estimate.tasks if estimate else 0


def _shown(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _stops(block: Block) -> str:
    return "\n".join(f"{stop} {count}" for stop, count in sorted(block.stops.items(), key=lambda item: -item[1]))


def _first_wrong(block: Block) -> str | None:
    return next((id for id, counts in block.by_task.items() if counts.wrong), None)

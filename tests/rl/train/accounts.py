"""Accounts of runs that never were: one at its end, and one that has just begun."""

import math

from rl.analytics import Sample
from rl.learn.records import Verdict
from rl.train.account import Account
from rl.train.buffer import Counts
from rl.train.metrics import tabled
from schemas import evaluation as scores
from schemas.evaluation import Block, Estimate, Evaluation, StratumScore
from schemas.measured import AttemptOutcome, Failure, Metric
from schemas.training import TrainConfig
from schemas.trajectory import StopReason, ToolCall, Trajectory, Turn
from tests.pipeline.tasks import search_task

TASK = search_task()
ATTACK = "</pre><script>alert(1)</script>\x1b[2J\u202eevil"


def block(right: int, each: int) -> Block:
    """Of 100 tasks, so many with every attempt right and the others with none."""
    tally = {
        f"task-{i}": scores.Counts(attempts=each, **({"right": each} if i < right else {"wrong": each}))
        for i in range(100)
    }
    counts = scores.total(tally.values())
    rate = Estimate(value=right / 100, low=right / 100 - 0.04, high=right / 100 + 0.04, tasks=100)
    return Block(
        each=each,
        counts=counts,
        rate=rate,
        pass_at={1: rate, 4: rate} if each > 1 else {1: rate},
        strata={TASK.stratum: StratumScore(counts=counts, rate=rate)},
        by_task=tally,
        turns_right=4.0,
        format_errors=0.01,
        stops={"answered": 100 * each},
    )


def evaluation(right: int) -> Evaluation:
    return Evaluation(
        policy="starter@1",
        on="r-0123456789ab/hard_search/test",
        rows=100,
        tasks=100,
        seed=0,
        sampled=block(right, 4),
        greedy=block(right, 1),
    )


def attempt(number: int, stop: StopReason, text: str) -> Trajectory:
    call = ToolCall(name="search", arguments={"queries": ["what borders Niger"]})
    turns = [
        Turn(
            prompt_tokens=90 + 40 * i,
            output_ids=(1, 2, 3),
            text=text,
            version=str(number // 3),
            call_id="c",
            tool_calls=(call,),
            observation=f"1. Mali borders Niger {text}",
        )
        for i in range(3)
    ]
    answer = text if stop is StopReason.ANSWERED else None
    return Trajectory(
        task_id=TASK.task_id,
        solver="starter",
        arm="tools",
        seed=number,
        turns=tuple(turns),
        stop=stop,
        answer=answer,
        tokens=400,
    )


KINDS = (
    (Verdict.RIGHT, StopReason.ANSWERED),
    (Verdict.WRONG, StopReason.ANSWERED),
    (Verdict.NONE, StopReason.FORMAT),
)


def looked_at(text: str) -> list[Sample]:
    return [
        Sample(verdict, when, TASK, attempt(number, stop, text))
        for verdict, stop in KINDS
        for number, when in enumerate(("early", "late"))
    ]


def endings() -> list[Failure]:
    """12 attempts by each of versions 0 to 4, of which more are right each time, and three that broke at once."""
    rows = [
        (outcome, version, n, turns)
        for version in range(5)
        for outcome, n, turns in (
            (AttemptOutcome.RIGHT, 2 * version, 3.0),
            (AttemptOutcome.NEAR_MISS, 12 - 2 * version, 4.0),
        )
    ]
    counted = [
        ending(outcome, str(version), n, turns=turns, pass_a=0.5 + 2 * version, pass_b=12.5 - 2 * version)
        for outcome, version, n, turns in rows
        if n
    ]
    return [ending(AttemptOutcome.TOOL_ERROR, "", 3, turns=0.0, pass_a=0.5, pass_b=0.5), *counted]


def ending(outcome: AttemptOutcome, version: str, n: int, *, turns: float, pass_a: float, pass_b: float) -> Failure:
    return Failure(
        stratum=TASK.stratum,
        epoch=0,
        version=version,
        outcome=outcome,
        n=n,
        read=n // 2,
        turns=turns,
        tokens=400,
        seconds=2.5,
        failed_at=None if outcome is AttemptOutcome.RIGHT else turns,
        clues_met=0.5,
        unread=0.25,
        calls={"search": 1.5},
        uncalled={"open": 1.0},
        pass_a=pass_a,
        pass_b=pass_b,
    )


def figures(steps: int) -> list[Metric]:
    def of(step: int) -> dict[str, float]:
        grown = 1 - math.exp(-step / 30)
        return {
            "pass_rate/valid": 0.2 + 0.4 * grown,
            "solved/groups": 0.5 + 0.4 * grown,
            "reward/valid": 0.15 + 0.4 * grown,
            "entropy/targets": 0.8 - 0.2 * grown,
            "entropy/positive": 0.7 - 0.2 * grown,
            "entropy/negative": 0.9 - 0.2 * grown,
            "lag_mean/trained": 1.2,
            "lag_max/trained": 3.0,
            "turns/valid": 5 - grown,
            "turns/right": 4 - grown,
            "format_errors/valid": 0.05 - 0.04 * grown,
            "negative_kept/negative": math.nan if step == 2 else 0.8,
            "tokens_per_second/step": 2400 + 10 * step,
            "in_flight/attempts": 64,
            "suspended/attempts": step % 7,
        }

    return tabled((step, 3.0, of(step)) for step in range(1, steps + 1))


CONFIG = TrainConfig(steps=90)


def at_its_end(text: str = "Mali") -> Account:
    return Account(
        run="train-0123456789ab",
        config=CONFIG,
        release="r-0123456789ab",
        policy="starter@1",
        counts=Counts(admitted=63, trained=55, dropped={"no_signal": 4, "stale": 1}, suspended=3),
        seconds=258,
        metrics=figures(90),
        before=evaluation(20),
        after=evaluation(58),
        after_step=90,
        failures=endings(),
        samples=looked_at(text),
    )


def just_begun(steps: int = 0) -> Account:
    return Account(
        run="train-0123456789ab",
        config=CONFIG,
        release="r-0123456789ab",
        policy="starter@1",
        counts=Counts(admitted=8, trained=0, dropped={}, suspended=8),
        metrics=figures(steps),
    )

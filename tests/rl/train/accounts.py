"""Accounts of runs that never were: one at its end, and one that has just begun."""

import math

from rl.analytics import Ended, failure_stats, samples
from rl.learn.records import Graded, Verdict
from rl.train.report import Account, Fates
from schemas.evaluation import Block, Counts, Estimate, Evaluation, StratumScore
from schemas.measured import Metric
from schemas.training import TrainConfig
from schemas.trajectory import StopReason, ToolCall, Trajectory, Turn
from tests.pipeline.tasks import search_task

TASK = search_task()
ATTACK = "</pre><script>alert(1)</script>\x1b[2J\u202eevil"


def block(right: int, each: int) -> Block:
    n = 100 * each
    counts = Counts(right=right * each, wrong=n - right * each, attempts=n)
    rate = Estimate(value=right / 100, low=right / 100 - 0.04, high=right / 100 + 0.04, tasks=100)
    return Block(
        each=each,
        counts=counts,
        rate=rate,
        pass_at={1: rate, 4: rate} if each > 1 else {1: rate},
        strata={TASK.stratum: StratumScore(counts=counts, rate=rate)},
        by_task={TASK.task_id: counts},
        turns_right=4.0,
        format_errors=0.01,
        stops={"answered": n},
    )


def evaluation(right: int) -> Evaluation:
    return Evaluation(
        policy="starter@1",
        on="r-0123456789ab/test",
        rows=100,
        tasks=100,
        seed=0,
        sampled=block(right, 4),
        greedy=block(right, 1),
    )


def ended(number: int, verdict: Verdict, stop: StopReason, text: str = "<tool_call>…</tool_call>") -> Ended:
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
    done = Trajectory(
        task_id=TASK.task_id,
        solver="starter",
        arm="tools",
        seed=number,
        turns=tuple(turns),
        stop=stop,
        answer=text if stop is StopReason.ANSWERED else None,
        tokens=400,
    )
    return Ended(TASK, Graded(uid=f"{number}/0", trajectory=done, verdict=verdict))


def attempts(text: str = "Mali") -> list[Ended]:
    kinds = [
        (Verdict.RIGHT, StopReason.ANSWERED),
        (Verdict.WRONG, StopReason.ANSWERED),
        (Verdict.NONE, StopReason.FORMAT),
    ]
    return [ended(number, *kinds[number % 3], text=text) for number in range(24)]


def figures(steps: int) -> list[Metric]:
    def of(step: int) -> dict[str, float | None]:
        grown = 1 - math.exp(-step / 30)
        return {
            "pass_rate/graded": 0.2 + 0.4 * grown,
            "reward/graded": 0.15 + 0.4 * grown,
            "entropy/targets": 0.8 - 0.2 * grown,
            "entropy/positive": 0.7 - 0.2 * grown,
            "entropy/negative": 0.9 - 0.2 * grown,
            "staleness/targets": 1.2,
            "staleness_max/targets": 3.0,
            "turns/graded": 5 - grown,
            "turns/right": 4 - grown,
            "format_errors/graded": 0.05 - 0.04 * grown,
            "kept/negative": None if step == 2 else 0.8,
            "tokens_per_second/trained": 2400 + 10 * step,
            "in_flight/now": 64,
            "suspended/now": step % 7,
            "waiting/now": 30,
        }

    return [
        Metric(step=step, seconds=3.0 * step, name=what.split("/")[0], population=what.split("/")[1], value=value)
        for step in range(1, steps + 1)
        for what, value in of(step).items()
    ]


def at_its_end(text: str = "Mali") -> Account:
    return Account(
        run="train-0123456789ab",
        config=TrainConfig(steps=90),
        release="r-0123456789ab",
        policy="starter@1",
        minutes=4.3,
        fates=Fates(admitted=24, trained=15, dropped={"no_signal": 4, "too_old": 1}, suspended=3, waiting=1),
        metrics=figures(90),
        before=evaluation(20),
        after=evaluation(58),
        failures=failure_stats(attempts(text)),
        samples=samples(attempts(text)),
    )


def just_begun() -> Account:
    return Account(run="train-0123456789ab", config=TrainConfig(steps=90), release="r-0123456789ab", policy="starter@1")

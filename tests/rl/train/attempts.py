"""Attempts, made by hand."""

from bench.simulated import turn
from rl.learn.records import Graded, Verdict
from schemas.measured import AttemptOutcome, Diagnosis
from schemas.trajectory import StopReason, Trajectory


def graded(
    uid: str, right: bool, *, task_id: str = "t", version: int = 0, stop: StopReason = StopReason.ANSWERED
) -> Graded:
    answered = stop is StopReason.ANSWERED
    attempt = Trajectory(
        task_id=task_id,
        solver="test",
        arm="tools",
        seed=1,
        turns=(turn(version),),
        stop=stop,
        answer="yes" if answered else None,
    )
    verdict = (Verdict.RIGHT if right else Verdict.WRONG) if answered else Verdict.NONE
    return Graded(uid=uid, trajectory=attempt, verdict=verdict)


def diagnosis(right: bool) -> Diagnosis:
    return Diagnosis(outcome=AttemptOutcome.RIGHT if right else AttemptOutcome.WRONG_VALUE)

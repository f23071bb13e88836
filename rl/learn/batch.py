"""From groups of graded attempts to what one step trains on. Pure: equal arguments give equal batches."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from rl.learn.advantage import advantages, excess, has_signal
from rl.learn.records import Batch, Graded, Row, Verdict
from rl.learn.reward import MALFORMED, returns, reward
from rl.learn.rows import rows_of, version_of
from schemas.errors import TouchstoneError
from schemas.training import OnPolicy, TrainConfig
from schemas.trajectory import StopReason


class BatchError(TouchstoneError):
    """Attempts that could not have come from the run."""


@dataclass(slots=True)
class _Member:
    """An attempt with a reward."""

    graded: Graded
    reward: float
    returns: tuple[float, ...]
    lags: tuple[int, ...]
    """By how many versions each turn is older than the weights that are trained."""
    targets: tuple[int, ...]
    """Tokens of each turn that may be trained on; 0 where the turn is context only."""
    advantages: tuple[float, ...] = ()

    @property
    def mass(self) -> float:
        return sum(n * a for n, a in zip(self.targets, self.advantages, strict=True))


def make_batch(groups: Sequence[Sequence[Graded]], config: TrainConfig, version: int, seed: int) -> Batch:
    """What to train the weights `version` on. Every uid is trained or dropped, for the first of these reasons that holds:

    no reward (the stop, or `undecided`: it leaves its group); `stale` (older than the level `bounded` allows; as a sample of
    the task's reward it still counts in the baseline of the others); `alone` (nobody else in the group has a reward);
    `no_signal` (`has_signal`); `older` (each of its turns is masked by `mask_older`); `negative_cap` (`excess`).

    Raises `BatchError` for a turn by weights that the level never lets be trained, or that are newer than the trainer's.
    """
    dropped: dict[str, str] = {}
    valid = [_with_reward(group, config, version, dropped) for group in groups]
    signal = [group for group in valid if _compared(group, dropped)]
    if config.on_policy.level == "bounded":
        stale = [m for group in valid for m in group if max(m.lags) > config.on_policy.staleness]
        dropped |= dict.fromkeys((m.graded.uid for m in stale), "stale")
    for group in signal:
        for member, each in zip(group, advantages([m.returns for m in group]), strict=True):
            member.advantages = each
    fresh = [m for group in signal for m in group if m.graded.uid not in dropped]
    dropped |= dict.fromkeys((m.graded.uid for m in fresh if not any(m.targets)), "older")
    members = [m for m in fresh if any(m.targets)]
    answered = [m.graded.trajectory.stop is StopReason.ANSWERED for m in members]
    # A seed of its own for every step: the same places of a batch must not go each time.
    rng = random.Random(f"{seed}/{version}")
    gone = excess([m.mass for m in members], answered, config.negatives, rng)
    dropped |= dict.fromkeys((members[i].graded.uid for i in gone), "negative_cap")
    kept = [m for i, m in enumerate(members) if i not in gone]
    rows = _rows(kept, config)
    trained = tuple(m.graded.uid for m in kept)
    if len({*trained, *dropped}) != sum(map(len, groups)):
        raise BatchError("groups: an attempt is in them twice; every uid may be in a batch once")
    metrics = _of_groups(valid, signal) | _of_negatives(members, kept) | _of_rows(kept, rows)
    return Batch(rows, trained, dropped, metrics)


def _with_reward(group: Iterable[Graded], config: TrainConfig, version: int, dropped: dict[str, str]) -> list[_Member]:
    members = []
    for graded in group:
        worth, trajectory = reward(graded, config.reward), graded.trajectory
        if worth is None:
            answered = trajectory.stop is StopReason.ANSWERED
            dropped[graded.uid] = Verdict.UNDECIDED.value if answered else trajectory.stop.value
            continue
        lags = tuple(version - version_of(turn) for turn in trajectory.turns)
        _check(graded.uid, lags, config.on_policy, version)
        members.append(
            _Member(
                graded,
                worth,
                returns(worth, len(trajectory.turns), config.reward.gamma),
                lags,
                tuple(
                    0 if config.on_policy.mask_older and lag else len(turn.output_ids)
                    for turn, lag in zip(trajectory.turns, lags, strict=True)
                ),
            )
        )
    return members


def _check(uid: str, lags: Sequence[int], rule: OnPolicy, version: int) -> None:
    if min(lags) < 0:
        raise BatchError(
            f"{uid}: was sampled by version {version - min(lags)}, and {version} is trained; publish first"
        )
    if rule.level == "batch" and max(lags):
        raise BatchError(
            f"{uid}: was sampled by version {version - max(lags)}, and on_policy.level=batch trains what {version} sampled; "
            "play the batch after the swap, or use level turn or bounded"
        )


def _compared(group: Sequence[_Member], dropped: dict[str, str]) -> bool:
    if len(group) < 2:
        dropped |= dict.fromkeys((m.graded.uid for m in group), "alone")
        return False
    if not has_signal([m.returns for m in group]):
        dropped |= dict.fromkeys((m.graded.uid for m in group), "no_signal")
        return False
    return True


def _rows(members: Sequence[_Member], config: TrainConfig) -> tuple[Row, ...]:
    """Shares sum to 1 over all targets. A forked trajectory counts once: its tokens are those of all its rows."""
    tokens = sum(sum(m.targets) for m in members)
    rows: list[Row] = []
    for m in members:
        share = 1 / tokens if config.loss.per == "token" else 1 / (len(members) * sum(m.targets))
        weighted = [a * config.negatives.weight if a < 0 else a for a in m.advantages]
        rows += rows_of(m.graded.uid, m.graded.trajectory.turns, weighted, [n > 0 for n in m.targets], share)
    return tuple(rows)


def _of_groups(valid: Sequence[Sequence[_Member]], signal: Sequence[Sequence[_Member]]) -> dict[str, float]:
    """`valid` are attempts with a reward, `groups` those with two of them."""
    members = [m for group in valid for m in group]
    groups = [group for group in valid if len(group) > 1]
    right = [m for m in members if m.graded.verdict is Verdict.RIGHT]
    found: dict[str, float] = {}
    if members:
        found = {
            "reward/valid": fmean(m.reward for m in members),
            "pass_rate/valid": len(right) / len(members),
            "turns/valid": fmean(len(m.returns) for m in members),
            "format_errors/valid": fmean(m.graded.trajectory.stop in MALFORMED for m in members),
        }
    if right:
        found["turns/right"] = fmean(len(m.returns) for m in right)
    if groups:
        found["solved/groups"] = fmean(any(m.reward > 0 for m in group) for group in groups)
        found["no_signal/groups"] = 1 - len(signal) / len(groups)
    return found


def _of_negatives(members: Sequence[_Member], kept: Sequence[_Member]) -> dict[str, float]:
    before, after = (sum(-min(m.mass, 0.0) for m in each) for each in (members, kept))
    return {"negative_kept/negative": after / before} if before else {}


def _of_rows(kept: Sequence[_Member], rows: Sequence[Row]) -> dict[str, float]:
    """Lags are those of a trajectory's oldest turn."""
    targets = sum(sum(m.targets) for m in kept)
    found = {
        "trajectories/trained": float(len(kept)),
        "rows/trained": float(len(rows)),
        "tokens/trained": float(targets),
        "tokens/shown": float(sum(map(len, rows)) - targets),
    }
    if kept:
        found |= {
            "turns/trained": fmean(len(m.returns) for m in kept),
            "forked/trained": fmean(len({t.segment for t in m.graded.trajectory.turns}) > 1 for m in kept),
            "lag_mean/trained": fmean(max(m.lags) for m in kept),
            "lag_max/trained": float(max(max(m.lags) for m in kept)),
        }
    return found

"""One step of learning, on one rank."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from infra import broadcast
from infra.weights import digest
from rl.learn.learner import Learner
from rl.learn.records import Row
from tests.rl.learn.small import apart, batch, gradients, mixed, moved, row, setup, weights, write_policy


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_policy(tmp_path_factory.mktemp("policies") / "small")


def logprob(learner: Learner, context: list[int], token: int) -> float:
    with torch.no_grad():
        logits = learner.model(input_ids=torch.tensor([context])).logits[0, -1]
    return float(torch.log_softmax(logits, -1)[token])


def test_of_two_actions_the_rewarded_one_gets_likelier_at_every_step(policy: Path, tmp_path: Path) -> None:
    learner = Learner(setup(policy, tmp_path, rate=3e-3))
    rewarded, other, seen = 10, 11, []
    for _ in range(20):
        now = {action: logprob(learner, [5, 6], action) for action in (rewarded, other)}
        seen.append(now[rewarded])
        learner.step(
            batch(
                row([5, 6, rewarded], 2, 1.0, share=0.5, logprob=now[rewarded]),
                row([5, 6, other], 2, -1.0, share=0.5, logprob=now[other]),
            )
        )
    assert seen == sorted(seen)
    assert math.exp(seen[0]) < 0.1
    assert math.exp(seen[-1]) > 0.5


def test_the_step_is_the_same_however_the_batch_is_cut(policy: Path, tmp_path: Path) -> None:
    small, large = (Learner(setup(policy, tmp_path, pack=size)) for size in (64, 4096))
    seen = [learner.step(mixed()) for learner in (small, large)]
    assert seen[0]["passes/step"] > 4 > seen[1]["passes/step"] == 1
    assert seen[0]["gradient_norm/step"] == pytest.approx(seen[1]["gradient_norm/step"], rel=1e-5)
    assert seen[0]["loss/trained"] == pytest.approx(seen[1]["loss/trained"], rel=1e-5)
    assert apart(gradients(small), gradients(large)) < 1e-6
    assert apart(moved(small, weights(small)), moved(small, weights(large))) < 1e-6


def test_no_row_sees_another_of_its_packed_sequence(policy: Path, tmp_path: Path) -> None:
    learner = Learner(setup(policy, tmp_path, rate=0.0))

    def with_own_logprobs(each: Row) -> Row:
        ids = each.ids.tolist()
        alone = [logprob(learner, ids[:i], ids[i]) if each.targets[i] else 0.0 for i in range(len(ids))]
        return dataclasses.replace(each, logprobs=np.array(alone, dtype=np.float32))

    seen = learner.step(batch(*map(with_own_logprobs, mixed().rows)))
    assert seen["passes/step"] == 1
    assert seen["log_rho_max/targets"] < 1e-4


def test_a_step_without_finite_loss_is_skipped_and_counted(policy: Path, tmp_path: Path) -> None:
    learner = Learner(setup(policy, tmp_path))
    before = weights(learner)
    assert learner.step(batch(row([5, 6, 7], 1, math.inf)))["skipped_steps/step"] == 1
    assert learner.step(batch(row([5, 6, 7], 1, 1.0, logprob=math.nan)))["skipped_steps/step"] == 1
    assert apart(before, weights(learner)) == 0
    assert learner.step(mixed())["skipped_steps/step"] == 0
    assert 0 < apart(before, weights(learner)) < 0.1


def test_a_batch_without_targets_changes_nothing(policy: Path, tmp_path: Path) -> None:
    learner = Learner(setup(policy, tmp_path, weight_decay=0.1))
    learner.step(mixed())
    before = weights(learner)
    for empty in (batch(), batch(row([5, 6, 7], 3, 1.0))):
        assert learner.step(empty)["passes/step"] == 0
    assert apart(before, weights(learner)) == 0


def test_the_rate_rises_over_the_warmup_and_matrices_alone_decay(policy: Path, tmp_path: Path) -> None:
    learner = Learner(setup(policy, tmp_path, rate=0.01, warmup=4, weight_decay=0.5))
    before = weights(learner)
    # An advantage of 0 has no gradient: what moves is decay alone, at a quarter of the rate in the first step.
    rates = [learner.step(batch(row([5, 6, 7], 1, 0.0)))["rate/step"] for _ in range(1)]
    factor = 1 - 0.01 / 4 * 0.5
    for name, value in weights(learner).items():
        expected = before[name] * factor if value.ndim > 1 else before[name]
        torch.testing.assert_close(value, expected)
    rates += [learner.step(batch(row([5, 6, 7], 1, 0.0)))["rate/step"] for _ in range(4)]
    assert rates == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01])


def test_the_gradient_is_clipped_by_its_norm(policy: Path, tmp_path: Path) -> None:
    learner = Learner(setup(policy, tmp_path))
    seen = learner.step(batch(row([5, 6, 7], 1, 100.0, logprob=-1.0)))
    assert seen["gradient_norm/step"] > 1
    assert float(torch.cat([g.flatten() for g in gradients(learner).values()]).norm()) == pytest.approx(1.0, rel=1e-3)


def test_bfloat16_computes_nearly_the_same_gradient_over_weights_that_stay_float32(
    policy: Path, tmp_path: Path
) -> None:
    given = setup(policy, tmp_path)
    exact, rough = Learner(given), Learner(given, compute=torch.bfloat16)
    seen = [learner.step(mixed()) for learner in (exact, rough)]
    assert seen[0]["loss/trained"] == pytest.approx(seen[1]["loss/trained"], rel=0.02)
    flat = [torch.cat([g.flatten() for g in gradients(learner).values()]) for learner in (exact, rough)]
    assert 0.99 < float(torch.cosine_similarity(*flat, dim=0)) < 1
    assert {value.dtype for value in rough.model.parameters()} == {torch.float32}
    assert {value.dtype for value in load_file(Path(rough.publish(1).folder) / "model.safetensors").values()} == {
        torch.bfloat16
    }


def test_weights_can_be_offered_instead_of_written(policy: Path, tmp_path: Path) -> None:
    learner = Learner(dataclasses.replace(setup(policy, tmp_path / "weights"), offers=True))
    offered = learner.publish(3)
    assert offered.version == 3 and digest(broadcast.take(offered.folder)) == offered.sha256
    assert not (tmp_path / "weights").exists()
    learner.close()

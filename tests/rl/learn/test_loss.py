"""The policy gradient and what is measured beside it."""

import math
import random
from collections.abc import Sequence

import pytest
import torch
from transformers import LlamaForCausalLM

from rl.learn.batch import make_batch
from rl.learn.loss import Measures, finish, nothing, pg_loss, token_logprobs
from rl.learn.packing import Packed, inputs, lay, pack
from rl.learn.records import Batch
from tests.rl.learn.made import attempt, config
from tests.rl.learn.test_packing import tiny_model


def loss_of(
    logprobs: Sequence[float],
    behaviour: Sequence[float],
    advantages: Sequence[float],
    shares: Sequence[float],
    fresh: Sequence[bool] = (),
    entropies: Sequence[float] = (),
) -> tuple[torch.Tensor, torch.Tensor, Measures]:
    """The leaf that the loss is differentiated by, the loss, and the measures; clip is 2."""
    leaf = torch.tensor(logprobs, requires_grad=True)
    loss, measures = pg_loss(
        leaf,
        torch.tensor(entropies or [0.0] * len(logprobs)),
        behaviour=torch.tensor(behaviour),
        advantages=torch.tensor(advantages),
        shares=torch.tensor(shares),
        fresh=torch.tensor(fresh or [True] * len(logprobs), dtype=torch.bool),
        clip=2.0,
    )
    return leaf, loss, measures


def test_the_loss_and_its_gradient_by_hand() -> None:
    """log rho: 0, ln 4, -ln 2; w: 1, 2 (truncated), 0.5; gradient by log pi: -share * w * A = -1/4, 2/4, -3/8."""
    leaf, loss, _ = loss_of(
        [-1.0, -1.0, -1.0], [-1.0, -1 - math.log(4), -1 + math.log(2)], [1.0, -1.0, 3.0], [0.25] * 3
    )
    loss.backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == pytest.approx([-0.25, 0.5, -0.375])
    assert loss.item() == pytest.approx(0.25 - 0.5 + 0.375)


def test_measures_by_hand() -> None:
    """The same three tokens, of which the first is fresh. Sum of w 3.5, of w^2 5.25."""
    _, _, measures = loss_of(
        [-1.0, -1.0, -1.0],
        [-1.0, -1 - math.log(4), -1 + math.log(2)],
        [1.0, -1.0, 3.0],
        [0.25] * 3,
        fresh=[True, False, False],
        entropies=[0.5, 2.0, 1.5],
    )
    found = finish(measures)
    older = ((4 - 1 - math.log(4)) + (0.5 - 1 + math.log(2))) / 2
    assert found == {
        "targets/trained": 3,
        "loss/trained": pytest.approx(0.125),
        "clipped/targets": pytest.approx(1 / 3),
        "ess/targets": pytest.approx(3.5**2 / 5.25 / 3),
        "log_rho/targets": pytest.approx(math.log(8) / 3),
        "log_rho_max/targets": pytest.approx(math.log(4)),
        "mismatch_kl/targets": pytest.approx(2 / 3 * older),
        "mismatch_kl/fresh": pytest.approx(0.0),
        "mismatch_kl/older": pytest.approx(older),
        "entropy/targets": pytest.approx(4 / 3),
        "entropy/positive": pytest.approx(1.0),
        "entropy/negative": pytest.approx(2.0),
        "push_positive/targets": pytest.approx((1 * (-1 + 0.5) + 3 * (-1 + 1.5)) / 3),
        "push_negative/targets": pytest.approx(-1 * (-1 + 2) / 3),
    }


def test_no_targets_are_a_loss_of_nothing_and_no_metric_is_nan() -> None:
    leaf, loss, measures = loss_of([], [], [], [])
    loss.backward()
    assert float(loss) == 0 and leaf.grad is not None
    assert finish(measures) == {"targets/trained": 0, "loss/trained": 0}


def test_measures_of_parts_add_up_to_those_of_the_whole() -> None:
    rng = random.Random(0)
    columns = [[rng.uniform(-2, 0) for _ in range(9)] for _ in range(2)] + [[rng.gauss(0, 1) for _ in range(9)]]
    whole = loss_of(*columns, [0.1] * 9)[2]
    total = nothing()
    for part in (slice(0, 4), slice(4, 4), slice(4, 9)):
        total += loss_of(*(column[part] for column in columns), ([0.1] * 9)[part])[2]
    assert finish(total) == pytest.approx(finish(whole))


def test_a_ratio_out_of_all_bounds_stays_finite() -> None:
    leaf, loss, measures = loss_of([0.0, -1e4], [-1e4, 0.0], [1.0, 1.0], [0.5, 0.5])
    loss.backward()
    assert leaf.grad is not None and torch.isfinite(leaf.grad).all()
    assert all(math.isfinite(value) for value in finish(measures).values())


def test_numerics_of_equal_weights_do_not_drown() -> None:
    """k3 of a difference of 1e-4 is 5e-9, below what 1 + x can hold in float32."""
    _, _, measures = loss_of([-1e-4], [0.0], [1.0], [1.0])
    assert finish(measures)["mismatch_kl/fresh"] == pytest.approx(5e-9, rel=1e-3)


def test_four_valid_tokens_of_loss_one_weigh_one_whatever_else_was_sampled() -> None:
    """Two completions, 4 valid tokens and 6 that are left out: 4 / 4 and not 4 / 10."""
    members = [attempt("t/0", 1, tokens=4, version=1), attempt("t/1", 0, tokens=6, version=0)]
    batch = make_batch([members], config(on_policy={"level": "turn", "mask_older": True}), 1, 0)
    packed = lay(batch.rows)
    _, loss, _ = loss_of([-1.0] * 4, [-1.0] * 4, packed.advantages.tolist(), packed.shares.tolist())
    assert float(loss) == pytest.approx(1.0)


def test_logprobs_are_after_temperature_as_the_sampler_s() -> None:
    """Logits 0, 0.6 ln 3 at temperature 0.6: probabilities 1/4, 3/4, entropy 0.5623."""
    logits = torch.tensor([[0.0, 0.6 * math.log(3)]] * 2)
    logprobs, entropies = token_logprobs(logits, torch.tensor([0, 1]), 0.6)
    assert logprobs.tolist() == pytest.approx([math.log(1 / 4), math.log(3 / 4)])
    assert entropies.tolist() == pytest.approx([0.5623] * 2, abs=1e-4)
    assert not entropies.requires_grad


def test_an_impossible_token_leaves_the_entropy_finite() -> None:
    _, entropies = token_logprobs(torch.tensor([[0.0, -math.inf]]), torch.tensor([0]), 1.0)
    assert entropies.tolist() == [0.0]


def steps(model: LlamaForCausalLM, packed: Sequence[Packed], temperature: float = 1.0) -> Measures:
    """Gradients of all packed sequences, added up in the model; fresh is version 3."""
    model.zero_grad()
    total = nothing()
    for each in packed:
        at = torch.from_numpy(each.targets)
        hidden = model.model(**inputs(each)).last_hidden_state[0]
        logits = model.lm_head(hidden[at - 1])
        logprobs, entropies = token_logprobs(logits, torch.from_numpy(each.ids)[at], temperature)
        loss, measures = pg_loss(
            logprobs,
            entropies,
            behaviour=torch.from_numpy(each.logprobs),
            advantages=torch.from_numpy(each.advantages),
            shares=torch.from_numpy(each.shares),
            fresh=torch.from_numpy(each.versions) == 3,
            clip=2.0,
        )
        loss.backward()
        total += measures
    return total


def batch_of(per: str) -> Batch:
    groups = [
        [attempt(f"{g}/{i}", worth, turns, version=3 - g) for i, (worth, turns) in enumerate(members)]
        for g, members in enumerate([[(1, 1), (0, 3), (1, 2)], [(0, 2), (1, 4), (-1, 1)]])
    ]
    batch = make_batch(groups, config(loss={"per": per}), 3, 0)
    for row in batch.rows:
        row.logprobs[row.targets] -= math.log(
            64
        )  # Near what the model gives, so that weights are neither 0 nor all truncated.
    return batch


@pytest.mark.parametrize("per", ["token", "trajectory"])
def test_gradients_are_equal_however_the_batch_is_cut(per: str) -> None:
    """One sequence of all rows, sequences of 24 tokens, every row alone; also in another order."""
    model, rows = tiny_model(), batch_of(per).rows
    cuts = [[lay(rows)], pack(rows, 24), pack(rows, 1), [lay(rows[::-1])]]
    assert [len(cut) for cut in cuts] == [1, 4, 6, 1]
    found = []
    for cut in cuts:
        metrics = finish(steps(model, cut))
        found.append((metrics, [p.grad.clone() for p in model.parameters() if p.grad is not None]))
    for metrics, gradients in found[1:]:
        assert metrics == pytest.approx(found[0][0], rel=1e-4, abs=1e-6)
        for ours, whole in zip(gradients, found[0][1], strict=True):
            torch.testing.assert_close(ours, whole, atol=1e-6, rtol=1e-5)
    assert max(float(g.abs().max()) for g in found[0][1]) > 1e-2


def test_a_sampler_of_equal_weights_has_a_ratio_of_one_at_any_temperature() -> None:
    """Behaviour as the sampler gives it, token by token without packing, after temperature."""
    model = tiny_model()
    for temperature in (0.6, 1.0):
        rows = batch_of("token").rows
        for row in rows:
            with torch.no_grad():
                logits = model(torch.from_numpy(row.ids)[None], use_cache=False).logits[0] / temperature
            sampled = logits.log_softmax(-1)[torch.arange(len(row) - 1), torch.from_numpy(row.ids)[1:]]
            row.logprobs[1:][row.targets[1:]] = sampled.numpy()[row.targets[1:]]
        found = finish(steps(model, pack(rows, 40), temperature))
        assert found["log_rho_max/targets"] < 1e-4
        assert found["ess/targets"] == pytest.approx(1.0, abs=1e-6)
        assert found["clipped/targets"] == 0

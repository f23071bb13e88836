"""Rows side by side."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from rl.learn.loss import token_logprobs
from rl.learn.packing import ATTENTION, Packed, PackingError, inputs, lay, pack
from rl.learn.records import Row
from rl.learn.rows import rows_of
from tests.rl.learn.made import turns_of


def tiny_model(attention: str = ATTENTION, vocabulary: int = 64) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.3,
        attn_implementation=attention,
    )
    return LlamaForCausalLM(config)


def row_of(length: int, uid: str = "t/0", share: float = 0.1) -> Row:
    (row,) = rows_of(uid, turns_of([(1, length - 1)]), [1.0], [True], share)
    return row


def logprobs(model: LlamaForCausalLM, packed: Packed, temperature: float = 1.0) -> torch.Tensor:
    logits = model(**inputs(packed)).logits[0]
    at = torch.from_numpy(packed.targets)
    found, _ = token_logprobs(logits[at - 1], torch.from_numpy(packed.ids)[at], temperature)
    return found


@settings(deadline=None)
@given(st.lists(st.integers(2, 30), max_size=20), st.integers(1, 40))
def test_every_row_is_packed_once_and_only_a_long_one_is_over_the_size(lengths: list[int], size: int) -> None:
    packed = pack([row_of(n, f"t/{i}") for i, n in enumerate(lengths)], size)
    found: Counter[int] = Counter()
    for each in packed:
        starts = np.flatnonzero(each.positions == 0)
        parts = np.diff([*starts, len(each)]).tolist()
        found.update(parts)
        assert len(each) <= size or len(parts) == 1
        assert not set(each.targets.tolist()) & set(starts.tolist())
    assert found == Counter(lengths)


def test_rows_go_where_they_first_fit_the_longest_first() -> None:
    """Of 10: 7 + 3, 6 + 4, 2."""
    packed = pack([row_of(n) for n in (2, 3, 4, 6, 7)], 10)
    assert [len(each) for each in packed] == [10, 10, 2]
    assert packed[0].positions.tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 1, 2]


def test_what_belongs_to_a_target_stays_with_it() -> None:
    (first,) = rows_of("t/0", turns_of([(2, 1), (1, 1)], versions=[3, 4]), [0.5, -1.0], [True, True], 0.25)
    (second,) = rows_of("t/1", turns_of([(1, 2)], versions=[5]), [2.0], [True], 0.125)
    packed = lay([first, second])
    assert packed.ids.tolist() == [1, 2, 3, 4, 5, 1, 2, 3]
    assert packed.targets.tolist() == [2, 4, 6, 7]
    assert packed.advantages.tolist() == [0.5, -1.0, 2.0, 2.0]
    assert packed.logprobs.tolist() == pytest.approx([-0.03, -0.05, -0.02, -0.03])
    assert packed.versions.tolist() == [3, 4, 5, 5]
    assert packed.shares.tolist() == [0.25, 0.25, 0.125, 0.125]


def test_no_rows_make_no_sequence_and_an_empty_one_can_be_laid() -> None:
    assert pack([], 8) == []
    assert len(lay([])) == 0 and len(lay([]).targets) == 0


@pytest.mark.parametrize("attention", [ATTENTION, "sdpa"])
def test_packed_rows_do_not_see_each_other(attention: str) -> None:
    """Packed and unpacked log-probabilities agree; a changed token of one row changes nothing in the others."""
    model = tiny_model(attention)
    rng = np.random.default_rng(0)
    rows = [row_of(n) for n in (9, 5, 12)]
    for row in rows:
        row.ids[:] = rng.integers(0, 64, len(row))
    alone = torch.cat([logprobs(tiny_model("sdpa"), lay([row])) for row in rows])
    together = logprobs(model, lay(rows))
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)
    rows[0].ids[3] = (rows[0].ids[3] + 1) % 64
    changed = logprobs(model, lay(rows))
    torch.testing.assert_close(changed[8:], together[8:], atol=1e-6, rtol=0)
    assert (changed[:8] - together[:8]).abs().max() > 1e-3


def test_with_a_cache_packed_rows_would_see_each_other() -> None:
    """Why `inputs` forbids one."""
    model, rows = tiny_model("sdpa"), [row_of(9), row_of(5)]
    given = inputs(lay(rows))
    with torch.no_grad():
        apart, seen = model(**given).logits, model(**{**given, "use_cache": True}).logits
    assert (apart[0, :9] - seen[0, :9]).abs().max() < 1e-5
    assert (apart[0, 9:] - seen[0, 9:]).abs().max() > 1e-2


def test_a_window_that_slides_over_a_row_is_refused() -> None:
    model = tiny_model()
    for layer in model.model.layers:
        layer.self_attn.register_forward_pre_hook(
            lambda _, args, kwargs: (args, {**kwargs, "sliding_window": 8}), with_kwargs=True
        )
    assert len(logprobs(model, lay([row_of(8)]))) == 7
    with pytest.raises(PackingError, match="a row of 9 tokens"):
        logprobs(model, lay([row_of(8), row_of(9)]))

"""Imitation: what is learnt, from which tokens, at which rate."""

import random

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM

from rl.starter.sft import Episode, SftConfig, Trainer, batches, loss_of, rate_at, weights_of, with_echoes


def tiny_model(vocabulary: int = 24) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        tie_word_embeddings=False,
    )
    return LlamaForCausalLM(config)


def copying(rng: random.Random, length: int = 4) -> Episode:
    """Letters, a mark, the same letters again; only the second half is written."""
    letters = [rng.randrange(1, 24) for _ in range(length)]
    return Episode(
        np.array([*letters, 0, *letters], dtype=np.int32), np.array([False] * (length + 1) + [True] * length)
    )


def test_sixty_steps_teach_to_copy_one_of_a_few_words() -> None:
    """Eight words of 4 letters can be told apart, so the loss falls far below ln 23 = 3.1."""
    torch.set_num_threads(1)
    rng = random.Random(0)
    words = [copying(rng) for _ in range(8)]
    trainer = Trainer(tiny_model(), SftConfig(rate=1e-2, warmup=5))
    losses = [trainer.learn(words) for _ in range(60)]
    assert losses[0] == pytest.approx(3.1, abs=0.3)
    assert losses[-1] < 0.5


def test_the_loss_is_that_of_the_written_tokens_whatever_the_padding() -> None:
    model, rng = tiny_model(), random.Random(1)
    short, long = copying(rng, 3), copying(rng, 6)
    total, count = 0.0, 0
    for episode in (short, long):
        ids = torch.from_numpy(episode.ids.astype(np.int64))
        logits = model(ids[None]).logits[0, :-1]
        mask = torch.from_numpy(episode.mask[1:])
        total += float(cross_entropy(logits[mask], ids[1:][mask], reduction="sum"))
        count += int(mask.sum())
    assert float(loss_of(model, [short, long])) == pytest.approx(total / count, rel=1e-5)


def test_a_pass_takes_every_episode_once_within_the_token_budget() -> None:
    rng = random.Random(2)
    episodes = [copying(rng, rng.randrange(2, 40)) for _ in range(1200)]
    made = list(batches(episodes, 500, rng))
    assert sorted(id(e) for batch in made for e in batch) == sorted(map(id, episodes))
    assert max(len(batch) * max(map(len, batch)) for batch in made) <= 500


def test_padding_is_a_small_part_of_the_batches() -> None:
    rng = random.Random(3)
    episodes = [copying(rng, rng.randrange(2, 200)) for _ in range(1000)]
    made = list(batches(episodes, 10_000, rng))
    real = sum(map(len, episodes))
    assert sum(len(batch) * max(map(len, batch)) for batch in made) < 1.2 * real


@pytest.mark.parametrize(("step", "rate"), [(0, 0.1), (4, 0.5), (9, 1.0), (50, 1.0), (79, 1.0), (90, 0.5), (99, 0.05)])
def test_the_rate_rises_stays_and_falls(step: int, rate: float) -> None:
    """Ten steps up, from step 80 of 100 down by a twentieth a step."""
    assert rate_at(step, SftConfig(rate=1.0, warmup=10, decay=20, steps=100)) == pytest.approx(rate)


def test_an_echo_is_a_name_that_stood_before() -> None:
    """Of the tokens 5 6 5 7 6 5 only 5 is a name: its second and third places are echoes."""
    episode = Episode(np.array([5, 6, 5, 7, 6, 5], dtype=np.int32), np.array([False] * 3 + [True] + [False] * 2))
    names = np.zeros(8, dtype=bool)
    names[5] = True
    assert with_echoes(episode, names).mask.tolist() == [False, False, True, True, False, True]


def test_the_token_that_decides_counts_more() -> None:
    """9 opens an answer: the token after it counts 5 times, the shown ones not at all."""
    episode = Episode(np.array([1, 9, 2, 3], dtype=np.int32), np.array([False, True, True, True]))
    assert weights_of(episode, [9], 5.0).tolist() == [0.0, 1.0, 5.0, 1.0]

"""Supervised learning of episodes: the loss is on what a policy writes, never on what it is shown."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import LlamaForCausalLM

from schemas.base import Options


class SftConfig(Options):
    """How to train."""

    rate: float = 1.5e-3
    """Peak learning rate, reached after `warmup` steps; over the last `decay` of them it falls to zero."""
    warmup: int = 50
    decay: int = 700
    steps: int = 2000
    """Steps at most."""
    batch_tokens: int = 5000
    """Tokens of a step, padding included."""
    choice_weight: float = 5.0
    """How many tokens a chosen name counts for: it is one token of twenty, and what an episode is about."""
    weight_decay: float = 0.01
    clip: float = 1.0


@dataclass(frozen=True, slots=True)
class Episode:
    """Token ids of a whole episode, and which of them the policy writes."""

    ids: np.ndarray
    mask: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)


def rate_at(step: int, config: SftConfig) -> float:
    """Learning rate of a step, counted from 0."""
    rise = min(1.0, (step + 1) / max(1, config.warmup))
    fall = min(1.0, (config.steps - step) / config.decay) if config.decay else 1.0
    return config.rate * rise * fall


def batches(episodes: Sequence[Episode], batch_tokens: int, rng: random.Random) -> Iterator[list[Episode]]:
    """One pass over the episodes in batches of similar length, longest batch at most `batch_tokens` with its padding."""
    # Sorting small stretches of a shuffle wastes little on padding and keeps the batches mixed.
    order = rng.sample(range(len(episodes)), len(episodes))
    for start in range(0, len(order), 512):
        stretch = sorted(order[start : start + 512], key=lambda i: len(episodes[i]))
        cuts: list[list[Episode]] = [[]]
        for i in stretch:
            if cuts[-1] and len(episodes[i]) * (len(cuts[-1]) + 1) > batch_tokens:
                cuts.append([])
            cuts[-1].append(episodes[i])
        rng.shuffle(cuts)
        yield from cuts


def echoes(episode: Episode, names: np.ndarray) -> np.ndarray:
    """Which tokens are names (`names` by token id) that stood in the episode before: what can be copied."""
    first = np.unique(episode.ids, return_index=True)[1]
    again = np.ones(len(episode), dtype=bool)
    again[first] = False
    found: np.ndarray = again & names[episode.ids]
    return found


def with_echoes(episode: Episode, names: np.ndarray) -> Episode:
    """The episode with a loss on every copied name, shown ones included.

    Written tokens alone are few, and a small model finds out how to copy only after very many of them.
    """
    return Episode(episode.ids, episode.mask | echoes(episode, names))


def weights_of(episode: Episode, opening: Sequence[int], weight: float) -> np.ndarray:
    """The mask as weights: the token after one of `opening` counts `weight` times."""
    weights = episode.mask.astype(np.float32)
    after = np.flatnonzero(np.isin(episode.ids[:-1], opening)) + 1
    weights[after] *= weight
    return weights


def loss_of(
    model: LlamaForCausalLM, batch: Sequence[Episode], opening: Sequence[int] = (), weight: float = 1.0
) -> torch.Tensor:
    """Mean negative log-likelihood of the tokens in the mask, weighted as `weights_of` says.

    Padding stands on the right, where causal attention never sees it; the head runs only where there is a loss.
    """
    longest = max(map(len, batch))
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    weights = torch.zeros(len(batch), longest)
    for i, episode in enumerate(batch):
        ids[i, : len(episode)] = torch.from_numpy(episode.ids.astype(np.int64))
        weights[i, : len(episode)] = torch.from_numpy(weights_of(episode, opening, weight))
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
    counted = weights[:, 1:] > 0
    losses = cross_entropy(model.lm_head(hidden[:, :-1][counted]), ids[:, 1:][counted], reduction="none")
    shares = weights[:, 1:][counted]
    return (losses * shares).sum() / shares.sum()


class Trainer:
    """A model with its optimiser."""

    def __init__(self, model: LlamaForCausalLM, config: SftConfig, opening: Sequence[int] = ()) -> None:
        """`opening`: ids after which a name is written that decides the episode."""
        self.model, self.config, self.opening = model, config, tuple(opening)
        self.step = 0
        matrices = [p for p in model.parameters() if p.ndim > 1]
        vectors = [p for p in model.parameters() if p.ndim <= 1]
        groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=config.rate, betas=(0.9, 0.98))

    def learn(self, batch: Sequence[Episode]) -> float:
        """One step; gives the loss before it."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(self.step, self.config)
        loss = loss_of(self.model, batch, self.opening, self.config.choice_weight)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimizer.step()
        self.step += 1
        return float(loss)

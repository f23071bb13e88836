"""The policy gradient and what is measured beside it, over M target tokens.

Only targets come in, so no mask can be forgotten in a denominator; how much a target counts is its share, made from the
whole batch before it was cut. Loss and measures of micro-batches and ranks therefore add up to those of the batch.
"""

from dataclasses import dataclass

import torch

LOG_RHO_MOST = 20.0
"""exp(20) is still a float32; the weight is truncated far below it."""

_SUMS = (
    "targets",
    "loss",
    "clipped",
    "weight",
    "weight_squared",
    "log_rho",
    "mismatch_kl",
    "fresh",
    "mismatch_kl_fresh",
    "entropy",
    "positive",
    "entropy_positive",
    "push_positive",
    "negative",
    "entropy_negative",
    "push_negative",
)


@dataclass(frozen=True, slots=True)
class Measures:
    """What `finish` makes metrics of. Over ranks: all-reduce `sums` by sum and `most` by maximum."""

    sums: torch.Tensor
    """float64, one for each of `_SUMS`."""
    most: torch.Tensor
    """float64, scalar: largest |log rho|."""

    def __add__(self, other: "Measures") -> "Measures":
        return Measures(self.sums + other.sums, torch.maximum(self.most, other.most))


def nothing(device: torch.device | str = "cpu") -> Measures:
    """Measures of no tokens: where a sum begins."""
    return Measures(
        torch.zeros(len(_SUMS), dtype=torch.float64, device=device), torch.zeros((), dtype=torch.float64, device=device)
    )


def token_logprobs(logits: torch.Tensor, ids: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(M,) log-probabilities of the sampled ids under softmax(logits / temperature), and (M,) entropies in nats, detached.

    `logits` (M, V) are those which predict the tokens. The sampler's log-probabilities are after temperature too.
    """
    logps = torch.log_softmax(logits.float() / temperature, dim=-1)
    with torch.no_grad():
        entropies = torch.special.entr(logps.exp()).sum(-1)
    return logps.gather(-1, ids[:, None]).squeeze(-1), entropies


def pg_loss(
    logprobs: torch.Tensor,
    entropies: torch.Tensor,
    *,
    behaviour: torch.Tensor,
    advantages: torch.Tensor,
    shares: torch.Tensor,
    fresh: torch.Tensor,
    clip: float,
) -> tuple[torch.Tensor, Measures]:
    """REINFORCE with truncated importance weights, token by token; all tensors (M,).

    L = -sum share * w * A * log pi, with w = min(exp(clamp(log pi - log mu, -20, 20)), clip) held constant (truncated
    importance sampling as in verl's rollout correction; CISPO, arXiv 2506.13585). `behaviour` is log mu. `fresh` marks
    tokens that were sampled by the very weights: what they differ by is numerics alone. No tokens: a loss of 0 with a
    gradient of 0.
    """
    log_rho = (logprobs.detach() - behaviour).clamp(-LOG_RHO_MOST, LOG_RHO_MOST)
    rho = log_rho.exp()
    weights = rho.clamp(max=clip)
    loss = -(shares * weights * advantages * logprobs).sum()
    with torch.no_grad():
        kl = log_rho.double().expm1() - log_rho  # In float32 it would drown: it is about log_rho^2 / 2.
        positive, negative = advantages > 0, advantages < 0
        push = advantages * (logprobs + entropies)
        sums = (
            torch.ones_like(rho),
            -shares * weights * advantages * logprobs,
            rho > clip,
            weights,
            weights**2,
            log_rho.abs(),
            kl,
            fresh,
            kl * fresh,
            entropies,
            positive,
            entropies * positive,
            push * positive,
            negative,
            entropies * negative,
            push * negative,
        )
        measures = Measures(
            torch.stack([each.double().sum() for each in sums]),
            torch.cat([log_rho.abs().double(), log_rho.new_zeros(1, dtype=torch.float64)]).max(),
        )
    return loss, measures


def finish(measures: Measures) -> dict[str, float]:
    """Metrics named `<what>/<population>`; those of an empty population are left out.

    `ess/targets` is (sum w)^2 / sum w^2 as a share of the tokens; `mismatch_kl` the mean of rho - 1 - log rho (k3, Schulman
    2020), 0 for equal distributions; `push_positive` and `push_negative` are the two parts of the mean of A * (log pi + H)
    over all targets: entropy falls by the learning rate times their sum (arXiv 2505.22617).
    """
    of = dict(zip(_SUMS, measures.sums.tolist(), strict=True))
    n, fresh, older = of["targets"], of["fresh"], of["targets"] - of["fresh"]
    found = {"targets/trained": n, "loss/trained": of["loss"]}
    if n:
        found |= {
            "clipped/targets": of["clipped"] / n,
            "ess/targets": of["weight"] ** 2 / of["weight_squared"] / n,
            "log_rho/targets": of["log_rho"] / n,
            "log_rho_max/targets": float(measures.most),
            "mismatch_kl/targets": of["mismatch_kl"] / n,
            "entropy/targets": of["entropy"] / n,
            "push_positive/targets": of["push_positive"] / n,
            "push_negative/targets": of["push_negative"] / n,
        }
    if fresh:
        found["mismatch_kl/fresh"] = of["mismatch_kl_fresh"] / fresh
    if older:
        found["mismatch_kl/older"] = (of["mismatch_kl"] - of["mismatch_kl_fresh"]) / older
    for sign in ("positive", "negative"):
        if of[sign]:
            found[f"entropy/{sign}"] = of[f"entropy_{sign}"] / of[sign]
    return found

"""The simulated worlds are what they say, and the oracle is the best that keeps to the cap."""

import numpy as np
import pytest

from bench.steering import GROUP, OPTIONS, SETTINGS, STRATA, World, play, seen, steered
from pipeline.steering import value
from schemas.measured import AttemptOutcome

SMALL = SETTINGS["small"]


def test_equal_seeds_make_equal_runs() -> None:
    assert play(3, SMALL) == play(3, SMALL) != play(4, SMALL)


def test_the_oracle_keeps_to_the_cap_and_nothing_that_does_yields_more() -> None:
    world = World(0)
    best = world.best(OPTIONS.cap)
    assert best.sum() == pytest.approx(1) and best.max() <= OPTIONS.cap
    for shares in np.random.default_rng(0).dirichlet(np.full(len(STRATA), 0.05), 200):
        if shares.max() <= OPTIONS.cap:
            assert world.yielded(shares) <= world.yielded(best)


def test_what_is_seen_of_a_stratum_is_what_it_is() -> None:
    world, many = World(1), SETTINGS["as it is"]
    counts, failures = seen(world, np.full(len(STRATA), 1 / len(STRATA)), many)
    for i, name in enumerate(STRATA):
        if world.kind[i] == "infeasible":
            assert counts[name].kept == 0
        if world.kind[i] == "wrong gold":
            rejected, kept = counts[name].wrong / counts[name].judged, counts[name].kept / counts[name].generated
            assert 0.2 < rejected < 0.95 and kept > 0  # some slip through
            rows = [row for row in failures if row.stratum == name and row.epoch == 0]
            assert any(row.outcome is AttemptOutcome.WRONG_ENTITY and row.read for row in rows)
    attempts = sum(row.n for row in failures if row.epoch == 0)
    assert attempts == GROUP * sum(each.kept for each in counts.values())


def test_a_token_is_worth_nothing_where_nothing_is_kept_and_rates_rise_where_they_drift() -> None:
    world = World(2)
    assert (world.worth[world.kind == "infeasible"] == 0).all()
    plain = np.flatnonzero(world.kind == "plain")[0]
    rate = (1 - world.alarms[plain]) * world.yields[plain]
    assert world.worth[plain] == pytest.approx(rate * value(world.passes[plain], GROUP) / world.costs[plain])
    before = world.passes.copy()
    world.train()
    assert (world.passes[world.kind == "drifting"] > before[world.kind == "drifting"]).all()
    assert (world.passes[plain] == before[plain]).all()


def test_the_first_round_gives_to_all_alike_and_later_ones_do_not() -> None:
    shares = [given for _, given in steered(0, SMALL, rounds=2)]
    assert shares[0] == pytest.approx(1 / len(STRATA)) and shares[1].max() > 2 / len(STRATA)


def test_steering_gets_near_the_oracle_with_little_data() -> None:
    found = play(0, SMALL)
    assert found.reached[0] == found.alike[0] < 0.5 < 0.8 < found.reached[-1]

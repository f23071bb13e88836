"""What a round says of its strata, and where the next one's budget goes for it."""

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.steering import MEMORY, SEEN, UNITS, next_plan, shown, suspect, value
from schemas.manifest import StratumCounts
from schemas.measured import CONTENT, AttemptOutcome, Failure
from schemas.steering import Line, Plan, SteeringOptions, Tally

OPTIONS = SteeringOptions(draws=50)
RIGHT, WRONG = AttemptOutcome.RIGHT, AttemptOutcome.WRONG_ENTITY
GOOD = StratumCounts(generated=100, kept=50, samples=400, correct=200, judged=100, wrong=0, tokens=10_000)
BARREN = StratumCounts(generated=100, kept=0, judged=100, wrong=0, tokens=10_000)
WRONG_GOLD = StratumCounts(generated=100, kept=60, samples=480, correct=60, judged=100, wrong=30, tokens=1_000)


def failure(
    stratum: str, outcome: AttemptOutcome, n: int, *, version: str = "0", epoch: int = 0, read: int = 0
) -> Failure:
    return Failure.model_validate(
        {
            **dict.fromkeys(("turns", "tokens", "seconds", "unread", "pass_a", "pass_b"), 1.0),
            **{"failed_at": None, "clues_met": None, "calls": {}, "uncalled": {}},
            **{"stratum": stratum, "epoch": epoch, "version": version, "outcome": outcome, "n": n, "read": read},
        }
    )


def even(*names: str, **pins: float) -> Plan:
    lines = [Line(stratum=name, share=1 / len(names), pin=pins.get(name)) for name in names]
    return Plan(family="math", generator="1", release="r", group=8, lines=tuple(lines))


def after(
    before: Plan,
    counts: Mapping[str, StratumCounts],
    failures: Sequence[Failure] = (),
    options: SteeringOptions = OPTIONS,
) -> dict[str, Line]:
    return {line.stratum: line for line in next_plan(before, counts, failures, options).lines}


def letters(n: int) -> str:
    return "abcdefghijklmnop"[:n]


def test_a_task_is_worth_the_chance_that_a_group_does_not_end_alike() -> None:
    assert value(0.5, 2) == 0.5  # 1 - .25 - .25
    assert value(0.0, 8) == value(1.0, 8) == 0
    assert value(0.1, 8) == value(0.9, 8) == pytest.approx(0.5695, abs=1e-4)  # 1 - .9^8 - .1^8


def test_only_attempts_at_tasks_that_were_never_trained_on_count() -> None:
    known = failure("a", RIGHT, 90, version="9", epoch=1)
    assert shown([known]) == {}
    assert shown([failure("a", WRONG, 10), known])["a"].right == Tally(yes=0, no=10)


def test_only_failures_at_what_was_asked_count() -> None:
    every = [failure("a", outcome, 1) for outcome in AttemptOutcome]
    assert shown(every)["a"].right == Tally(yes=1, no=len(CONTENT))  # format, tools, servers and graders left out
    assert shown([failure("a", outcome, 5) for outcome in {*AttemptOutcome} - CONTENT - {RIGHT}]) == {}


def test_the_half_of_the_attempts_by_the_latest_versions_counts() -> None:
    rows = [failure("a", RIGHT, n, version=v, read=1) for v, n in zip("0123", (9, 5, 4, 4), strict=True)]
    rows.append(failure("a", RIGHT, 99, version=""))  # what no version began says nothing
    assert shown(rows)["a"].right == Tally(yes=4 + 4 + 5)  # 8 are less than half of 22
    assert shown(rows)["a"].read == Tally(yes=3)


def test_attempts_of_training_go_before_those_of_curation() -> None:
    assert after(even("a"), {"a": GOOD})["a"].right == Tally(yes=200, no=200)
    assert after(even("a"), {"a": GOOD}, [failure("a", RIGHT, 3)])["a"].right == Tally(yes=3)


def test_evidence_fades_and_attempts_of_earlier_policies_have_a_limit() -> None:
    once = next_plan(even("a"), {"a": GOOD}, [], OPTIONS)
    twice = next_plan(once, {}, [], OPTIONS).lines[0]
    assert twice.kept == Tally(yes=40, no=40)  # .8 of 50 and of 50
    assert twice.tokens == 8_000
    assert twice.right == Tally(yes=MEMORY / 2, no=MEMORY / 2)  # .8 of 400 would be more
    assert twice.was == once.lines[0].share == 1


def test_a_stratum_where_nothing_is_kept_gets_less_than_one_where_half_is() -> None:
    found = after(even(*letters(8)), {name: GOOD if name in "ab" else BARREN for name in letters(8)})
    assert found["a"].share == found["b"].share == 0.3  # the cap
    assert max(found[name].share for name in letters(8)[2:]) < 0.1


def test_a_stratum_with_wrong_golds_gets_the_floor_and_says_so() -> None:
    found = after(even(*letters(8)), {name: WRONG_GOLD if name == "a" else GOOD for name in letters(8)})
    assert found["a"].share == pytest.approx(0.1 / 8, abs=1 / UNITS)  # though it costs a tenth, and more is kept
    assert found["a"].why == "floor only: filters of correctness reject 30% of 100 tasks"
    few = StratumCounts(generated=8, judged=8, wrong=3)
    assert SEEN > 8 and not suspect(after(even("a"), {"a": few})["a"])


def test_a_stratum_that_fails_with_all_its_evidence_read_gets_the_floor_and_says_so() -> None:
    found = after(
        even(*letters(8)), dict.fromkeys(letters(8), GOOD), [failure("a", WRONG, 120, read=100), failure("a", RIGHT, 1)]
    )
    assert found["a"].share == pytest.approx(0.1 / 8, abs=1 / UNITS)
    assert found["a"].why == "floor only: right in 0% of 100 attempts with all the evidence read"


def test_a_hard_stratum_is_not_taken_for_one_with_wrong_golds() -> None:
    for read, right in ((0, 0), (20, 0), (100, 2)):  # the rate may lie above 5 %
        rows = [failure("a", WRONG, 200, read=read), failure("a", RIGHT, 2, read=right)]
        assert not suspect(after(even("a"), {"a": GOOD}, rows)["a"])


def test_a_stratum_that_was_doubted_comes_back_when_it_is_right() -> None:
    doubted = next_plan(even("a", "b"), {}, [failure("a", WRONG, 1000, read=1000)], OPTIONS)
    assert suspect(doubted.lines[0])
    assert not suspect(next_plan(doubted, {}, [failure("a", RIGHT, 10, read=10)], OPTIONS).lines[0])


def test_where_no_stratum_is_trusted_all_are() -> None:
    found = after(even(*letters(4)), dict.fromkeys(letters(4), WRONG_GOLD))
    assert all(line.share > 0.1 and line.why.startswith("floor only") for line in found.values())


@pytest.mark.parametrize("outcome", [RIGHT, WRONG])
def test_a_policy_that_solves_everything_or_nothing_still_gets_a_plan(outcome: AttemptOutcome) -> None:
    names = letters(6)
    found = after(even(*names), dict.fromkeys(names, GOOD), [failure(name, outcome, 500, read=400) for name in names])
    assert math.isclose(sum(line.share for line in found.values()), 1)
    assert all(line.share > 0 for line in found.values())


def test_what_only_failed_attracts_less_than_what_is_sometimes_right() -> None:
    rows = [failure(name, WRONG, 200) for name in letters(6)] + [failure(name, RIGHT, 200) for name in "abcd"]
    found = after(even(*letters(6)), dict.fromkeys(letters(6), GOOD), rows)
    assert max(found["e"].share, found["f"].share) < min(found[name].share for name in "abcd")


def test_pins_and_vetoes_hold_through_rounds() -> None:
    plan = even(*letters(6), a=0.5, b=0.0)
    for _ in range(3):
        plan = next_plan(plan, dict.fromkeys(letters(6), GOOD), [], OPTIONS)
        found = {line.stratum: line for line in plan.lines}
        assert (found["a"].share, found["a"].why) == (0.5, "pinned at 50%")
        assert (found["b"].share, found["b"].why) == (0.0, "vetoed")
        assert sum(found[name].share for name in "cdef") == pytest.approx(0.5)


def test_what_a_share_was_is_of_the_budget_whatever_shares_add_up_to() -> None:
    """200 to 100, of what a veto leaves: two thirds and one."""
    lines = (Line(stratum="a", share=200), Line(stratum="b", share=100), Line(stratum="c", share=100, pin=0))
    drawn = after(even("a").model_copy(update={"lines": lines}), {"a": GOOD, "b": GOOD})
    assert {name: round(line.was, 3) for name, line in drawn.items()} == {"a": 0.667, "b": 0.333, "c": 0}


def test_a_pin_is_stronger_than_doubt() -> None:
    found = after(even(*letters(6), a=0.4), {name: WRONG_GOLD if name == "a" else GOOD for name in letters(6)})
    assert found["a"].share == 0.4


def test_none_gets_more_than_the_cap_or_less_than_the_floor() -> None:
    counts = {name: GOOD if name == "a" else BARREN for name in letters(16)}
    shares = [line.share for line in after(even(*letters(16)), counts).values()]
    assert max(shares) == 0.3
    assert min(shares) >= round(0.1 / 16, 3) - 1 / UNITS


def test_too_few_for_the_cap_share_all_of_it() -> None:
    assert [line.share for line in after(even("a", "b"), {"a": GOOD, "b": BARREN}).values()] == [0.5, 0.5]


def test_levels_step_towards_solving_half_of_all_that_is_measured_and_stay_within_bounds() -> None:
    """Kept tasks are right near half the time whatever the others are: what was too hard and too easy counts."""
    counts = {
        "easy": StratumCounts(generated=60, too_easy=50),
        "hard": StratumCounts(generated=60, too_hard=50),
        "half": StratumCounts(generated=60, too_hard=20, too_easy=20, kept=10, samples=80, correct=40),
        "few": StratumCounts(generated=60, too_easy=11),
    }
    plan = even(*counts)
    found = after(plan, counts)
    moved = {n: round(0.5 * math.tanh(4 * ((n + 6) / (n + 12) - 0.5)), 3) for n in (50, 11)}  # 12 count for the target
    assert {name: line.level for name, line in found.items()} == {
        "easy": moved[50],
        "hard": -moved[50],
        "half": 0,
        "few": moved[11],
    }
    assert found["easy"].why.endswith("harder") and found["hard"].why.endswith("easier")
    for _ in range(4):
        plan = next_plan(plan, counts, [], OPTIONS)
    assert {line.stratum: line.level for line in plan.lines} == {"easy": 1, "hard": -1, "half": 0, "few": 1}


def test_an_unseen_stratum_is_explored() -> None:
    found = after(even(*letters(6), "new"), dict.fromkeys(letters(6), GOOD))
    assert found["new"].share > 0.1 / 7
    assert found["new"].why == "not tried yet"


def test_a_stratum_without_a_line_cannot_be_asked_for() -> None:
    assert list(after(even("c", "a"), {"b": GOOD})) == ["c", "a"]


def test_equal_inputs_give_an_equal_plan_and_another_seed_another() -> None:
    counts = {name: StratumCounts(generated=5 + i, kept=2, samples=16, correct=8) for i, name in enumerate(letters(9))}
    first, again = (next_plan(even(*letters(9)), counts, [], OPTIONS) for _ in range(2))
    assert first == again and first.id == again.id
    assert next_plan(even(*letters(9)), counts, [], SteeringOptions(draws=50, seed=1)) != first


@st.composite
def a_round(draw: st.DrawFn) -> tuple[dict[str, StratumCounts], list[Failure]]:
    names = letters(draw(st.integers(4, 16)))
    counts, failures = {}, []
    for name in names:
        made, n, judged = (draw(st.integers(0, 200)) for _ in range(3))
        kept, correct, wrong = (draw(st.integers(0, most)) for most in (made, n, judged))
        tokens = draw(st.integers(0, 10**9))
        counts[name] = StratumCounts(
            generated=made, kept=kept, samples=n, correct=correct, judged=judged, wrong=wrong, tokens=tokens
        )
        for outcome in draw(st.sets(st.sampled_from(AttemptOutcome))):
            attempts = draw(st.integers(1, 500))
            failures.append(failure(name, outcome, attempts, read=draw(st.integers(0, attempts))))
    return counts, failures


@settings(deadline=None)
@given(a_round(), a_round())
def test_shares_add_up_and_none_is_over_the_cap(
    first: tuple[dict[str, StratumCounts], list[Failure]], second: tuple[dict[str, StratumCounts], list[Failure]]
) -> None:
    plan = even(*letters(16))
    for counts, failures in (first, second):
        plan = next_plan(plan, counts, failures, SteeringOptions(draws=10))
        assert sum(round(line.share * UNITS) for line in plan.lines) == UNITS
        trusted = sum(not suspect(line) for line in plan.lines) or len(plan.lines)
        assert max(line.share for line in plan.lines) <= max(0.3, 1 / trusted) + 1 / UNITS
        assert min(line.share for line in plan.lines) > 0

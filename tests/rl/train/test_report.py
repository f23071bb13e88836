"""The page of a run: nothing in it is obeyed, its counts close, and a run that has just begun has one too."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from rl.train.buffer import Counts
from rl.train.report import endings, markdown, page, scores, summary
from tests.rl.train.accounts import ATTACK, TASK, at_its_end, evaluation, just_begun
from tests.rl.train.accounts import endings as some_endings


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    return tags


def test_what_a_policy_wrote_is_text() -> None:
    html = page(at_its_end(ATTACK + "\ud800"))
    assert "script" not in parsed(html).tags
    assert "&lt;script&gt;alert(1)" in html
    assert not {"\x1b", "\ud800"} & set(html)
    html.encode()


def test_the_page_asks_for_nothing() -> None:
    tags = parsed(page(at_its_end()))
    assert not {"script", "link", "img", "iframe", "object", "image"} & set(tags.tags)
    links = {value for name, value in tags.attributes if name.endswith("href") or name == "src"}
    assert links and all(value and value.startswith("#") for value in links)


def test_curves_are_drawn_in_the_ink_of_the_page_with_text_as_text() -> None:
    html = page(at_its_end())
    figures = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(figures) == 9
    for svg in figures:
        assert "currentColor" in svg and ">step</text>" in svg
    ids = re.findall(r' id="(\w+)"', html)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("steps", [0, 1])
def test_a_run_that_has_just_begun_has_a_page(steps: int) -> None:
    html = page(just_begun(steps))
    assert "Not evaluated yet." in html
    assert ("No step was taken yet." in html) == (steps == 0)
    assert "None yet: they are shown once a checkpoint holds them." in html
    assert summary(just_begun(steps))["after"] is None
    markdown(just_begun(steps))


def test_counts_that_close_are_said_to_and_others_are_not() -> None:
    closed = at_its_end()
    assert closed.counts.missing == 0  # 63 = 55 + (4 + 1) + 3
    lost = replace(closed, counts=Counts(admitted=64, trained=55, dropped={"no_signal": 4, "stale": 1}, suspended=3))
    for show in (page, markdown):
        assert "Admitted = trained + dropped + suspended" in show(closed)
        assert "do not add up: +1 attempts" in show(lost)


def test_before_and_after_stand_side_by_side() -> None:
    rows = {row.what: row for row in scores(evaluation(20), evaluation(58))}
    assert list(rows) == ["all, sampled", "all, greedy", "all, pass@4", f"{TASK.stratum}, sampled"]
    assert rows["all, sampled"].before == "0.200 (0.160 to 0.240)"
    assert rows["all, sampled"].after == "0.580 (0.540 to 0.620)"
    # 38 tasks of 100 went from 0 to 1: 0.38, and the interval is of those differences, not of the two rates.
    assert re.fullmatch(r"\+0\.380 \(\+0\.2\d\d to \+0\.4\d\d\)", rows["all, sampled"].difference)
    assert rows["all, pass@4"].difference == "+0.380"


def test_only_what_was_measured_is_shown() -> None:
    rows = scores(evaluation(20), None)
    assert {row.after for row in rows} == {row.difference for row in rows} == {""}
    assert scores(None, None) == []


def test_endings_are_shares_of_a_stratum_in_each_half_of_the_versions() -> None:
    rows = {row.outcome: row for row in endings(some_endings())}
    # Versions 0..2 are the first half: 0 + 2 + 4 right of 36 and 3 that broke; versions 3 and 4: 6 + 8 of 24.
    assert (rows["right"].n, rows["right"].first, rows["right"].second) == (20, f"{6 / 39:.1%}", f"{14 / 24:.1%}")
    assert (rows["tool_error"].first, rows["tool_error"].second) == (f"{3 / 39:.1%}", "0.0%")
    assert endings([]) == []


def test_what_is_not_the_questions_fault_is_advice() -> None:
    assert "3 tool error: tools are down" in page(at_its_end())
    assert "not at fault" not in page(just_begun(1))


def test_long_texts_are_cut_and_say_so() -> None:
    assert "… 6,000 characters more" in page(at_its_end("x" * 10_000))

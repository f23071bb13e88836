"""What both sides of a comparison are given."""

import json
from pathlib import Path

import pytest

from bench import rows
from bench.stand_in import MOVES, StandIn
from infra.settings import ASSETS
from rl.formats import load_format


def test_rows_have_an_episode_s_lengths_and_begin_with_what_nobody_sampled() -> None:
    batch = rows.batch(16, 100, 8)
    for row in batch.rows:
        assert rows.LEAST <= len(row) <= rows.MOST
        assert not row.targets[: rows.QUESTION[0]].any() and row.targets[-1]
    assert sum(row.share * int(row.targets.sum()) for row in batch.rows) == pytest.approx(1)


def test_written_rows_are_the_same_tokens(tmp_path: Path) -> None:
    batch = rows.batch(8, 100, 8)
    rows.write(batch.rows, tmp_path / "rows.json", group=8, rate=0.1, betas=(0.9, 0.95))
    written = json.loads((tmp_path / "rows.json").read_text("utf-8"))["rows"]
    assert [row["ids"] for row in written] == [row.ids.tolist() for row in batch.rows]
    assert sum(sum(row["targets"]) for row in written) == sum(int(row.targets.sum()) for row in batch.rows)


def test_the_stand_in_makes_the_same_move_for_ids_and_for_messages() -> None:
    format, server = load_format(ASSETS / "starter"), StandIn()
    prompt, messages = list(format.opening("What is there?", ())), [{"role": "user", "content": "What is there?"}]
    for move in MOVES:
        by_ids, seconds = server.reply("/v1/completions", {"prompt": prompt})
        by_chat, same = server.reply("/v1/chat/completions", {"messages": messages})
        assert by_ids["choices"][0]["token_ids"] == by_chat["choices"][0]["token_ids"] == list(format.turn(move))
        assert seconds == same
        prompt += [*format.turn(move), *format.observation(["something"])]
        messages += [{"role": "assistant", "content": ""}, {"role": "tool", "content": "something"}]

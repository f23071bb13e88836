"""Whether a reasoning-gym dataset may be drawn from: its answers and its scorer are put to the test, not trusted."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

JUNK = ("", "0", "-1", "banana", "the answer", "[]", "True", "1e99", "1/2", "None")
"""Answers that are right for no item, or for next to none."""
MOST_GUESSED = 0.05
"""Share of items that the most frequent answer may have."""


_PROBE = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[3]), resource.RLIM_INFINITY))
from reasoning_gym import create_dataset
name, config, items = json.loads(sys.argv[1])
def score(data, answer, item):
    try:
        return data.score_answer(answer, item)
    except Exception:
        return 0.0  # a scorer that breaks pays nothing
for seed in range(items):
    data = create_dataset(name, seed=seed, size=1, **config)
    item = data[0]
    json.dumps(item["metadata"])
    scores = [score(data, a, item) for a in [item["answer"], *json.loads(sys.argv[2])]]
    print(json.dumps([item["question"], item["answer"], scores]))
"""


class Overran(Exception):
    """The dataset did not yield its items in time."""


def probe(name: str, config: Mapping[str, Any], items: int, seconds: int) -> list[tuple[str, str, list[float]]]:
    """(question, answer, scores of the answer and of each of `JUNK`) of `items` seeds, drawn in a process of its own.

    Raises `Overran` after `seconds` of processor time, imports included; the kernel ends the process.
    """
    request = [sys.executable, "-c", _PROBE, json.dumps([name, dict(config), items]), json.dumps(JUNK), str(seconds)]
    done = subprocess.run(request, capture_output=True, text=True, timeout=60 * seconds)
    if done.returncode == -signal.SIGXCPU:
        raise Overran(f"{name}: {items} items took more than {seconds} s of processor time")
    done.check_returncode()
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def objections(name: str, config: Mapping[str, Any], *, items: int = 150, seconds: int = 30) -> list[str]:
    """Why the dataset must not be used; empty for one that passes.

    Two processes must draw the same items; the scorer must pay every answer in full and no junk; no single answer may be
    right for more than `MOST_GUESSED` of the items. That our own solver finds the same answers is tested with the templates.
    """
    try:
        drawn, again = (probe(name, config, items, seconds) for _ in range(2))
    except Overran:
        return ["too slow or hangs"]
    found = []
    if drawn != again:
        found.append("equal seeds gave different items")
    if any(scores[0] != 1.0 for _, _, scores in drawn):
        found.append("the scorer refuses a stored answer")
    for i, junk in enumerate(JUNK, start=1):
        paid = sum(scores[i] == 1.0 and answer != junk for _, answer, scores in drawn)
        if paid > 0:
            found.append(f"the scorer pays {junk!r} for {paid} of {items} items")
    answers = [answer for _, answer, _ in drawn]
    share = max(answers.count(a) for a in set(answers)) / len(answers)
    if share > MOST_GUESSED:
        found.append(f"one answer is right for {share:.0%} of the items")
    return found

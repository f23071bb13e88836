"""The recipe of the starter policy, from nothing to committed weights: `touchstone policy build`."""

import json
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from transformers import PreTrainedTokenizerFast

from pipeline.corpora import World, counterfactual, load_world
from pipeline.corpora.atlas import CORE_TYPES
from pipeline.corpora.pages import say_band
from pipeline.families.hard_search.grammar import FRAMES
from pipeline.families.hard_search.oracle import Flaw, plain
from rl.formats import load_format
from rl.formats.ours import CONTROL_TOKENS
from rl.starter.data import drills, episodes, first_turn, hard_tasks, lookups
from rl.starter.evaluate import Score, pass_at_1
from rl.starter.model import ModelConfig, new_model, save_model
from rl.starter.sft import Episode, SftConfig, Trainer, batches, with_echoes
from rl.starter.tokenizer import SCAFFOLD, build_tokenizer
from schemas.base import Options
from schemas.config import HardSearchConfig
from schemas.episode import Limits
from schemas.task import Task
from schemas.world import Entity

Progress = Callable[[str, float], None]
"""Hears what is being done and which share of the whole build is over."""


POOL = 512
"""Episodes that batches are cut from."""


class BuildConfig(Options):
    """One build. Equal configs make equal episodes; with one thread, equal weights on equal machines."""

    seed: int = Field(default=0, ge=0)
    world: str = "atlas"
    types: tuple[str, ...] = ("country", "US state", "element", "commodity")
    """Answer types of the tasks to imitate."""
    worlds: int = Field(default=6, ge=1)
    """Counterfactual worlds to learn from; one more is kept for validation."""
    tasks: int = Field(default=2500, ge=1)
    """Hard tasks from each world."""
    lookups: int = Field(default=1500, ge=0)
    """First lessons from each world."""
    distractors: int = Field(default=6000, ge=0)
    """Pages outside the core types in each of these worlds."""
    flaws: dict[Flaw, float] = {"wrong_candidate": 0.03, "ignored_clue": 0.03, "unknown_tool": 0.02, "gives_up": 0.02}
    """Shares of scripts that go wrong on purpose, so that the policy is competent but not good."""
    model: ModelConfig = ModelConfig()
    sft: SftConfig = SftConfig()
    drill_steps: int = Field(default=150, ge=0)
    """Steps at the very beginning that only teach what to search for."""
    lesson_steps: int = Field(default=350, ge=0)
    """Steps, drills included, before most episodes are hard ones."""
    lesson_share: tuple[float, float] = (0.5, 0.1)
    """Share of first lessons between drills and then, and after."""
    validation: int = Field(default=64, ge=1)
    """Tasks of the validation world that are attempted at each check."""
    check_every: int = Field(default=100, ge=1)
    goal: float = Field(default=0.35, gt=0, le=1)
    """Validation pass@1 at which training stops."""
    minutes: float = Field(default=110, gt=0)
    """Training stops here at the latest."""
    threads: int = Field(default=1, ge=1)
    """Of the learning, and processes that make episodes. More are faster on an idle machine and slower on a busy one."""
    limits: Limits = Limits(max_turns=6, max_tokens=48, context=1280)
    """What an episode may spend, here and in use."""


def build(config: BuildConfig, out: Path, cache: Path, progress: Progress = lambda what, share: None) -> Score:
    """Make the policy and write it to `out`; gives its best validation score.

    The folder holds the model, its tokenizer, `build.json` (the config, world and covered titles) and `log.jsonl`. They are
    made in a folder beside it, so that a build that stops half-way leaves an older policy whole.
    """
    work = out.with_name(f"{out.name}.making")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    score = _build(config, work, cache, progress)
    out.mkdir(exist_ok=True)
    for file in work.iterdir():
        file.replace(out / file.name)
    work.rmdir()
    return score


def _build(config: BuildConfig, out: Path, cache: Path, progress: Progress) -> Score:
    torch.set_num_threads(config.threads)
    progress("world", 0.0)
    world = load_world(config.world, cache)
    tokenizer = build_tokenizer(
        core_names(world), vocabulary_texts(world), words=1200, pieces=1200, context=config.model.context
    )
    tokenizer.save_pretrained(out)
    about = {
        "config": config.model_dump(mode="json"),
        "world": {"name": world.name, "hash": world.hash},
        "covers": core_titles(world),
    }
    (out / "build.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", "utf-8")
    hard, lessons = gather(config, out, cache, progress)
    held_out = counterfactual(world, config.seed + config.worlds, CORE_TYPES, config.distractors)
    tasks = hard_tasks(held_out, HardSearchConfig(types=config.types), config.seed, config.validation)
    return train(config, out, hard, lessons, held_out, tasks, progress)


def core_names(world: World) -> set[str]:
    """Every spelling of a core entity's name that should be one token."""
    names = set()
    for entity in core(world):
        for name in (plain(entity.name), re.sub(r" \([^)]*\)$", "", entity.title)):
            names |= {name, name[:1].upper() + name[1:]}
    return names


def core(world: World) -> list[Entity]:
    return [world.entities[id] for type in CORE_TYPES for id in world.of_type(type)]


def core_titles(world: World) -> list[str]:
    return sorted(entity.title for entity in core(world))


def vocabulary_texts(world: World) -> list[str]:
    """Pages of the core and some of the rest, and the words that questions are made of."""
    others = random.Random("vocabulary").sample(sorted(world.documents), min(2000, len(world.documents)))
    # Tools join the sentences of a page with spaces, so that is how a word follows another.
    pages = [
        world.documents[id].text.replace("\n", " ") for id in dict.fromkeys([*(e.id for e in core(world)), *others])
    ]
    relations = world.relations.values()
    grammar = [text for r in relations for text in (r.sentence, r.clue, r.inverse_clue, r.shared_clue) if text]
    bands = [say_band(low, high, r.unit) for r in relations for low, high in ((1, 2), (1, None), (None, 2))]
    frames = [text for f in FRAMES for text in (f.opening, f.opening.lower(), f.closing, f" {f.item} the same")]
    types = [f"{type}. a {type} that" for type in world.types]
    asked = [re.sub(r"\{\w+\}|[\[\]|]", " ", text) for text in (*grammar, *frames, *types, *bands)]
    return pages + 50 * [text for words in asked for text in (words, f" {words}")]


def gather(config: BuildConfig, out: Path, cache: Path, progress: Progress) -> tuple[list[Episode], list[Episode]]:
    """Hard episodes and first lessons of every world, made in as many processes as there are threads."""
    hard: list[Episode] = []
    lessons: list[Episode] = []
    # Forked children of a process that runs OpenMP may hang, so they start afresh.
    with ProcessPoolExecutor(config.threads, mp_context=get_context("spawn")) as pool:
        seeds = range(config.seed, config.seed + config.worlds)
        for i, (some, first) in enumerate(pool.map(partial(_one_world, config, out, cache), seeds)):
            hard += some
            lessons += first
            progress("episodes", 0.2 * (i + 1) / config.worlds)
    return hard, lessons


def _one_world(config: BuildConfig, out: Path, cache: Path, seed: int) -> tuple[list[Episode], list[Episode]]:
    world = counterfactual(load_world(config.world, cache), seed, CORE_TYPES, config.distractors)
    format = load_format(out)
    tasks = hard_tasks(world, HardSearchConfig(types=config.types), seed, config.tasks)
    simple = lookups(world, CORE_TYPES, seed, config.lookups)
    hard = episodes(world, tasks, format, config.limits, config.flaws, seed)
    return hard, episodes(world, simple, format, config.limits, {}, seed)


def train(
    config: BuildConfig,
    out: Path,
    hard: Sequence[Episode],
    lessons: Sequence[Episode],
    world: World,
    tasks: Sequence[Task],
    progress: Progress,
) -> Score:
    """Learn until the validation score reaches the goal, the steps or the minutes are over; keep the best weights."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(out)
    model = new_model(config.model, tokenizer, config.seed)
    format, names = load_format(out), name_ids(tokenizer)
    trainer = Trainer(model, config.sft, tokenizer.convert_tokens_to_ids(["<answer>", "<think>"]))
    spelled = [tokenizer.decode([id]) for id in np.flatnonzero(names).tolist()]
    copying = drills(spelled, format, config.seed, 20 * POOL)
    best, started, losses = Score(), time.monotonic(), []
    with (out / "log.jsonl").open("w", encoding="utf-8") as log:
        for batch in draws(config, trainer, hard, lessons, copying, names):
            losses.append(trainer.learn(batch))
            minutes = (time.monotonic() - started) / 60
            over = trainer.step >= config.sft.steps or minutes >= config.minutes
            if trainer.step % config.check_every and not over:
                continue
            # What has not seen whole episodes yet answers nothing, at length.
            attempted = tasks if trainer.step >= config.lesson_steps else []
            score = pass_at_1(model, format, world, attempted, seed=config.seed, limits=config.limits)
            entry: dict[str, object] = {
                "step": trainer.step,
                "minutes": round(minutes, 2),
                "loss": round(sum(losses) / len(losses), 4),
            }
            entry |= {"pass_at_1": round(score.rate, 4), "n": score.n, "stops": dict(score.stops)}
            log.write(json.dumps(entry) + "\n")
            log.flush()
            losses.clear()
            progress(
                f"step {trainer.step}: validation pass@1 {score.rate:.2f}", 0.2 + 0.8 * min(1, minutes / config.minutes)
            )
            if score.rate >= best.rate:
                best = score
                save_model(model, out)
            if over or score.rate >= config.goal:
                break
    return best


def draws(
    config: BuildConfig,
    trainer: Trainer,
    hard: Sequence[Episode],
    lessons: Sequence[Episode],
    simple: Sequence[Episode],
    names: np.ndarray,
) -> Iterator[list[Episode]]:
    """Batches without end, in three stages: what to search for; how to read what is found; then whole hard episodes."""
    rng = random.Random(f"{config.seed}/draws")
    while True:
        if trainer.step < config.drill_steps:
            pool = rng.sample(simple, POOL // 2) + [first_turn(e) for e in rng.choices(hard, k=POOL // 2)]
        else:
            early = trainer.step < config.lesson_steps
            easy = min(len(lessons), int(POOL * config.lesson_share[0 if early else 1]))
            pool = rng.sample(lessons, easy) + rng.choices(hard, k=POOL - easy)
            pool = [with_echoes(e, names) for e in pool] if early else pool
        yield from batches(pool, config.sft.batch_tokens, rng)


def name_ids(tokenizer: PreTrainedTokenizerFast) -> np.ndarray:
    """By token id, whether it is a name."""
    names = np.zeros(len(tokenizer), dtype=bool)
    added = tokenizer.get_added_vocab()
    names[[id for token, id in added.items() if token not in {*SCAFFOLD, *CONTROL_TOKENS}]] = True
    return names

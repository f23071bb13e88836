"""The stages of curation, each a function over one batch of a run that leaves one complete file behind.

generate, screen (filters that need no model), probe (the filter that asks one without help), measure (Pass@N). A stage that
could not run raises; it never leaves an empty file for it.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence

from pipeline import funnel, passn
from pipeline.census import Census
from pipeline.corpora.world import World
from pipeline.families import Generator, Miss
from pipeline.filters import FUNNEL, Filter, Resources
from pipeline.passn import pass_at_n
from pipeline.runs import Run
from pipeline.sampling import Sampler
from pipeline.solver import Solver, SolverDown
from schemas.arrow import ATTEMPTS, CANDIDATES, CERTIFICATES, KEPT
from schemas.certificate import Certificate, Outcome
from schemas.difficulty import Difficulty
from schemas.errors import TouchstoneError
from schemas.row import Candidate, Kept
from schemas.task import Family, Task
from schemas.trajectory import Trajectory

ORDER: dict[Family, tuple[str, ...]] = {
    "hard_search": ("generate", "screen", "probe", "measure"),
    "math": ("generate", "screen", "measure", "probe"),
}
"""The stages of a family, the cheaper rejection first: a name by heart costs less than an episode with tools; a bare answer,
asked ten times and more, costs as much as a worked one and rejects far fewer."""
LEFT_BY = {
    "generate": "candidates",
    "screen": "certificates/screen",
    "probe": "certificates/probe",
    "measure": "certificates/measure",
}
"""The file whose presence says that a stage is done with a batch; written last."""
BROKE = "failed: "
"""How the reason of a miss begins that an error in the generator made."""
WITNESSES = 3
"""Tasks that must all fail before the solver is called down: one or two may have their own reason, and would block a run."""

Advance = Callable[[], object]


def filters(family: Family, stage: str) -> tuple[Filter, ...]:
    """The filters that a stage runs, in the order of the funnel."""
    asks = stage == "probe"
    return tuple(f for f in FUNNEL[family] if inspect.iscoroutinefunction(f.judge) is asks)


def filter_names(family: Family, stage: str) -> list[str]:
    """Whose certificates a stage writes, in order."""
    return [passn.NAME] if stage == "measure" else [f.name for f in filters(family, stage)]


def batches(run: Run) -> range:
    """Every batch the run may have; where it goes on until something is reached, more than it will."""
    return range(-(-_candidates(run) // run.config.batch))


def indices(run: Run, batch: int) -> range:
    """Candidates of a batch: those that are tried again come first, new ones after them."""
    size = run.config.batch
    return range(batch * size, min((batch + 1) * size, _candidates(run)))


def _candidates(run: Run) -> int:
    return len(run.carried) + run.config.most_candidates


def generate(run: Run, batch: int, generator: Generator, advance: Advance = lambda: None) -> None:
    """Make the candidates of a batch. An index on which the generator breaks is a miss with the error's kind as reason."""
    candidates = []
    for index in indices(run, batch):
        candidates.append(_candidate(run, generator, index))
        advance()
    run.write("candidates", batch, CANDIDATES.pack(candidates))


def _candidate(run: Run, generator: Generator, index: int) -> Candidate:
    carried = run.carried
    if index < len(carried):
        return Candidate(index=index, task=carried[index])
    try:
        made = generator(run.config.seed, index - len(carried))
    except TouchstoneError:
        raise
    except Exception as error:
        made = Miss(reason=f"{BROKE}{type(error).__name__}")
    if isinstance(made, Task) and made.task_id in run.places:
        made = Miss(reason="tried_again_already")
    return Candidate(index=index, miss=made.reason) if isinstance(made, Miss) else Candidate(index=index, task=made)


async def screen(
    run: Run, batch: int, world: World | None, candidates: Census, advance: Advance = lambda: None
) -> None:
    """Run every filter that needs no model. `candidates` is `census(run, batch)`; `advance` is called once a task."""
    given = Resources(candidates=candidates, held_out=run.held_out, world=world, triviality=run.config.triviality)
    await _judge(run, batch, "screen", given, advance)


async def probe(run: Run, batch: int, solver: Solver, advance: Advance = lambda: None) -> None:
    """Ask the solver without tools, or without reasoning, what survived the screen."""
    run.use_solver(solver.arm, solver.name)
    sampler = Sampler(solver, run.config.seed, run.config.concurrency)
    given = Resources(closed_book=sampler, triviality=run.config.triviality)
    await _judge(run, batch, "probe", given, advance)


async def measure(run: Run, batch: int, solver: Solver, advance: Advance = lambda: None) -> None:
    """Pass@N of what survived the probe; every attempt is kept."""
    run.use_solver(solver.arm, solver.name)
    config = run.config
    results = await pass_at_n(
        waiting(run, batch, "measure"), solver, config.keep, config.seed, config.concurrency, advance
    )
    _refuse_outage(solver.name, [m.certificate for m in results])
    rows = [Kept(task=m.task, difficulty=(m.difficulty,)) for m in results]
    run.write("attempts", batch, ATTEMPTS.pack(_settled(t) for m in results for t in m.trajectories))
    run.write("measured", batch, KEPT.pack(rows))
    run.write("certificates/measure", batch, CERTIFICATES.pack(m.certificate for m in results))


def _settled(attempt: Trajectory) -> Trajectory:
    """Without log-probabilities: their last bits depend on what else the engine computed, and equal runs make equal releases.

    The journal has them.
    """
    return attempt.model_copy(
        update={"turns": tuple(turn.model_copy(update={"logprobs": ()}) for turn in attempt.turns)}
    )


def _refuse_outage(solver: str, certificates: Sequence[Certificate]) -> None:
    """A batch on which a solver failed altogether is not done: its tasks are not at fault, and a later try may measure them."""
    if len(certificates) >= WITNESSES and all(c.outcome is Outcome.FAILED for c in certificates):
        raise SolverDown(
            f"{solver}: failed on all {len(certificates)} tasks of a batch, the last time with '{certificates[-1].reason}'; "
            "see the server's log and run again, nothing done is repeated"
        )


def pass_by(run: Run, batch: int, stage: str) -> None:
    """Leave behind what a stage leaves of a batch in which no task waits for it."""
    if waiting(run, batch, stage):
        raise ValueError(f"batch {batch}: has tasks that wait for {stage}")
    if stage == "measure":
        run.write("attempts", batch, ATTEMPTS.pack([]))
        run.write("measured", batch, KEPT.pack([]))
    run.write(LEFT_BY[stage], batch, CERTIFICATES.pack([]))


async def _judge(run: Run, batch: int, stage: str, given: Resources, advance: Advance) -> None:
    left = waiting(run, batch, stage)
    written: list[Certificate] = []
    for i, filter in enumerate(filters(run.config.family, stage)):
        certificates = await funnel.run(filter, left, given, advance if i == 0 else lambda: None)
        if given.closed_book is not None:
            _refuse_outage(given.closed_book.solver.name, certificates)
        left = [task for task, c in zip(left, certificates, strict=True) if c.outcome is Outcome.KEEP]
        written += certificates
    run.write(LEFT_BY[stage], batch, CERTIFICATES.pack(written))


def seen_by(run: Run, batch: int) -> range:
    """The batches among which a batch's duplicates are sought: all of a run with a fixed number of candidates.

    Of one that goes on until something is reached later ones do not exist yet when a batch is screened, so the first up to it.
    """
    return range(batch + 1) if run.config.by_batch else batches(run)


def census(run: Run, batch: int) -> Census:
    return Census.of((task for earlier in seen_by(run, batch) for task in tasks(run, earlier)), run.places)


def tasks(run: Run, batch: int) -> list[Task]:
    return [c.task for c in run.read("candidates", batch, CANDIDATES) if c.task is not None]


def waiting(run: Run, batch: int, stage: str) -> list[Task]:
    """Tasks of a batch that passed every filter before `stage`."""
    order = ORDER[run.config.family]
    before = verdicts(run, batch, order[order.index(stage) - 1])
    fallen = {run.place(task) for task, certificate in before if certificate.outcome is not Outcome.KEEP}
    return [task for task in tasks(run, batch) if run.place(task) not in fallen]


def verdicts(run: Run, batch: int, through: str | None = None) -> Iterator[tuple[Task, Certificate]]:
    """Every certificate of a batch with its task, in the order they were written; up to a stage, or to the last.

    Certificates name a task by its id, which two equal candidates share; their order is what tells these apart.
    """
    left = tasks(run, batch)
    order = ORDER[run.config.family]
    for stage in order[1 : order.index(through) + 1 if through else None]:
        written = iter(run.read(LEFT_BY[stage], batch, CERTIFICATES))
        for name in filter_names(run.config.family, stage):
            judged = [(task, next(written)) for task in left]
            if any((c.task_id, c.filter) != (task.task_id, name) for task, c in judged):
                raise TouchstoneError(
                    f"{run.path}: certificates of batch {batch} do not fit its tasks; remove the folder"
                )
            yield from judged
            left = [task for task, c in judged if c.outcome is Outcome.KEEP]


def difficulties(run: Run, batch: int) -> dict[int, tuple[Difficulty, ...]]:
    """What was measured of each task, by its place: without help first, then Pass@N."""
    found: dict[int, tuple[Difficulty, ...]] = {}
    for task, certificate in verdicts(run, batch):
        measured = certificate.detail.get("difficulty")
        if measured is not None and certificate.filter != passn.NAME:
            found[run.place(task)] = (Difficulty.model_validate(measured),)
    for row in run.read("measured", batch, KEPT):
        place = run.place(row.task)
        found[place] = (*found.get(place, ()), *row.difficulty)
    return found

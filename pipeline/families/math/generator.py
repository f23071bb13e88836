"""`Math`: candidate `index` of a run picks a template, draws its parameters and asks in one of its wordings."""

from collections import Counter, defaultdict
from functools import cached_property
from random import Random
from typing import Final

from pipeline.families.base import Miss
from pipeline.families.math.prompts import SHOTS, example_parameters
from pipeline.families.math.templates import TEMPLATES, Parameters, Template
from schemas.answer import AnswerSpec
from schemas.config import MathConfig
from schemas.errors import TouchstoneError
from schemas.query import Problem
from schemas.task import Family, Lineage, Stratum, Task

VERSION = "3"
STRATA_DRAWS, TRIES = 20, 50
"""Of each template, to see which strata it makes; and at most for one candidate."""


class UnknownTemplate(TouchstoneError):
    """A template name that nothing is registered under."""


class Math:
    """Math tasks from the templates that `config` names. Needs no world and asks no model."""

    family: Final[Family] = "math"
    version: Final[str] = VERSION

    def __init__(self, config: MathConfig) -> None:
        for name in config.templates:
            _template(name)
        self.names = config.templates or tuple(name for name, t in TEMPLATES.items() for _ in range(t.share))

    def __call__(self, seed: int, index: int) -> Task:
        # Templates come in turn, in another order each round, so that any stretch of indices holds them evenly.
        turn, place = divmod(index, len(self.names))
        template = TEMPLATES[Random(f"{seed}/{turn}/order").sample(self.names, len(self.names))[place]]
        return self._task(template, _drawn(template, Random(f"{seed}/{index}/draw")), seed, index)

    def at(self, seed: int, index: int, stratum: str, draw: int = 0) -> Task | Miss:
        """Of the templates that have made tasks of the stratum, one as often as it did."""
        rng = Random(f"{seed}/{index}/{stratum}" + (f"/{draw}" if draw else ""))
        shares = self._makes[stratum]
        for _ in range(TRIES):
            template = TEMPLATES[rng.choices(list(shares), list(shares.values()))[0]]
            parameters = _drawn(template, rng)
            if str(self._stratum(template, parameters, template.solve(parameters))) == stratum:
                return self._task(template, parameters, seed, index)
        return Miss(reason=f"off_target: {stratum}")

    def hardness(self, task: Task) -> float:
        """Digits of the question: long numbers are harder to compute with."""
        return sum(character.isdigit() for character in task.question)

    @property
    def strata(self) -> tuple[str, ...]:
        return tuple(sorted(self._makes))

    @cached_property
    def _makes(self) -> dict[str, Counter[str]]:
        """By stratum, the templates that made one in some draws of each, and how often."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for name in self.names:
            template, rng = TEMPLATES[name], Random(f"strata/{name}")
            for _ in range(STRATA_DRAWS):
                parameters = _drawn(template, rng)
                found[str(self._stratum(template, parameters, template.solve(parameters)))][name] += 1
        return dict(found)

    def _stratum(self, template: Template, parameters: Parameters, gold: AnswerSpec) -> Stratum:
        return Stratum(
            family=self.family,
            hops=len(template.work(parameters)),
            tools=(),
            answer=_kind(gold),
            obfuscation=template.group,
        )

    def _task(self, template: Template, parameters: Parameters, seed: int, index: int) -> Task:
        gold = template.solve(parameters)
        knobs: dict[str, object] = {"template": template.name, "templates": list(self.names)}
        if template.source:
            knobs["source"] = template.source
        return Task.create(
            family=self.family,
            stratum=str(self._stratum(template, parameters, gold)),
            question=template.ask(parameters, Random(f"{seed}/{index}/words")),
            answer=gold,
            tools=(),
            constraints=Problem(template=template.name, parameters=parameters),
            near_misses=tuple(template.slips(parameters)),
            lineage=Lineage(generator=self.family, version=self.version, seed=seed, index=index, knobs=knobs),
        )


def _drawn(template: Template, rng: Random) -> Parameters:
    shown = [example_parameters(template, i) for i in range(SHOTS)]
    while (parameters := template.draw(rng)) in shown:
        pass  # a worked example would be answered by copying
    return parameters


def solve(problem: Problem) -> AnswerSpec:
    """The gold of a problem. Raises `UnknownTemplate`."""
    return _template(problem.template).solve(problem.parameters)


def resolve(problem: Problem) -> AnswerSpec:
    """The gold by a second way that shares no step with `solve`. Raises `UnknownTemplate`."""
    return _template(problem.template).resolve(problem.parameters)


def _template(name: str) -> Template:
    if name not in TEMPLATES:
        raise UnknownTemplate(f"template={name}: not registered; one of {', '.join(TEMPLATES)}")
    return TEMPLATES[name]


def _kind(gold: AnswerSpec) -> str:
    return gold.shape if gold.kind == "collection" else gold.kind

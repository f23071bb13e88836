"""`Math`: candidate `index` of a run picks a template, draws its parameters and asks in one of its wordings."""

from random import Random
from typing import Final

from pipeline.families.math.prompts import SHOTS, example_parameters
from pipeline.families.math.templates import TEMPLATES, Template
from schemas.answer import AnswerSpec
from schemas.config import MathConfig
from schemas.errors import TouchstoneError
from schemas.query import Problem
from schemas.task import Family, Lineage, Stratum, Task

VERSION = "3"


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
        rng, shown = Random(f"{seed}/{index}/draw"), [example_parameters(template, i) for i in range(SHOTS)]
        while (parameters := template.draw(rng)) in shown:
            pass  # a worked example would be answered by copying
        gold = template.solve(parameters)
        hops = len(template.work(parameters))
        knobs: dict[str, object] = {"template": template.name, "templates": list(self.names)}
        if template.source:
            knobs["source"] = template.source
        return Task.create(
            family=self.family,
            stratum=str(
                Stratum(family=self.family, hops=hops, tools=(), answer=_kind(gold), obfuscation=template.group)
            ),
            question=template.ask(parameters, Random(f"{seed}/{index}/words")),
            answer=gold,
            tools=(),
            constraints=Problem(template=template.name, parameters=parameters),
            near_misses=tuple(template.slips(parameters)),
            lineage=Lineage(generator=self.family, version=self.version, seed=seed, index=index, knobs=knobs),
        )


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

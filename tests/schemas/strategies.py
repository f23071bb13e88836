"""Any record, for property tests."""

import json

from hypothesis import strategies as st

from schemas.answer import (
    CodeAnswer,
    CollectionAnswer,
    DateAnswer,
    EntityAnswer,
    ExpressionAnswer,
    NumberAnswer,
    TextAnswer,
)
from schemas.certificate import Certificate, Outcome
from schemas.difficulty import Difficulty
from schemas.measured import AttemptOutcome, Failure, Metric
from schemas.query import Band, Clue, EntityRef, Problem, Query
from schemas.row import Candidate, Kept, Rejected
from schemas.task import Evidence, Lineage, NearMiss, Task
from schemas.trajectory import StopReason, ToolCall, Trajectory, Turn

text = st.text(max_size=12)
whole = st.integers(min_value=-(2**63), max_value=2**63 - 1)
count = st.integers(min_value=0, max_value=2**63 - 1)
real = st.floats(allow_nan=False, allow_infinity=False)
json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | real | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
json_object = st.dictionaries(text, json_value, max_size=3)


def several(strategy):
    return st.lists(strategy, max_size=3).map(tuple)


answers = st.one_of(
    st.builds(EntityAnswer, entity=text, name=text.filter(str.strip), aliases=several(text)),
    st.builds(
        NumberAnswer,
        value=st.fractions().map(str),
        tolerance=st.none() | st.floats(0, 0.9),
        unit=st.none() | text,
    ),
    st.dates().map(lambda day: DateAnswer(value=day.isoformat())),
    st.builds(ExpressionAnswer, value=text, variables=several(text)),
    st.builds(CollectionAnswer, shape=st.sampled_from(["set", "multiset", "tuple"]), items=several(text)),
    st.builds(
        CollectionAnswer,
        shape=st.just("interval"),
        items=st.tuples(text, text),
        closed=st.tuples(st.booleans(), st.booleans()),
    ),
    st.builds(
        CodeAnswer, entry=st.just("f"), cases=json_value.map(lambda value: ((json.dumps([value]), json.dumps(value)),))
    ),
    st.builds(TextAnswer, value=text.filter(lambda value: any(c.isalnum() for c in value))),
)
queries = st.recursive(
    st.builds(Query, type=text, clues=st.just(())),
    lambda inner: st.builds(
        Query,
        type=text,
        clues=several(
            st.builds(
                Clue,
                relation=text,
                inverse=st.booleans(),
                target=inner | st.builds(EntityRef, entity=text) | st.builds(Band, low=real, high=st.none()),
            )
        ),
    ),
    max_leaves=4,
)
tasks = st.builds(
    Task.create,
    family=st.sampled_from(["hard_search", "math"]),
    stratum=text,
    question=text,
    answer=answers,
    tools=several(text),
    evidence=several(st.builds(Evidence, document=text, document_hash=text, start=whole, end=whole, quote=text)),
    constraints=queries | st.builds(Problem, template=text, parameters=json_object),
    near_misses=several(st.builds(NearMiss, answer=text, why=text)),
    lineage=st.builds(
        Lineage,
        generator=text,
        version=text,
        seed=whole,
        index=whole,
        knobs=json_object,
        world=text,
        calls=several(text),
    ),
)
difficulties = st.builds(
    Difficulty,
    solver=text,
    arm=text,
    n=st.integers(10, 64),
    correct=st.integers(0, 5),
    truncated=st.integers(0, 5),
    undecided=count,
    prior_a=real,
    prior_b=real,
    seeds=several(whole),
)
kept = st.builds(Kept, task=tasks, difficulty=several(difficulties))
rejected = st.builds(
    Rejected, task=tasks, difficulty=several(difficulties), filter=text, outcome=st.sampled_from(Outcome), reason=text
)
candidates = st.builds(Candidate, index=count, task=tasks) | st.builds(Candidate, index=count, miss=st.text(min_size=1))
certificates = st.builds(
    Certificate,
    task_id=text,
    filter=text,
    version=text,
    outcome=st.sampled_from(Outcome),
    reason=text,
    score=st.none() | real,
    interval=st.none() | st.tuples(real, real),
    n=whole,
    cost=whole,
    calls=several(text),
    detail=json_object,
)
turns = st.integers(0, 3).flatmap(
    lambda n: st.builds(
        Turn,
        prompt_tokens=whole,
        output_ids=st.tuples(*[whole] * n),
        logprobs=st.tuples(*[real] * n),
        text=text,
        version=text,
        call_id=text,
        tool_calls=several(st.builds(ToolCall, name=text, arguments=json_object)),
        observation=st.none() | text,
    )
)
attempts = st.builds(
    Trajectory,
    task_id=text,
    solver=text,
    arm=text,
    seed=whole,
    turns=several(turns),
    stop=st.sampled_from(StopReason),
    answer=st.none() | text,
    error=text,
    tokens=whole,
)
metrics = st.builds(Metric, step=count, seconds=real, name=text, population=text, value=st.none() | real)
failures = st.builds(
    Failure,
    stratum=text,
    epoch=count,
    version=text,
    outcome=st.sampled_from(AttemptOutcome),
    n=count.filter(bool),
    read=count,
    **dict.fromkeys(("turns", "tokens", "seconds", "unread", "pass_a", "pass_b"), real),
    **dict.fromkeys(("failed_at", "clues_met"), st.none() | real),
    **dict.fromkeys(("calls", "uncalled"), st.dictionaries(text, real, max_size=2)),
)

"""The curate flow on a real Prefect server, its batches on threads and on Ray; what is asked is a student over real HTTP."""

import json
import random
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from flows import curate as flow
from flows.work import task_runner
from infra.settings import Settings
from pipeline.families import generator
from pipeline.release import load
from schemas.answer import canonical_answer
from schemas.config import CurateConfig, SequentialTest, Served
from tests.infra.servers import ModelServer, running, send

pytestmark = pytest.mark.prefect

BASE = CurateConfig(family="math", candidates=24, seed=3, batch=12, triviality=SequentialTest(limit=12))


class Student(ModelServer):
    """Right half of the time when it may work the problem out, by a coin of the seed; lost when it may not."""

    def __init__(self, config: CurateConfig) -> None:
        super().__init__()
        make = generator(config, None)
        tasks = [task for i in range(config.candidates or 0) if hasattr(task := make(config.seed, i), "answer")]
        self.golds = {task.question: canonical_answer(task.answer) for task in tasks}

    def get(self, http: BaseHTTPRequestHandler) -> None:
        send(http, 200, json.dumps({"data": [{"id": "student", "owned_by": "a test"}]}).encode())

    def reply(self, http: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        may_work = "step by step" in request["messages"][0]["content"]
        knows = may_work and random.Random(f"{request['seed']}").random() < 0.5
        said = f"Answer: {self.golds[request['messages'][-1]['content']]}" if knows else f"lost, {request['seed']}"
        choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 3}
        send(http, 200, json.dumps({"choices": [choice], "usage": usage}).encode())


@pytest.fixture(scope="module")
def student() -> Iterator[tuple[Student, CurateConfig]]:
    server = Student(BASE)
    with running(server) as url:
        served = Served(model="student", url=url)
        yield server, BASE.model_copy(update={"solver": served, "closed_book": served})


@pytest.mark.parametrize("ray", [None, "local"], ids=["threads", "ray"])
async def test_a_flow_publishes_a_release_with_its_report_and_its_event(
    ray: str | None,
    student: tuple[Student, CurateConfig],
    prefect_server: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[dict[str, Any]] = []
    settings = Settings(store=str(tmp_path), cache=tmp_path, ray=ray)
    monkeypatch.setattr(flow, "SETTINGS", settings)
    monkeypatch.setattr(flow, "emit_event", lambda event, **rest: events.append({"event": event, **rest}))
    version = await flow.curate.with_options(task_runner=task_runner(settings))(student[1], origin="a test")
    release = load(tmp_path / "releases" / version)
    kept = sum(release.splits("math").values())
    assert 0 < kept <= 24
    assert sum(split.num_rows for split in load_dataset(release.url, "math", cache_dir=str(tmp_path)).values()) == kept
    assert release.manifest.funnel["math"][0].seen == 24
    assert [(e["event"], e["payload"]["version"], e["resource"]["touchstone.origin"]) for e in events] == [
        ("touchstone.release.published", version, "a test")
    ]
    assert await report_of("curate-math-report") == flow.page(release.manifest, release.url)


async def report_of(key: str) -> str:
    from prefect.artifacts import Artifact

    artifact = await Artifact.aget(key=key)
    assert artifact is not None
    return str(artifact.data)


async def test_a_second_run_of_the_flow_asks_nothing_again(
    student: tuple[Student, CurateConfig], prefect_server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(store=str(tmp_path), cache=tmp_path)
    monkeypatch.setattr(flow, "SETTINGS", settings)
    first = await flow.curate(student[1])
    asked = student[0].asked.total()
    assert await flow.curate(student[1]) == first
    assert student[0].asked.total() == asked

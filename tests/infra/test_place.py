"""Parts in this process and as actors of a real local Ray."""

import asyncio
import os
import pickle
import signal
from collections.abc import Iterator

import psutil
import pytest

from infra.place import Here, PartDied, Place, PlaceError, RayPlace, place_at
from infra.sandbox import SessionLost
from schemas.errors import TouchstoneError


class Counter:
    """Counts, meets others, and can be broken."""

    def __init__(self, start: int = 0) -> None:
        if start < 0:
            raise TouchstoneError(f"start={start}: is below 0; begin at 0")
        self.count = start
        self.waiting = self.most = self.cancelled = 0
        self.all_here = asyncio.Event()

    async def add(self, by: int = 1) -> int:
        self.count += by
        return self.count

    async def meet(self, others: int) -> int:
        """Returns once so many calls run at the same time."""
        self.waiting += 1
        if self.waiting == others:
            self.all_here.set()
        await self.all_here.wait()
        return self.waiting

    async def hang(self) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def cancellations(self) -> int:
        return self.cancelled

    async def lose(self) -> None:
        raise SessionLost("s1", "call 2 ended otherwise")

    async def stumble(self) -> None:
        raise ZeroDivisionError("by design")

    async def pid(self) -> int:
        return os.getpid()


class Relay:
    """Has a part of its own to talk to."""

    def __init__(self, to: Counter) -> None:
        self.to = to

    async def add(self) -> int:
        return await self.to.add(10)


@pytest.fixture(scope="module")
def ray_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Started from a folder that has none of our packages."""
    here = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    try:
        place = RayPlace("local")
    finally:
        os.chdir(here)
    yield place
    place.close()


@pytest.fixture(params=["here", "ray"])
def place(request: pytest.FixtureRequest) -> Place:
    return Here() if request.param == "here" else request.getfixturevalue("ray_place")


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(PlaceError, match=r"^ray=nowhere: cannot be used \(Invalid address format"):
        place_at("nowhere")


async def test_a_part_keeps_its_state_between_calls(place: Place) -> None:
    part, other = place.start(Counter, 5), place.start(Counter)
    assert [await part.add(), await part.add(by=2), await other.add()] == [6, 8, 1]


async def test_a_hundred_calls_run_at_once(place: Place) -> None:
    part = place.start(Counter)
    assert await asyncio.gather(*(part.meet(100) for _ in range(100))) == [100] * 100


async def test_an_error_of_ours_arrives_as_it_was_raised(place: Place) -> None:
    part = place.start(Counter)
    with pytest.raises(SessionLost, match=r"^session s1: call 2 ended otherwise; call again") as caught:
        await part.lose()
    assert type(caught.value) is SessionLost
    with pytest.raises(ZeroDivisionError, match="by design"):
        await part.stumble()
    assert await part.add() == 1


async def test_a_part_that_cannot_be_made_says_why(place: Place) -> None:
    with pytest.raises(TouchstoneError, match=r"^start=-1: is below 0; begin at 0$"):
        await place.start(Counter, -1).add()


async def test_a_part_is_an_argument_of_another(place: Place) -> None:
    counter = place.start(Counter)
    relay = place.start(Relay, counter)
    assert [await relay.add(), await counter.add()] == [10, 11]


async def test_a_caller_that_gives_up_ends_its_call(place: Place) -> None:
    part = place.start(Counter)
    await part.add()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await part.hang()
    async with asyncio.timeout(20):
        while not await part.cancellations():
            await asyncio.sleep(0.05)


async def test_a_part_that_died_is_named_and_others_live_on(ray_place: Place) -> None:
    part, other = ray_place.start(Counter), ray_place.start(Counter)
    hanging = asyncio.ensure_future(part.hang())
    pid = await part.pid()
    assert pid != os.getpid()
    os.kill(pid, signal.SIGKILL)
    for broken in (hanging, part.add()):
        with pytest.raises(PartDied, match=r"^Counter-\d+: the process it ran in is gone") as caught:
            await broken
        assert caught.value.part.startswith("Counter-")
    assert await other.add() == 1
    ray_place.stop(part)


async def test_a_process_is_called_after_its_part(ray_place: Place) -> None:
    pid = await ray_place.start(Counter).pid()
    assert psutil.Process(pid).cmdline()[0].startswith("ray::Counter")


async def test_a_stopped_part_is_gone_with_its_process(ray_place: Place) -> None:
    part = ray_place.start(Counter)
    pid = await part.pid()
    ray_place.stop(part)
    with pytest.raises(PartDied):
        await part.add()
    async with asyncio.timeout(20):
        while os.path.exists(f"/proc/{pid}"):
            await asyncio.sleep(0.05)


async def test_a_place_on_a_ray_that_runs_already_leaves_it_running(ray_place: Place) -> None:
    kept = ray_place.start(Counter)
    await kept.add()
    second = place_at("auto")
    await second.start(Counter).add()
    second.close()
    assert await kept.add() == 2


def test_every_error_of_ours_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(PartDied("worker-3", "killed")))
    assert (type(error), str(error), error.part) == (PartDied, str(PartDied("worker-3", "killed")), "worker-3")


def test_parts_are_here_where_no_ray_is_named() -> None:
    assert isinstance(place_at(None), Here)

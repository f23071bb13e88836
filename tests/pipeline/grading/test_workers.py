"""What a model writes can neither stall the grader nor take its memory."""

import asyncio
import multiprocessing
import os
import resource
import signal
import threading
import time

import psutil  # type: ignore[import-untyped]
import pytest

from pipeline.grading import Verdict, agrade, close, grade
from pipeline.grading.workers import Undecided, Workers
from schemas.answer import NumberAnswer

TOWER = r"\boxed{\dfrac{7^{\left(7^{\left(7^{\left(7^7\right)}\right)} - 3\right)} - 7}{18}}"
SEVEN = NumberAnswer(value="7")


def test_a_power_tower_is_undecided_and_the_next_hundred_grades_are_fast() -> None:
    grade(SEVEN, r"\sqrt{49}")
    before = psutil.Process().memory_info().rss
    verdict = grade(SEVEN, TOWER)
    assert verdict.verdict is Verdict.UNDECIDED and verdict.reason in {"timeout", "memory", "crashed"}
    worked = time.process_time()
    assert all(grade(SEVEN, r"\sqrt{49}").verdict is Verdict.RIGHT for _ in range(100))
    assert time.process_time() - worked < 2
    assert psutil.Process().memory_info().rss - before < 50 * 2**20


def test_no_zombie_and_no_descriptor_is_left_after_overruns() -> None:
    pool = Workers(size=1)
    me = psutil.Process()
    pool.compare(["1"], ["1"])
    open_before = me.num_fds()
    for _ in range(5):
        with pytest.raises(Undecided, match=r"timeout|crashed|memory"):
            pool.compare(["1"], ["9^(9^(9^9))"], seconds=0.3)
        pool.compare(["1"], ["1"])
    assert me.num_fds() < open_before + 5  # other tests' threads may still close or open one
    pids = pool.pids()
    pool.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert [c for c in me.children() if c.status() == psutil.STATUS_ZOMBIE] == []


def test_memory_is_bounded_in_the_worker() -> None:
    pool = Workers(size=1, memory=32 * 2**20)
    with pytest.raises(Undecided, match=r"memory|crashed"):
        pool.compare(["1"], ["2^(2^30)"], seconds=60)  # 2^30 bits are 128 MiB
    assert pool.pids() == []


def test_a_nested_logarithm_ends_and_never_grades_right() -> None:
    text = r"\ln(\ln(\ln(\ln(\ln(" + "+".join(f"{k}^{k}" for k in range(2, 99)) + ")))))"
    assert grade(SEVEN, rf"\boxed{{{text}}}").verdict is not Verdict.RIGHT


def test_a_verdict_does_not_hang_on_how_long_the_machine_withholds_its_processor() -> None:
    pool = Workers(size=1)
    pool.compare(["1"], ["1"])
    worker = psutil.Process(pool.pids()[0])
    worker.suspend()
    threading.Timer(2.0, worker.resume).start()
    assert pool.compare(["2"], ["sqrt(4)"], seconds=0.1) == [["equal"]]
    pool.close()


def test_a_worker_that_never_gets_the_processor_is_given_up_without_a_verdict() -> None:
    pool = Workers(size=1)
    pool.compare(["1"], ["1"])
    psutil.Process(pool.pids()[0]).suspend()
    pool.patience = 0.2
    with pytest.raises(Undecided, match="stalled"):
        pool.compare(["2"], ["sqrt(4)"])
    assert pool.pids() == []


def test_a_request_leaves_none_of_its_limit_to_the_next() -> None:
    pool = Workers(size=1)
    pool.compare(["1"], ["1"])
    assert psutil.Process(pool.pids()[0]).rlimit(psutil.RLIMIT_CPU)[0] == resource.RLIM_INFINITY
    pool.close()


def test_a_used_worker_that_dies_on_a_request_is_replaced_and_the_fresh_one_is_asked() -> None:
    pool = Workers(size=1)
    pool.compare(["1"], ["1"])
    worker = psutil.Process(pool.pids()[0])
    worker.suspend()
    threading.Timer(0.5, worker.send_signal, [signal.SIGKILL]).start()
    assert pool.compare(["2"], ["sqrt(4)"]) == [["equal"]]
    assert pool.pids() not in ([], [worker.pid])
    pool.close()


def test_workers_serve_a_process_with_more_open_files_than_select_can_count() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2000, hard), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        pool = Workers(size=1)
        assert pool.compare(["2"], ["sqrt(4)"]) == [["equal"]]
        pool.close()
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_worker_killed_from_outside_is_replaced() -> None:
    pool = Workers(size=1)
    pool.compare(["1"], ["1"])
    psutil.Process(pool.pids()[0]).kill()
    psutil.wait_procs([psutil.Process(p) for p in pool.pids()], timeout=5)
    assert pool.compare(["2"], ["sqrt(4)"]) == [["equal"]]
    pool.close()


async def test_a_hanging_grade_does_not_hold_up_the_event_loop() -> None:
    slow = asyncio.create_task(agrade(SEVEN, TOWER))
    lags = []
    for _ in range(20):
        asked = time.monotonic()
        await asyncio.sleep(0.01)
        lags.append(time.monotonic() - asked)
    assert max(lags) < 0.5
    assert (await slow).verdict is Verdict.UNDECIDED


def _grade_in_fork(queue: "multiprocessing.Queue[str]") -> None:
    queue.put(grade(SEVEN, r"\sqrt{49}").verdict)
    close()


def test_a_forked_child_starts_its_own_workers() -> None:
    grade(SEVEN, r"\sqrt{49}")
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[str] = context.Queue()
    child = context.Process(target=_grade_in_fork, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == Verdict.RIGHT
    child.join()
    assert grade(SEVEN, r"\sqrt{49}").verdict is Verdict.RIGHT


def test_plain_numbers_need_no_process() -> None:
    close()
    children = {p.pid for p in psutil.Process(os.getpid()).children()}
    assert grade(SEVEN, "<answer>7</answer>").verdict is Verdict.RIGHT
    assert grade(SEVEN, "I am not sure about this one").verdict is Verdict.WRONG
    assert {p.pid for p in psutil.Process(os.getpid()).children()} == children

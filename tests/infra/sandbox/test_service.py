"""State that lives, dies and comes back; limits; and what a call leaves behind."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest

from bench.escapes import Baseline
from infra.sandbox import Closed, Isolation, JournalFull, Limits, Outcome, Sandbox, SessionLost, cut
from infra.sandbox.cases import run_cases
from infra.sandbox.watch import Usage, states, usage


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox() as made:
        yield made


async def test_a_variable_lives_across_calls_and_in_its_session_only(sandbox: Sandbox) -> None:
    assert (await sandbox.run("a", "x = 41")).output == ""
    assert (await sandbox.run("a", "x + 1")).output == "42\n"
    assert "NameError" in (await sandbox.run("b", "x")).output


async def test_output_is_in_order_and_ends_with_the_last_expression(sandbox: Sandbox) -> None:
    ran = await sandbox.run("a", "import sys\nprint(1)\nprint(2, file=sys.stderr)\nprint(3)\n'four'")
    assert ran.output == "1\n2\n3\n'four'\n"
    assert (await sandbox.run("a", "print('x', end='')\nNone")).output == "x"


async def test_an_error_shows_the_user_s_frames_alone_and_keeps_what_was_done(sandbox: Sandbox) -> None:
    ran = await sandbox.run("a", "x = 1\ndef f():\n    return 1 / 0\nf()")
    assert ran.outcome is Outcome.ERROR
    assert ran.output.splitlines() == [
        "Traceback (most recent call last):",
        '  File "<cell 1>", line 4, in <module>',
        "    f()",
        '  File "<cell 1>", line 3, in f',
        "    return 1 / 0",
        "           ~~^~~",
        "ZeroDivisionError: division by zero",
    ]
    assert (await sandbox.run("a", "x")).output == "1\n"


async def test_code_that_is_no_python_is_an_error_of_one_cell(sandbox: Sandbox) -> None:
    ran = await sandbox.run("a", "x = (")
    assert ran.output == "  File \"<cell 1>\", line 1\n    x = (\n        ^\nSyntaxError: '(' was never closed\n"
    assert "surrogates not allowed" in (await sandbox.run("a", "'\ud800'")).output
    assert (await sandbox.run("a", "1")).output == "1\n"


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("import os; x = 2; os._exit(3)", Outcome.CRASHED),
        ("x = 2\nwhile True: pass", Outcome.TIMEOUT),
        ("x = 2; y = bytearray(8 << 30)", Outcome.MEMORY_LIMIT),
        ("import os; x = 2\nwhile True: os.fork()", Outcome.PROCESS_LIMIT),
        ("x = 2\nwhile True: print('x' * 1000)", Outcome.OUTPUT_LIMIT),
    ],
)
async def test_a_call_that_goes_too_far_changes_nothing(sandbox: Sandbox, code: str, outcome: Outcome) -> None:
    await sandbox.run("a", "import random\nx = 1\ndrawn = random.random()\nprint('said once')")
    drawn = (await sandbox.run("a", "drawn")).output
    assert (await sandbox.run("a", code, 0.7)).outcome is outcome
    ran = await sandbox.run("a", "print(x)\ndrawn")
    assert (ran.output, ran.restored) == (f"1\n{drawn}", True)


async def test_a_cell_that_raised_is_part_of_what_is_restored(sandbox: Sandbox) -> None:
    await sandbox.run("a", "xs = [1]\nxs.append(2)\n1 / 0")
    await sandbox.run("a", "import os; os._exit(0)")
    assert (await sandbox.run("a", "xs")).output == "[1, 2]\n"


async def test_random_numbers_hashes_and_numpy_are_the_same_when_made_again(sandbox: Sandbox) -> None:
    code = "import numpy, random\nv = random.random(), hash('x'), numpy.random.rand(), numpy.random.default_rng().random()\nv"
    first = (await sandbox.run("a", code)).output
    await sandbox.run("a", "import os; os._exit(0)")
    assert (await sandbox.run("a", "v")).output == first
    assert (await sandbox.run("b", code)).output == first  # as a session that moves to another sandbox has another name


async def test_a_session_that_does_not_repeat_itself_is_lost_and_said_so(sandbox: Sandbox) -> None:
    await sandbox.run("a", "import os\nif os.urandom(8) < bytes(8): 1 / 0\nopen('/tmp/once', 'x').close()")
    await sandbox.run("a", "import uuid\nassert uuid.uuid4().int % 2 == 0 or True\nname = f'/tmp/{uuid.uuid4()}'")
    await sandbox.run("a", "import time\nif time.clock_gettime(time.CLOCK_REALTIME) > %f: 1 / 0" % (time.time() + 0.5))
    await asyncio.sleep(0.6)
    await sandbox.run("a", "os._exit(0)")
    with pytest.raises(SessionLost, match="call 3 of 3, made again, ended as error and not as ok"):
        await sandbox.run("a", "1")
    await sandbox.end("a")
    assert (await sandbox.run("a", "1")).output == "1\n"


async def test_a_replay_that_takes_too_long_is_said() -> None:
    async with Sandbox(limits=Limits(replay=0.4), pool=1) as sandbox:
        await sandbox.run("a", "import time; time.sleep(0.3)")
        await sandbox.run("a", "time.sleep(0.3)")
        await sandbox.run("a", "import os; os._exit(0)")
        with pytest.raises(SessionLost, match=r"ended as timeout and not as ok, with 0.4 s for all"):
            await sandbox.run("a", "1")


async def test_an_idle_session_is_evicted_and_comes_back() -> None:
    async with Sandbox(pool=0, live=2) as sandbox:
        for name in "abcd":
            await sandbox.run(name, f"x = {name!r}")
        assert len(sandbox.boxes) == 2
        assert await sandbox.run("d", "x") == await sandbox.run("d", "x")
        ran = await sandbox.run("a", "x")
        assert (ran.output, ran.restored) == ("'a'\n", True)


async def test_a_journal_is_bounded() -> None:
    async with Sandbox(limits=Limits(journal=100), pool=0) as sandbox:
        await sandbox.run("a", "x = 1" + " " * 80)
        with pytest.raises(JournalFull, match=r"journal=100: .*; end the session, or raise the limit"):
            await sandbox.run("a", "x = 2" + " " * 80)
        assert (await sandbox.run("a", "x")).output == "1\n"


async def test_calls_of_a_session_wait_for_each_other_and_other_sessions_do_not(sandbox: Sandbox) -> None:
    await sandbox.run("a", "import time; n = 0")
    await sandbox.run("b", "import time")
    ended: list[str] = []

    async def call(session: str, code: str) -> None:
        await sandbox.run(session, code)
        ended.append(session)

    slow = [call("a", "m = n; time.sleep(0.4); n = m + 1") for _ in range(3)]
    await asyncio.gather(*slow, call("b", "time.sleep(0.4)"))
    assert ended.index("b") < 2
    assert (await sandbox.run("a", "n")).output == "3\n"


async def test_a_call_that_is_cancelled_changed_nothing(sandbox: Sandbox) -> None:
    await sandbox.run("a", "import time; x = 1")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.2):
            await sandbox.run("a", "x = 2; time.sleep(9)")
    assert (await sandbox.run("a", "x")).output == "1\n"


async def test_ending_a_session_ends_its_call_and_forgets_it(sandbox: Sandbox) -> None:
    await sandbox.run("a", "x = 1")
    running = asyncio.create_task(sandbox.run("a", "import time; time.sleep(9)"))
    await asyncio.sleep(0.1)
    await sandbox.end("a")
    assert (await running).outcome is Outcome.CRASHED
    assert "NameError" in (await sandbox.run("a", "x")).output
    await sandbox.end("never opened")


async def test_long_output_keeps_its_start_and_its_end(sandbox: Sandbox) -> None:
    output = (await sandbox.run("a", "print('a' * 50_000); print('z' * 50_000)")).output
    assert output.startswith("aaa") and output.endswith("zzz\n") and "[80,002 characters cut]" in output
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefghij", 6) == "abcd\n[4 characters cut]\nij"


async def test_no_process_outlives_its_call_and_no_thread_runs_between_calls(sandbox: Sandbox) -> None:
    await sandbox.run("a", "import os, threading\nn = 0\ndef count():\n    global n\n    while True: n += 1")
    await sandbox.run("a", "if os.fork() == 0:\n    while True: pass")
    assert (await sandbox.run("a", "[p for p in os.listdir('/proc') if p.isdigit()]")).output == "['1', '2']\n"
    first = (await sandbox.run("a", "threading.Thread(target=count, daemon=True).start(); n")).output
    await asyncio.sleep(0.3)
    second = (await sandbox.run("a", "n")).output
    assert int(second) - int(first) < 2_000_000  # 0.3 s of it would be ten million


async def test_a_hundred_time_outs_leave_nothing_behind() -> None:
    before = Baseline.now()
    async with Sandbox(pool=2) as sandbox:
        for part in range(5):
            calls = [sandbox.run(f"{part}/{i}", "import time; time.sleep(30)", 0.02) for i in range(20)]
            assert {ran.outcome for ran in await asyncio.gather(*calls)} == {Outcome.TIMEOUT}
            assert before.leaks().zombies == 0
    leaks = before.leaks()
    assert (leaks.zombies, leaks.processes, leaks.descriptors) == (0, 0, 0)


async def test_a_loop_in_c_ends_at_its_deadline(sandbox: Sandbox) -> None:
    await sandbox.run("a", "import signal; signal.alarm(1)")
    started = time.monotonic()
    assert (await sandbox.run("b", "sum(range(10**10))", 0.5)).outcome is Outcome.TIMEOUT
    assert time.monotonic() - started < 5  # it would take minutes


async def test_a_fork_bomb_is_ended_and_fifteen_neighbours_pass() -> None:
    pooled = "from concurrent.futures import ThreadPoolExecutor as P\nwith P(4) as p: print(sum(p.map(int, '1234')))"
    async with Sandbox(pool=4) as sandbox:
        bomb = asyncio.create_task(sandbox.run("bomb", "import os\nwhile True: os.fork()", 8))
        neighbours = await asyncio.gather(*(sandbox.run(f"n{i}", pooled) for i in range(15)))
        assert (await bomb).outcome is Outcome.PROCESS_LIMIT
    assert {(ran.output, ran.outcome) for ran in neighbours} == {("10\n", Outcome.OK)}


async def test_numpy_works_where_memory_is_short_and_threads_are_many() -> None:
    async with Sandbox(limits=Limits(memory=256 * 2**20), pool=1) as sandbox:
        assert (await sandbox.run("a", "import numpy as np; int(np.arange(3).sum())")).output == "3\n"
        grown = await sandbox.run("a", "x = []\nwhile True: x.append(b'x' * 20_000_000)")
        assert grown.outcome is Outcome.MEMORY_LIMIT
        assert (await sandbox.run("a", "int((np.ones((200, 200)) @ np.ones((200, 200)))[0, 0])")).output == "200\n"
        assert (await sandbox.run("a", "import os; os.environ['OPENBLAS_NUM_THREADS']")).output == "'1'\n"


FORGE = """
import json, os, sys
def forge():
    frame = sys._getframe()
    while 'request' not in frame.f_locals: frame = frame.f_back
    body = json.dumps({'status': 'ok', 'nonce': frame.f_locals['request']['nonce']}).encode()
    os.write(frame.f_locals['channel'], len(body).to_bytes(4, 'big') + body)
forge()
for _ in range(4):
    if os.fork() == 0:
        while True: pass
while True: pass
"""


async def test_nothing_runs_after_an_answer_that_the_code_forged(sandbox: Sandbox) -> None:
    assert (await sandbox.run("a", FORGE)).outcome is Outcome.OK
    (box,) = [box for box in sandbox.boxes if len(usage(box._roots).pids) > 1 and box is sandbox._sessions["a"].box]
    running = [pid for pid in usage(box._roots).pids[1:] if states(pid) - set("TZ")]
    assert running == []
    assert (await sandbox.run("b", "1")).output == "1\n"


SOCKETS = """
import os, socket, time
def fill():
    kept = []
    try:
        while True:
            kept += socket.socketpair()
            for one in kept[-2:]:
                one.setblocking(False)
                try:
                    while True: one.send(b'x' * 100_000)
                except BlockingIOError: pass
    except OSError: pass
    return kept
for _ in range(20):
    if os.fork() == 0:
        kept = fill(); time.sleep(100)
time.sleep(8)
"""


async def test_what_the_kernel_holds_for_a_session_counts_into_its_memory() -> None:
    async with Sandbox(limits=Limits(memory=192 * 2**20), pool=1) as sandbox:
        assert (await sandbox.run("a", SOCKETS)).outcome is Outcome.MEMORY_LIMIT
        many = "import time\nfor i in range(30): open(f'/tmp/{i}', 'wb').write(bytes(2**20))\nx = bytearray(170 << 20)"
        assert (await sandbox.run("a", many + "\ntime.sleep(3)")).outcome is Outcome.MEMORY_LIMIT


async def test_a_session_whose_memory_is_slow_to_look_at_does_not_stall_the_others(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def slow(_: Usage) -> int:
        looks.append(time.monotonic())
        time.sleep(0.3)
        return 0

    monkeypatch.setattr(Usage, "memory", slow)
    await sandbox.run("b", "1")
    shared = "import os, time\nx = b'x' * (300 << 20)\nfor _ in range(2):\n    if os.fork() == 0: time.sleep(9)\ntime.sleep(2)"
    running = asyncio.create_task(sandbox.run("a", shared))
    worst = 0.0
    while not running.done():
        before = time.monotonic()
        await asyncio.sleep(0.01)
        worst = max(worst, time.monotonic() - before)
    assert worst < 0.25 and 1 <= len(looks) <= 2


async def test_a_call_that_gives_another_output_when_made_again_is_named(sandbox: Sandbox) -> None:
    await sandbox.run("a", "1")
    await sandbox.run("a", "import uuid; uuid.uuid4()")
    await sandbox.run("a", "import os; os._exit(0)")
    assert (await sandbox.run("a", "2")).changed == (2,)
    assert (await sandbox.run("a", "2")).changed == ()


@pytest.mark.parametrize(
    "code", ["import os; os.close(1)", "import os; os.close(2)", "import sys; sys.stdout.write = None"]
)
async def test_code_that_closes_its_output_crashed_and_the_next_call_works(sandbox: Sandbox, code: str) -> None:
    await sandbox.run("a", "x = 1")
    assert (await sandbox.run("a", code)).outcome is Outcome.CRASHED
    ran = await sandbox.run("a", "x")
    assert (ran.output, ran.outcome) == ("1\n", Outcome.OK)


CASES = """
import os
def f(way):
    found = sorted(os.listdir('/tmp'))
    os.makedirs('/tmp/a/b', exist_ok=True)
    open('/tmp/a/b/c', 'w').close()
    os.chmod('/tmp/a', 0)
    if way == 'memory':
        open('/proc/%d/mem' % os.getppid(), 'rb')
    return found + os.listdir('/proc/self/fd')[:0]
"""


async def test_a_case_finds_no_file_of_an_earlier_one_and_no_memory_of_its_parent(sandbox: Sandbox) -> None:
    async with contextlib.aclosing(
        run_cases(
            sandbox,
            CASES,
            "f",
            [
                [
                    "",
                ],
                [
                    "",
                ],
                ["memory"],
            ],
            5,
        )
    ) as answers:
        given = [(answer.outcome, answer.value) async for answer in answers]
    assert given == [(Outcome.OK, "[]"), (Outcome.OK, "[]"), (Outcome.ERROR, None)]


async def test_what_ran_while_a_sandbox_closed_is_ended() -> None:
    before = Baseline.now()
    async with Sandbox() as sandbox:
        running = asyncio.create_task(sandbox.run("a", "import time; time.sleep(30)"))
        await asyncio.sleep(0.2)
    assert (await running).outcome is Outcome.CRASHED
    assert before.leaks().processes == before.leaks().descriptors == 0
    with pytest.raises(Closed, match="sandbox: it is closed"):
        await sandbox.run("a", "1")


async def test_without_isolation_the_same_sessions_run_where_that_was_asked_for() -> None:
    async with Sandbox(Isolation.NONE, pool=0) as sandbox:
        await sandbox.run("a", "import os, time; x = 1")
        assert (await sandbox.run("a", "time.sleep(9)", 0.2)).outcome is Outcome.TIMEOUT
        assert (await sandbox.run("a", "x")).output == "1\n"

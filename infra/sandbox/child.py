"""The process that runs a session's code. It stands alone: nothing of the project exists where it runs.

Frames are a length of four bytes and a JSON object. Each request carries a nonce that its answer repeats. Everything here can be
reached and changed by the code it runs, so nothing that is said here is believed: the other side reads every byte as a stranger's.
"""

from __future__ import annotations

import _ast
import builtins
import json
import os
import resource
import sys
from io import BufferedWriter, FileIO, TextIOWrapper

TYPE_CHECKING = False
if TYPE_CHECKING:  # imports are most of the time that a session takes to start
    from typing import Any

SIGKILL = 9
DUMPABLE = 4
SPARE = 64 * 2**20
"""Address space that is kept back to report that there is no more."""
STARTS = {"os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen", "_thread.start_new_thread"}
ANSWER = 2**20 - 1024
"""Bytes of a result that can be sent."""


def send(channel: int, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    data = memoryview(len(body).to_bytes(4, "big") + body)
    while data:
        data = data[os.write(channel, data) :]


def receive(channel: int) -> Any:
    return json.loads(_exactly(channel, int.from_bytes(_exactly(channel, 4), "big")))


def _exactly(channel: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(channel, min(size, 2**20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class Seeding:
    """Seeds a module of random numbers when it is imported, so that a session made again draws the same."""

    def __init__(self) -> None:
        self.seed = 0
        self.finder: Any = sys.meta_path[-1]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in ("random", "numpy.random"):
            return None
        spec = self.finder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def seeded(module: Any) -> None:
                load(module)
                module.seed(self.seed)
                if name == "numpy.random":
                    import random

                    module.bit_generator.randbits = random.Random(self.seed).getrandbits  # of generators without a seed

            spec.loader.exec_module = seeded
        return spec


class Session:
    def __init__(self, channel: int) -> None:
        self.channel = channel
        self.started = False
        self.cells: dict[str, str] = {}
        self.module = type(sys)("__main__")
        self.module.__builtins__ = builtins  # type: ignore[attr-defined]
        self.out = _stdout()
        sys.addaudithook(self._notice)

    def _notice(self, event: str, _args: Any) -> None:
        if event in STARTS:
            self.started = True

    def run(self, code: str) -> str:
        """`ok`, `error`, `memory_limit` or `process_limit`."""
        name = f"<cell {len(self.cells) + 1}>"
        self.cells[name] = code
        self.started = False
        try:
            tree: Any = compile(code, name, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
            last = tree.body[-1] if tree.body else None
            if isinstance(last, _ast.Expr):
                tree.body.pop()
            space = self.module.__dict__
            exec(compile(tree, name, "exec", dont_inherit=True), space)  # noqa: S102
            if isinstance(last, _ast.Expr):
                value = eval(compile(_ast.Expression(last.value), name, "eval", dont_inherit=True), space)  # noqa: S307
                if value is not None:
                    self.out.write(repr(value) + "\n")
            return "ok"
        except BaseException as error:
            return self.failure(error)

    def failure(self, error: BaseException) -> str:
        try:
            return self._told(error)
        except BaseException:  # an error that cannot be shown, or no descriptor left to read sources with
            self.out.write(f"{type(error).__name__}\n")
            return "memory_limit" if isinstance(error, MemoryError) else "error"

    def _told(self, error: BaseException) -> str:
        if isinstance(error, MemoryError):
            return "memory_limit"
        full = isinstance(error, BlockingIOError) or str(error) == "can't start new thread"
        if self.started and full:
            return "process_limit"
        import linecache
        import traceback

        for name, code in self.cells.items():
            linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
            frames = frames.tb_next
        self.out.write("".join(traceback.format_exception(type(error), error, frames)))
        return "error"

    def case(self, code: str, entry: str, arguments: list[Any]) -> dict[str, Any]:
        """What `entry(*arguments)` gives in a process of its own, which is the first to see the code."""
        inside, outside = os.pipe()
        set_readable = _of_libc("prctl")
        set_readable(DUMPABLE, 0)  # the next cases see no memory of this process
        pid = os.fork()
        if pid == 0:
            set_readable(DUMPABLE, 1)
            try:
                answer = self._called(code, entry, arguments)
            except BaseException as error:
                answer = {"status": self.failure(error)}
            send(outside, answer)
            os._exit(0)
        os.close(outside)
        try:
            answer = receive(inside)
        except (EOFError, ValueError):
            answer = {"status": "crashed"}
        finally:
            os.close(inside)
            os.kill(pid, SIGKILL)
            os.waitpid(pid, 0)
        return answer if isinstance(answer, dict) else {"status": "crashed"}

    def _called(self, code: str, entry: str, arguments: list[Any]) -> dict[str, Any]:
        self.module.__name__ = "candidate"
        sys.modules["candidate"] = self.module
        self.cells["<candidate>"] = code
        try:
            compiled = compile(code, "<candidate>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):  # the latter of what is no text: half a surrogate pair
            return {"status": "syntax_error"}
        exec(compiled, self.module.__dict__)  # noqa: S102
        function = self.module.__dict__.get(entry)
        if not callable(function):
            return {"status": "no_function"}
        value = function(*arguments)
        try:
            if is_plain(value):
                text = json.dumps(value)
                if len(text) <= ANSWER:
                    return {"status": "ok", "value": text}
        except (RecursionError, ValueError):  # endless nesting, or an integer too long to write
            pass
        return {"status": "not_plain"}


def is_plain(value: Any) -> bool:
    """Nothing but JSON's own types, and tuples: by the exact type, as a subclass may answer anything when it is compared."""
    kind = type(value)
    if kind in (list, tuple):
        return all(is_plain(item) for item in value)
    if kind is dict:
        return all(type(key) is str and is_plain(item) for key, item in value.items())
    return value is None or kind in (bool, int, float, str)


def _same(descriptor: int, other: int) -> bool:
    try:
        return os.path.sameopenfile(descriptor, other)
    except OSError:
        return False


def _stdout() -> TextIOWrapper:
    """Both of the code's streams, so that what it writes stays in order."""
    raw = BufferedWriter(FileIO(1, "w", closefd=False))
    return TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def _of_libc(name: str) -> Any:
    import ctypes

    return getattr(ctypes.CDLL(None), name)


def _empty(folder: str) -> None:
    """Raises `OSError` where the code left something that cannot be removed."""
    folders = [folder]
    for name in folders:
        os.chmod(name, 0o700)
        with os.scandir(name) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    os.unlink(entry.path)
    for name in reversed(folders[1:]):
        os.rmdir(name)


def _end_others() -> None:
    """No process outlives the call that started it."""
    try:
        os.kill(-1, SIGKILL)
    except ProcessLookupError:
        return
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass


def main() -> None:
    config = json.loads(sys.argv[1])
    os.closerange(3, 4096)  # whatever was inherited
    channel = os.dup(0)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    spare = os.dup(1)
    own = os.getpid()
    # In a namespace of its own this process is the first child of the first; elsewhere "all others" are other people's.
    alone = config["alone"] and (own, os.getppid()) == (2, 1)
    for name, value in config["limits"].items():
        soft = value - SPARE if name == "RLIMIT_AS" else value
        for process in (own, 1) if alone else (own,):  # the first process has the code's rights, so it gets its limits
            resource.prlimit(process, getattr(resource, name), (soft, value))
    sys.path.append(config["path"])
    sys.argv = [""]
    seeding = Seeding()
    sys.meta_path.insert(0, seeding)
    session = Session(channel)
    sys.modules["__main__"] = session.module
    send(channel, {"ready": True})
    while True:
        try:
            request = receive(channel)
        except EOFError:
            os._exit(0)
        seeding.seed = request.get("seed", seeding.seed)
        sys.stdout = sys.stderr = session.out
        if "entry" in request:
            answer = session.case(request["code"], request["entry"], request["arguments"])
        else:
            answer = {"status": session.run(request["code"])}
        if os.getpid() != own:
            os._exit(0)
        if session.out.__dict__ or not _same(1, spare) or not _same(2, spare):  # nothing that it says would arrive
            os._exit(1)
        if answer["status"] == "memory_limit":
            resource.setrlimit(resource.RLIMIT_AS, (config["limits"]["RLIMIT_AS"],) * 2)
        try:
            session.out.flush()
        except (OSError, ValueError):  # the code closed it, or what lies below
            os.dup2(spare, 1)
            os.dup2(spare, 2)
            session.out = _stdout()
        if alone:
            _end_others()
            if "entry" in request:
                _empty(os.environ["HOME"])
        send(channel, {**answer, "nonce": request["nonce"]})


if __name__ == "__main__":
    main()

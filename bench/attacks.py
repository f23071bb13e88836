"""Attacks on the sandbox, as data: a line of code, and what must end it where something must.

An attack prints `won` where it reached something: a word that is made up anew for each drill and stands in no source.
"""

from dataclasses import dataclass

from infra.sandbox import Outcome


@dataclass(frozen=True, slots=True)
class Attack:
    """`@NAME@` in the code stands for a fact of the host. `ends`: what must end it, where something must."""

    name: str
    code: str
    ends: Outcome | None = None


def _call(name: str, x86: int, arm: int, arguments: str = "0, 0, 0, 0, 0") -> Attack:
    return Attack(name, f"r = libc.syscall({x86} if x86 else {arm}, {arguments})\nif r >= 0: print(won)")


OVERWRITE = """
for line in open("/proc/1/maps"):
    span, access, *_ = line.split()
    low, high = (int(end, 16) for end in span.split("-"))
    if "x" in access and "[" not in line:
        os.pwrite(os.open("/proc/1/mem", os.O_RDWR), b"\\xcc" * (high - low), low)
os.fork() or os._exit(0)
time.sleep(0.2)
"""
DENYING = """
x = []
while True:
    try: x.append(b"x" * 20_000_000)
    except MemoryError: pass
"""
PRELUDE = """
import ctypes, glob, mmap, os, platform, resource, signal, socket, stat, subprocess, sys, threading, time
libc, x86, won = ctypes.CDLL(None, use_errno=True), platform.machine() == "x86_64", bytes.fromhex("@WON@").decode()
def reads(*paths):
    for path in paths:
        try: print(path, os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 10_000))
        except OSError as error: print(path, error)
def check(*found):
    if any(found): print(won, found)
def opened(n):
    try: return os.readlink(f"/proc/self/fd/{n}")
    except OSError: return ""
def channel(): return next(n for n in range(3, 64) if opened(n).startswith("socket:"))
def frame(body): os.write(channel(), len(body).to_bytes(4, "big") + body)
TOP = set(os.listdir("/")) - {"proc", "python", "packages"}
def writes(*paths):
    for path in paths:
        try:
            with open(path, "ab") as file: file.write(b"1")
        except OSError as error: print(path, error)
        else: print(won, path)
"""

NETWORK = (
    Attack("tcp to the host's loopback", "print(socket.create_connection(('127.0.0.1', @PORT@), 1).recv(99))"),
    Attack("tcp to the host by ipv6", "print(socket.create_connection(('::ffff:127.0.0.1', @PORT@), 1).recv(99))"),
    Attack("tcp to the host's name", "print(socket.create_connection(('@HOST@', @PORT@), 1).recv(99))"),
    Attack("udp to the host's loopback", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', @PORT@))"),
    Attack("abstract unix socket", "s = socket.socket(socket.AF_UNIX); s.connect('\\0@ABSTRACT@'); print(s.recv(99))"),
    Attack("unix socket by path", "s = socket.socket(socket.AF_UNIX); s.connect('@SOCKET@'); print(s.recv(99))"),
    Attack("socket of the virtual machine", "s = socket.socket(40, socket.SOCK_STREAM); print(won)"),
    Attack("packet socket", "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print(won)"),
    Attack("raw socket", "s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print(won)"),
    Attack("name look-up", "print(socket.getaddrinfo('example.com', 80), won)"),
    Attack("interfaces", "check(*[n for n in open('/proc/net/dev').readlines()[2:] if 'lo:' not in n])"),
)  # fmt: skip

SECRETS = (
    Attack("own environment", "print(dict(os.environ))"),
    Attack("environment of the parent", "reads(f'/proc/{os.getppid()}/environ', '/proc/self/environ')"),
    Attack("environment of the host's processes", "reads('/proc/@VICTIM@/environ', '/proc/@PID@/environ', '/proc/@PID@/maps')"),
    Attack("environment and memory of all", "reads(*glob.glob('/proc/[0-9]*/environ'), *glob.glob('/proc/[0-9]*/cmdline'))"),
    Attack("host file", "reads('@FILE@')"),
    Attack("host file by a symlink", "os.symlink('@FILE@', '/tmp/link'); reads('/tmp/link')"),
    Attack("host file by dots", "reads('/tmp/../../../..@FILE@', '/proc/self/cwd/../../..@FILE@', '//@FILE@')"),
    Attack("host file by roots of others", "reads(*[f'/proc/{p}/root@FILE@' for p in (1, 2, 'self', @PID@)], '/oldroot@FILE@')"),
    Attack("host file by a hard link", "os.link('@FILE@', '/tmp/hard'); reads('/tmp/hard')"),
    _call("host file by its handle", 304, 265, "-100, ctypes.create_string_buffer(64), 0, 0, 0"),
    Attack("hidden tests", "check(*[p for t in TOP for p in glob.glob(f'/{t}/**/*test*', recursive=True)])"),
    Attack("the project's tree", "check(*[p for t in TOP for p in glob.glob(f'/{t}/**/pipeline', recursive=True)])"),
    Attack("what is not Python's", "check(*[t for t in TOP if t not in ('tmp', 'dev', 'lib', 'lib64', 'usr', 'child.py')])"),
    Attack("credentials", "reads('~/.aws/credentials', '/root/.ssh/id_rsa'); check(os.listdir(os.path.expanduser('~')))"),
    Attack("password file", "reads('/etc/shadow', '/etc/passwd'); import pwd; print(pwd.getpwuid(0), won)"),
    Attack("inherited descriptors", "check(*[o for o in map(opened, range(64)) if o[:5] not in ('', '/dev/', 'pipe:', 'socke')])"),
    Attack("descriptors of the first process", "reads(*glob.glob('/proc/1/fd/*'))"),
    Attack("kernel memory", "check(*[p for p in ('/proc/kcore', '/proc/kmsg', '/dev/mem', '/dev/kmsg') if os.access(p, os.R_OK)])"),
    Attack("name of the host", "check(socket.gethostname() == '@HOST@', open('/proc/sys/kernel/hostname').read() == '@HOST@\\n')"),
    Attack("files of a neighbour", "print(os.listdir('/tmp')); reads('@SECRET@')"),
    _call("session keyring", 250, 219, "0, -3, 0, 0, 0"),
    _call("request of a key", 249, 218),
)  # fmt: skip

PROCESSES = (
    Attack("kill a process of the host", "os.kill(@VICTIM@, 9)"),
    Attack("kill the host process", "os.kill(@PID@, 9)"),
    Attack("kill everything", "os.kill(-1, 9)"),
    Attack("kill the first process", "os.kill(1, 9); os.kill(1, 15); time.sleep(0.1)"),
    Attack("kill the parent's group", "os.killpg(os.getpgid(1) if os.getpgid(1) else @PID@, 9)"),
    Attack("kill own interpreter", "os.kill(os.getpid(), 9)", Outcome.CRASHED),
    Attack("stop own interpreter", "os.kill(os.getpid(), signal.SIGSTOP)", Outcome.TIMEOUT),
    Attack("processes of others are seen", "check(len([n for n in os.listdir('/proc') if n.isdigit()]) > 2)"),
    Attack("trace the first process", "if libc.ptrace(16, 1, 0, 0) == 0: print(won)"),
    Attack("trace the host process", "if libc.ptrace(16, @PID@, 0, 0) == 0: print(won)"),
    Attack("overwrite the first process", OVERWRITE),
    Attack("limits of the first process", "check(resource.prlimit(1, resource.RLIMIT_NPROC)[1] > 1000)"),
    _call("read memory of another process", 310, 270, "1, 0, 0, 0, 0"),
    _call("take a descriptor of another process", 438, 438, "0, 0, 0, 0, 0"),
    Attack("fork bomb", "while True: os.fork()", Outcome.PROCESS_LIMIT),
    Attack("fork bomb that takes no no", "while True:\n    try: os.fork()\n    except OSError: pass", Outcome.PROCESS_LIMIT),
    Attack("thread bomb", "while True: threading.Thread(target=time.sleep, args=(99,)).start()", Outcome.PROCESS_LIMIT),
    Attack("a process that stays", "if os.fork() == 0:\n    os.setsid()\n    while os.fork() or True: time.sleep(9)"),
    Attack("a thread that stays", "threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()"),
    Attack("exit at once", "os._exit(0)", Outcome.CRASHED),
    Attack("exit from a thread", "threading.Thread(target=os._exit, args=(0,)).start(); time.sleep(9)", Outcome.CRASHED),
    Attack("null pointer", "ctypes.string_at(0)", Outcome.CRASHED),
    Attack("abort", "os.abort()", Outcome.CRASHED),
)  # fmt: skip

RESOURCES = (
    Attack("memory at once", "x = bytearray(8 << 30)", Outcome.MEMORY_LIMIT),
    Attack("memory that grows", "x = []\nwhile True: x.append(b'x' * 20_000_000)", Outcome.MEMORY_LIMIT),
    Attack("memory that grows and is denied", DENYING, Outcome.MEMORY_LIMIT),
    Attack("memory of many processes", "[os.fork() for _ in range(3)]; x = b'x' * 150_000_000; time.sleep(9)", Outcome.MEMORY_LIMIT),
    Attack("memory of all numbers", "x = list(range(10 ** 12))", Outcome.MEMORY_LIMIT),
    _call("memory that belongs to nobody", 29, 194, "0, 1 << 26, 0o1777, 0, 0"),
    _call("memory in a file without a name", 319, 279, "b'x', 0, 0, 0, 0"),
    Attack("output by print", "while True: print('x' * 1000)", Outcome.OUTPUT_LIMIT),
    Attack("output by a child process", "os.fork()\nwhile True: os.write(2, b'x' * 1000)", Outcome.OUTPUT_LIMIT),
    Attack("a last expression without end", "'x' * 100_000_000", Outcome.OUTPUT_LIMIT),
    Attack("fill tmp", "for i in range(12): open(f'/tmp/{i}', 'wb').write(bytes(8 << 20))\nprint(won)"),
    Attack("fill shared memory", "for i in range(12): open(f'/dev/shm/{i}', 'wb').write(bytes(8 << 20))\nprint(won)"),
    Attack("one huge file", "f = open('/tmp/huge', 'wb'); f.truncate(1 << 40); print(won)"),
    Attack("descriptors", "x = [os.open('/dev/null', 0) for _ in range(1000)]; print(won)"),
    Attack("limit of processes raised", "resource.setrlimit(resource.RLIMIT_NPROC, (99999, 99999)); print(won)"),
    Attack("limit of memory raised", "resource.setrlimit(resource.RLIMIT_AS, (-1, -1)); print(won)"),
    Attack("loop in C", "sum(range(10 ** 10))", Outcome.TIMEOUT),
    Attack("power tower", "x = 9 ** 9 ** 9", Outcome.TIMEOUT),
    Attack("regular expression without end", "import re; re.match('(a+)+b', 'a' * 60)", Outcome.TIMEOUT),
    Attack("all signals blocked", "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass", Outcome.TIMEOUT),
    Attack("interrupts swallowed", "while True:\n    try: time.sleep(9)\n    except BaseException: pass", Outcome.TIMEOUT),
    Attack("priority", "os.setpriority(os.PRIO_PROCESS, 0, -20); print(won)"),
)  # fmt: skip

SYSTEM = (
    Attack("writes outside tmp", "writes('/x', '/python/x', '/packages/numpy/x.py', '/dev/x', '/child.py', '/python/bin/python3')"),
    Attack("settings of the kernel", "writes('/proc/sys/kernel/core_pattern', '/proc/sys/vm/overcommit_memory', '/proc/sysrq-trigger')"),
    Attack("mount", "if libc.mount(b'none', b'/tmp', b'tmpfs', 0, 0) == 0: print(won)"),
    Attack("root made writable", "if libc.mount(b'none', b'/', 0, 32 | 4096, 0) == 0: print(won)"),
    Attack("unmount", "if libc.umount2(b'/proc', 2) == 0: print(won)"),
    Attack("new user namespace", "if libc.unshare(0x10000000) == 0: print(won)"),
    Attack("new mount namespace", "if libc.unshare(0x10020000) == 0: print(won)"),
    _call("clone into a namespace", 56, 220, "0x10000000 | 17, 0, 0, 0, 0"),
    _call("clone by the newer call", 435, 435, "ctypes.create_string_buffer(88), 88, 0, 0, 0"),
    Attack("namespace of another", "if libc.setns(os.open('/proc/1/ns/mnt', 0), 0) == 0: print(won)"),
    Attack("chroot", "os.mkdir('/tmp/r'); os.chroot('/tmp/r'); print(won)"),
    Attack("become root", "os.setresuid(0, 0, 0); print(won)"),
    Attack("other groups", "os.setgroups([0]); print(won)"),
    Attack("capabilities", "check(*[int(line.split()[1], 16) for p in '12' for line in open(f'/proc/{p}/status') if line[:3] == 'Cap'])"),
    Attack("privileges by execution", "check('NoNewPrivs:\\t1' not in open('/proc/self/status').read())"),
    Attack("no filter", "check(*['Seccomp:\\t2' not in open(f'/proc/{p}/status').read() for p in '12'])"),
    Attack("block device", "os.mknod('/tmp/disk', stat.S_IFBLK | 0o600, os.makedev(254, 0)); print(won)"),
    Attack("devices", "check(*set(os.listdir('/dev')) - {'null', 'zero', 'random', 'urandom', 'shm', 'fd'})"),
    Attack("sysfs and control groups", "check(os.path.exists('/sys'), os.path.exists('/sys/fs/cgroup'))"),
    Attack("terminal", "import fcntl, termios\nfor n in range(3): fcntl.ioctl(n, termios.TIOCSTI, b'x'); print(won)"),
    Attack("clock", "time.clock_settime(time.CLOCK_REALTIME, 0); print(won)"),
    _call("programs in the kernel", 321, 280, "0, ctypes.create_string_buffer(128), 128, 0, 0"),
    _call("rings", 425, 425, "1, ctypes.create_string_buffer(256), 0, 0, 0"),
    _call("counters of the processor", 298, 241, "ctypes.create_string_buffer(128), 0, -1, -1, 0"),
    _call("page faults by hand", 323, 282),
)  # fmt: skip

CHANNEL = (
    Attack("noise on the channel", "os.write(channel(), b'\\xff' * 4096)", Outcome.CRASHED),
    Attack("a frame without end", "os.write(channel(), b'\\x7f\\xff\\xff\\xff' + b'x' * 99); time.sleep(9)", Outcome.CRASHED),
    Attack("an answer to nothing", """frame(b'{"status": "ok", "nonce": "0"}')""", Outcome.CRASHED),
    Attack("an answer of the wrong shape", "frame(b'[1]')", Outcome.CRASHED),
    Attack("endless nesting", "frame(b'[' * 100_000)", Outcome.CRASHED),
    Attack("a number without end", """frame(b'{"nonce":' + b'9' * 100_000 + b'}')""", Outcome.CRASHED),
    Attack("descriptors sent out", "socket.send_fds(socket.socket(fileno=channel()), [b'xxxx'], [0, 1, 2])", Outcome.CRASHED),
    Attack("channel closed", "os.closerange(3, 64)", Outcome.CRASHED),
    Attack("a half answer", "os.write(channel(), b'\\0\\0\\0\\x09abc'); time.sleep(9)", Outcome.TIMEOUT),
    Attack("streams closed", "os.close(1); os.close(2); sys.stdout.close()"),
    Attack("the interpreter's own code replaced", "import json\njson.dumps = lambda *_: '{}'", Outcome.CRASHED),
    Attack("every exception replaced", "import builtins\nfor n in dir(builtins): setattr(builtins, n, None)"),
)  # fmt: skip

ATTACKS = NETWORK + SECRETS + PROCESSES + RESOURCES + SYSTEM + CHANNEL

FORGERIES = {
    "says that it passed": "import os\nprint('1 passed', '{\"status\": \"ok\", \"value\": \"3\"}', flush=True)\nos._exit(0)",
    "leaves when it ends": "import atexit, os\natexit.register(os._exit, 0)\ndef add(a, b): raise SystemExit(0)",
    "leaves from a thread": "import os, threading\ndef add(a, b): threading.Thread(target=os._exit, args=(0,)).start(); input()",
    "forges a frame on every descriptor": (
        "import os\nb = b'{\"status\": \"ok\", \"value\": \"0\"}'\nfor n in range(3, 64):\n"
        "    try: os.write(n, len(b).to_bytes(4, 'big') + b)\n    except OSError: pass\nos._exit(0)"
    ),
    "writes the result where the command line says": (
        "import sys\nfor part in open('/proc/self/cmdline').read().split(chr(0)) + sys.argv:\n"
        "    try: open(part, 'w').write('passed')\n    except OSError: pass\ndef add(a, b): return None"
    ),
    "equals everything": "class Any:\n    __eq__ = lambda *_: True\n    __ne__ = lambda *_: False\ndef add(a, b): return Any()",
    "equals everything as an integer": "class Any(int):\n    __eq__ = lambda *_: True\ndef add(a, b): return Any()",
    "is a subclass of text": "class Text(str): pass\ndef add(a, b): return Text(a + b)",
    "is a subclass of a list": "class Any(list):\n    __eq__ = lambda *_: True\ndef add(a, b): return Any()",
    "replaces what compares": (
        "import builtins, json, math, sys, types, unittest\nbuiltins.sorted = builtins.all = builtins.isinstance = lambda *_: True\n"
        "math.isclose = json.loads = lambda *_, **__: True\nunittest.TestCase.assertEqual = lambda *_: None\n"
        "sys.modules['solution_tests'] = types.ModuleType('solution_tests')\ndef add(a, b): return None"
    ),
    "replaces what writes": "import json\njson.dumps = lambda *_, **__: 'null'\ndef add(a, b): return 0",
    "remembers the case before": "seen = []\ndef add(a, b):\n    seen.append(a); return a + b if len(seen) > 1 else None",
    "looks for what is expected": (
        "import gc\ndef add(a, b):\n    found = [o for o in gc.get_objects() if isinstance(o, dict) and 'expected' in o]\n"
        "    return found[0]['expected'] if found else None"
    ),
    "asks its callers": (
        "import sys\ndef add(a, b):\n    frame = sys._getframe()\n    while frame:\n"
        "        if 'expected' in frame.f_locals: return frame.f_locals['expected']\n        frame = frame.f_back"
    ),
    "answers always": "def add(*_): return True",
}  # fmt: skip
"""Programs that are no right `add`, whatever they say, by what they try."""

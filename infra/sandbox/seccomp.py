"""The system calls that code in the sandbox is refused: other kernels' doors, memory that no limit counts, sockets that no namespace holds.

Namespaces and an unprivileged user already forbid most of these. The filter is a second wall, and the only one before the
kernel's keyrings, System V and anonymous-file memory, and virtual-machine sockets.
"""

import errno
import platform
import struct

from schemas.errors import TouchstoneError

_ARCH = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Audit number, and the column of the tables below."""
_DENIED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semctl": (66, 191), "semtimedop": (220, 192),
    "msgget": (68, 186), "msgsnd": (69, 189), "mq_open": (240, 180), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "syslog": (103, 116), "acct": (163, 89), "quotactl": (179, 60),
    "io_setup": (206, 0),
}  # fmt: skip
_CLONE, _CLONE3, _SOCKET, _SOCKETPAIR, _SETSOCKOPT = (56, 220), (435, 435), (41, 198), (53, 199), (54, 208)
_BUFFERS = (7, 8)
"""`SO_SNDBUF` and `SO_RCVBUF`: what sockets hold is counted by their number."""
_NEW_NAMESPACES = 0x7E020000
_UNIX = 1
"""The others have buffers that grow by themselves, and there is no network."""
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _THIRD = 0, 4, 16, 32
"""Offsets in `struct seccomp_data`; of an argument, its low half."""
_KILL, _ALLOW = 0x80000000, 0x7FFF0000


class UnknownMachine(TouchstoneError):
    """A processor whose system calls have other numbers than those known here."""


def program(machine: str = "") -> bytes:
    """The filter as `struct sock_filter[]`. Raises `UnknownMachine`."""
    machine = machine or platform.machine()
    if machine not in _ARCH:
        raise UnknownMachine(f"machine={machine}: no system-call filter; use {' or '.join(_ARCH)}")
    audit, column = _ARCH[machine]
    steps = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, audit, 1, 0), _step(_RETURN, _KILL), _step(_LOAD, _NUMBER)]
    steps += [_step(_AT_LEAST, _X32, 0, 1), _refuse(errno.ENOSYS)]
    for numbers in _DENIED.values():
        steps += [_step(_EQUAL, numbers[column], 0, 1), _refuse(errno.EPERM)]
    steps += [
        _step(_EQUAL, _CLONE3[column], 0, 1),
        _refuse(errno.ENOSYS),
    ]  # its flags lie in memory; libc then uses clone
    steps += [_step(_EQUAL, _CLONE[column], 0, 4), _step(_LOAD, _FIRST), _step(_ANY_BIT, _NEW_NAMESPACES, 0, 1)]
    steps += [_refuse(errno.EPERM), _step(_RETURN, _ALLOW)]
    for call in (_SOCKET, _SOCKETPAIR):
        steps += [_step(_EQUAL, call[column], 0, 4), _step(_LOAD, _FIRST), _step(_EQUAL, _UNIX, 1, 0)]
        steps += [_refuse(errno.EAFNOSUPPORT), _step(_RETURN, _ALLOW)]
    steps += [_step(_EQUAL, _SETSOCKOPT[column], 0, 4), _step(_LOAD, _THIRD)]
    steps += [_step(_EQUAL, _BUFFERS[0], 1, 0), _step(_EQUAL, _BUFFERS[1], 0, 1), _refuse(errno.EPERM)]
    return b"".join([*steps, _step(_RETURN, _ALLOW)])


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    """`then` and `otherwise` count the steps to skip."""
    return struct.pack("HBBI", code, then, otherwise, value)


def _refuse(number: int) -> bytes:
    return _step(_RETURN, 0x00050000 | number)

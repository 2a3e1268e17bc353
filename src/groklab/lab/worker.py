"""Which process this is, and whether one of this machine is gone: its fleets need not wait for their lease to end."""

import os
import socket
from functools import lru_cache
from pathlib import Path


def this_worker() -> str:
    """This process, named so that no other one has the same name: `host machine-boot pid start`."""
    return f"{_here()} {os.getpid()} {_started(os.getpid())}"


def is_gone(worker: str) -> bool:
    """Whether a worker was a process of this machine that has ended; of other machines nothing is known."""
    here, _, process = worker.rpartition(" ")[0].rpartition(" ")
    started = worker.rpartition(" ")[2]
    if here != _here() or not process.isdigit():
        return False
    return not _lives(int(process)) or _started(int(process)) != started


@lru_cache(maxsize=1)
def _here() -> str:
    """The machine since it was started, and the processes that it lets this one see (a container has its own)."""
    marks = [_read("/proc/sys/kernel/random/boot_id"), _link("/proc/self/ns/pid")]
    return "-".join([socket.gethostname().replace(" ", "_"), *(mark for mark in marks if mark)])


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives, and belongs to someone else
        return True
    return _state(process) != "Z"


def _started(process: int) -> str:
    """When it started, in ticks since the machine did; numbers of processes are used again."""
    return _after_name(process, 20)


def _state(process: int) -> str:
    return _after_name(process, 1)


def _after_name(process: int, field: int) -> str:
    """A field of /proc/PID/stat, counted from behind the name, which may hold spaces; empty where there is no /proc."""
    fields = _read(f"/proc/{process}/stat").rpartition(")")[2].split()
    return fields[field - 1] if len(fields) >= field else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""

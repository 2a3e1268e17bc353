"""What this machine is and has, as doctor tells it: rows of a name and a value, section by section."""

import os
import platform
import shutil
import sqlite3
import sys
from importlib import metadata
from pathlib import Path

from groklab.cli.caches import CACHES

Rows = list[tuple[str, str]]

PACKAGES = ("numpy", "scipy", "jaxtyping", "safetensors", "sqlalchemy", "matplotlib", "rich", "typer")
# Those that decide how fast a CPU multiplies matrices; the last ones in bfloat16.
FLAGS = ("avx2", "avx512f", "asimd", "sve", "bf16", "avx512_bf16", "amx_bf16")
BF16_FLAGS = {"bf16", "avx512_bf16", "amx_bf16"}
FAST_BF16 = {"avx512_bf16", "amx_bf16"}  # measured: a compiled step takes 0.44 of float32's with the first (Zen 5)
COMPILERS = ("c++", "g++", "clang++", "cl")


def sections() -> dict[str, Rows]:
    """Everything worth knowing before a run, or worth putting into a report of a fault."""
    return {"software": _software(), "processor": _processor(), "GPU": _gpus(), "space": _space(), "caches": _caches()}


def cpu_flags(text: str) -> set[str]:
    """The instruction sets of the first processor in the text of /proc/cpuinfo."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return set(value.split())
    return set()


def quick_precision() -> str:
    """bf16 where the processor multiplies in it (twice as fast and more, with the same S99), else float32."""
    try:
        flags = cpu_flags(Path("/proc/cpuinfo").read_text())
    except OSError:
        return "float32"
    return "bf16" if flags & FAST_BF16 else "float32"


def _software() -> Rows:
    import torch

    import groklab

    return [
        ("groklab", groklab.__version__),
        ("python", f"{platform.python_version()} ({sys.executable})"),
        ("system", platform.platform()),
        ("torch", f"{torch.__version__}" + (f", CUDA {torch.version.cuda}" if torch.version.cuda else ", no CUDA")),
        *((name, _version(name)) for name in PACKAGES),
        ("SQLite", sqlite3.sqlite_version),
        ("C++ compiler", next((found for name in _compilers() if (found := shutil.which(name))), "none")),
    ]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _compilers() -> tuple[str, ...]:
    named = os.environ.get("CXX")
    return (named, *COMPILERS) if named else COMPILERS


def _processor() -> Rows:
    import torch

    from groklab.lab.provenance import device_name

    flags = cpu_flags(_read("/proc/cpuinfo"))
    found = [flag for flag in FLAGS if flag in flags]
    bf16 = [flag for flag in found if flag in BF16_FLAGS]
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [
        ("processor", device_name("cpu")),
        ("instruction sets", ", ".join(found) or "not known"),
        (
            "bfloat16 matmuls",
            f"in hardware ({', '.join(bf16)})" if bf16 else "no instructions for them found: emulated",
        ),
        ("threads", f"{torch.get_num_threads()} used by torch, {usable} usable cores"),
    ]


def _gpus() -> Rows:
    import torch

    if not torch.cuda.is_available():
        return [("CUDA", "no device")]
    rows = []
    for number in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(number)
        free, total = torch.cuda.mem_get_info(number)
        capability = f"{properties.major}.{properties.minor}"
        rows.append(
            (f"cuda:{number}", f"{properties.name}, capability {capability}, {_size(free)} free of {_size(total)}")
        )
    return rows


def _space() -> Rows:
    lines = dict(line.split(":", 1) for line in _read("/proc/meminfo").splitlines() if ":" in line)
    sizes = {name: int(lines[name].split()[0]) * 1024 for name in ("MemAvailable", "MemTotal") if name in lines}
    memory = f"{_size(sizes['MemAvailable'])} free of {_size(sizes['MemTotal'])}" if len(sizes) == 2 else "not known"
    disk = shutil.disk_usage(Path.cwd())
    return [("memory", memory), ("disk here", f"{_size(disk.free)} free of {_size(disk.total)}")]


def _caches() -> Rows:
    return [(variable, os.environ.get(variable, "its own default")) for variable in CACHES]


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _size(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"

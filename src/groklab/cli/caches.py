"""What must be settled before torch or Matplotlib is imported: where caches lie, and how threads wait."""

import os
from pathlib import Path

CACHES = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "MPLCONFIGDIR": "matplotlib"}


def keep_caches_here() -> None:
    """Caches lie in the folder one works in, beside the lab; what the environment says already holds.

    PyTorch puts the headers that it compiles beforehand into /tmp whatever it is told, so it is told not to: compiling
    a fleet takes a quarter longer, once.
    """
    for variable, folder in CACHES.items():
        os.environ.setdefault(variable, str(Path.cwd() / ".cache" / folder))
    os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")


def let_threads_sleep() -> None:
    """Threads that wait for work sleep instead of spinning.

    Spinning is a few percent faster on an idle machine, and many times slower as soon as another program wants one
    of the cores.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

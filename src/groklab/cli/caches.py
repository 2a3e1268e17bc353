"""Where compilers and Matplotlib keep their caches: in the folder one works in, beside the lab."""

import os
from pathlib import Path

CACHES = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "MPLCONFIGDIR": "matplotlib"}


def keep_caches_here() -> None:
    """Before torch or Matplotlib is imported; what the environment says already holds."""
    for variable, folder in CACHES.items():
        os.environ.setdefault(variable, str(Path.cwd() / ".cache" / folder))

"""shipped: kernels that came with penstock, compiled for the processors that most machines have.

`make wheel` fills `shipped/`, beside this file: for a Python and a numba, and a level of processors, a folder for each
module of kernels. numba keeps what it compiles for the very processor that it runs on; what is here was compiled for
fewer features, and is used where the processor has these. What does not match, another Python or numba, an older
processor, a changed source, is compiled as ever.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from penstock.compiled.sources import source_files

INTO = "PENSTOCK_KERNELS_INTO"  # a variable: the folder that kernels go to in place of numba's cache
SHIPPED = Path(__file__).with_name("shipped")
SOURCES = "sources"  # a file in the folder of a module: the names and sizes of what it was made of
_V3 = "avx avx2 bmi1 bmi2 f16c fma abm movbe sse4_2 popcnt"
_V4 = f"{_V3} avx512f avx512bw avx512cd avx512dq avx512vl"
LEVELS = {"x86-64-v4": _V4.split(), "x86-64-v3": _V3.split()}  # the best first, with their flags in Linux's words
ARM = "generic"  # LLVM's word for what all processors of a kind have
_OWN = "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"


def levels_of(machine: str, flags: Sequence[str]) -> list[str]:
    """Which levels a processor has the features of, the best one first.

    >>> levels_of("x86_64", "avx avx2 bmi1 bmi2 f16c fma abm movbe sse4_2 popcnt sha_ni".split())
    ['x86-64-v3']
    >>> levels_of("aarch64", [])
    ['generic']
    """
    if machine.lower() in ("aarch64", "arm64"):
        return [ARM]
    if machine.lower() not in ("x86_64", "amd64"):
        return []
    return [level for level, needed in LEVELS.items() if set(needed) <= set(flags)]


@cache
def folder() -> Path | None:
    """What came with penstock for this processor, Python and numba; None where there is nothing."""
    if INTO in os.environ or any(name in os.environ for name in _OWN) or not SHIPPED.exists():
        return None
    found = (SHIPPED / tag() / level for level in levels_of(platform.machine(), _flags()))
    return next((each for each in found if each.exists()), None)


def tag() -> str:
    """The Python and numba, and the system, that kernels compiled here are for."""
    numba = importlib.metadata.version("numba")
    return f"{sys.implementation.cache_tag}-numba-{numba}-{sys.platform}-{platform.machine().lower()}"


def has(name: str, files: Sequence[Path]) -> bool:
    """Whether the kernels of the module `name`, which is made of `files`, came with penstock."""
    found = folder()
    if found is None:
        return False
    try:
        return (found / name / SOURCES).read_text(encoding="utf-8") == _sizes(files)
    except OSError:
        return False


def note_sources(into: Path, names: Sequence[str]) -> None:
    """Write down what modules were made of, which are compiled into the folder `into`."""
    for name in names:
        (into / name).mkdir(parents=True, exist_ok=True)  # its kernels may all be of modules that it imports from
        (into / name / SOURCES).write_text(_sizes(source_files(name)), encoding="utf-8")


def _sizes(files: Sequence[Path]) -> str:
    """Installing changes when files were changed; numba's index has a digest of their contents beside."""
    return hashlib.sha256(repr([(file.name, file.stat().st_size) for file in files]).encode()).hexdigest()


def _flags() -> list[str]:
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return []
    lines = (line.partition(":") for line in first.splitlines())
    return next((value.split() for name, _, value in lines if name.strip() == "flags"), [])

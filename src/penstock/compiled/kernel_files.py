"""The files of compiled kernels.

These are what a module of kernels is made of, the note that says it is in numba's cache, and kernels that came with
penstock.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_IMPORT = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|.*)$", re.MULTILINE)


def source_files(module: str) -> list[Path]:
    """The file of `module`, then those of its own package that it imports from, directly or not. Imports none of them.

    >>> names = [file.name for file in source_files("penstock.compiled.kernel_files")]
    >>> names[0], len(names)
    ('kernel_files.py', 1)
    """
    package = module.partition(".")[0]
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.origin is not None
    origin = Path(found.origin)
    files: list[Path] = []
    waiting = [module]
    while waiting:
        name = waiting.pop(0)
        file = _file(name, package, origin)
        if file is None or file in files:
            continue
        files.append(file)
        for source, names in _IMPORT.findall(file.read_text("utf-8")):
            if source.partition(".")[0] == package:  # what it imports may be modules themselves
                waiting += [source, *(f"{source}.{name}" for name in re.findall(r"\w+", names))]
    return files


def _file(name: str, package: str, origin: Path) -> Path | None:
    """The source of the module `name`, or None if there is no such module."""
    if name == package:
        return origin
    place = origin.parent.joinpath(*name.split(".")[1:])
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.exists()), None)


def digest(module: str) -> str:
    """A digest of the contents of all `source_files`."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in source_files(module))).hexdigest()


# `make wheel` fills `shipped/`, beside this file: for a Python and a numba, and a level of processors, a folder for
# each module of kernels. numba keeps what it compiles for the very processor that it runs on; what is here was compiled
# for fewer features, and is used where the processor has these. What does not match, another Python or numba, an older
# processor, a changed source, is compiled as ever.

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


_TELLING = {"vendor_id", "cpu family", "model", "flags", "CPU implementer", "CPU part", "Features", "isa"}


@cache
def processor() -> str:
    """Which kind it is: kernels of another one, as in an image that was built elsewhere, are of no use.

    numba goes by the same, and takes half a second to say so. Where the system does not tell, it is the architecture.

    >>> processor() == processor()
    True
    """
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        first = ""
    lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in _TELLING]
    return "\n".join([platform.machine(), *lines])


def is_compiled(name: str) -> bool:
    """Whether the kernels of the module `name` can be loaded: compiled on this machine, or come with penstock."""
    files = source_files(name)
    return has(name, files) or _note(name, files).exists()


def note_of(name: str) -> Path:
    """Where it stands for the module `name`, as its sources are now and for this processor."""
    return _note(name, source_files(name))


def _note(name: str, files: Sequence[Path]) -> Path:
    stamps = [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    sources = hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]
    chosen = [os.environ.get(variable, "") for variable in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    target = hashlib.sha256(repr([processor(), *chosen]).encode()).hexdigest()[:8]
    tag = f"{name}-{sources}-{target}-{sys.implementation.cache_tag}-{importlib.metadata.version('numba')}"
    return _folder(files[0].parent) / f"{tag}.compiled"


def root() -> Path:
    """The folder of what concerns all modules: who compiles."""
    return _folder(Path(__file__).parents[1])


def _folder(sources: Path) -> Path:
    """Where notes of modules in the folder `sources` stand."""
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder:
        return Path(folder)
    beside = sources / "__pycache__"
    if os.access(beside if beside.exists() else sources, os.W_OK):
        return beside
    return Path.home() / ".cache" / "penstock"

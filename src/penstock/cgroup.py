"""Control groups of Linux: the limits of this process's cores and memory, in version 1, version 2 and both.

The module is below all layers, because writers of files read the free memory, too.

A process is in one group per hierarchy (`/proc/self/cgroup`), and each hierarchy has a mount point
(`/proc/self/mountinfo`). A limit applies to a group and all groups inside it, so every folder from the process's group
up to the mount point counts. A container sees its own group as the mount point.

Sources: the kernel's documentation, admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst and scheduler/sched-bwc.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path("/")

_NO_LIMIT = 1 << 62  # version 1 writes the largest number of whole pages for "no limit"
_PERIOD = "100000"  # microseconds, if `cpu.max` has no period
_USUAL = (
    ("", "sys/fs/cgroup"),
    *((name, f"sys/fs/cgroup/{name}") for name in ("cpu", "cpuset", "memory")),
)
_MOST_CORES = 1 << 16  # a larger number in a list of cores is an error
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted hierarchy: its `part` at `folder`. In version 2, `controllers` is empty."""

    controllers: frozenset[str]
    part: str
    folder: Path


def read(path: Path) -> str | None:
    """Return the text of a small file, or None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except (OSError, ValueError):
        return None


def number(text: str | None) -> int | None:
    """Return a number of digits only, or None: `max`, -1 and other texts are no limit."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 30:
        return None
    return int(text)


@cache
def levels(controller: str, root: Path = ROOT) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the folders whose limits apply to this process, innermost first: of version 2, and of version 1."""
    groups = _groups(root)
    found: tuple[list[Path], list[Path]] = ([], [])
    for mount in _mounts(root):
        version_1 = bool(mount.controllers)
        if version_1 and controller not in mount.controllers:
            continue
        group = groups.get(controller if version_1 else "", "/")
        found[version_1].extend(_between(mount, group))
    return tuple(dict.fromkeys(found[0])), tuple(dict.fromkeys(found[1]))


def _between(mount: Mount, group: str) -> list[Path]:
    """Return the folders from a group up to the mount point, or the mount point if the group is not below it."""
    part, own = _names(mount.part), _names(group)
    if own[: len(part)] != part or ".." in own:
        return [mount.folder]
    below = own[len(part) :]
    return [mount.folder.joinpath(*below[:depth]) for depth in range(len(below), -1, -1)]


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _groups(root: Path) -> dict[str, str]:
    """Return the process's group by controller. The group of version 2 has the empty name."""
    found = {}
    for line in (read(root / "proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon:
            found.update(dict.fromkeys(controllers.split(","), path))
    return found


def _mounts(root: Path) -> list[Mount]:
    """Return all mounted hierarchies, or those at the usual places if the system has no list."""
    text = read(root / "proc/self/mountinfo")
    if text is None:
        return [Mount(frozenset({name} if name else ()), "/", root / folder) for name, folder in _USUAL]
    found = (_mount(line, root) for line in text.splitlines())
    return [mount for mount in found if mount is not None]


def _mount(line: str, root: Path) -> Mount | None:
    """Parse a line such as `31 23 0:28 /part /folder rw,relatime shared:9 - cgroup cgroup rw,cpu`; else None."""
    place, _, kind = line.partition(" - ")
    places, kinds = place.split(" "), kind.split(" ")
    if len(places) < 6 or len(kinds) < 3 or kinds[0] not in ("cgroup", "cgroup2"):
        return None
    part, folder = (_ESCAPED.sub(lambda found: chr(int(found[1], 8)), text) for text in places[3:5])
    controllers = frozenset(kinds[2].split(",")) if kinds[0] == "cgroup" else frozenset[str]()
    return Mount(controllers, part, root / folder.lstrip("/"))


def cpu_quota(root: Path = ROOT) -> float | None:
    """Return the quota of CPU time in cores, possibly a fraction; None without a quota."""
    version_2, version_1 = levels("cpu", root)
    quotas = [_quota(*(read(folder / "cpu.max") or "").split()[:2]) for folder in version_2]
    quotas += [
        _quota(read(folder / "cpu.cfs_quota_us") or "", read(folder / "cpu.cfs_period_us") or "")
        for folder in version_1
    ]
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota(limit: str = "", period: str = _PERIOD) -> float | None:
    most, each = number(limit), number(period)
    return most / each if most and each else None


def cpuset(root: Path = ROOT) -> frozenset[int] | None:
    """Return the cores that the groups allow, or None if they have no list.

    Linux removes the other cores from the affinity mask. Sandboxes that imitate Linux may not.
    """
    version_2, version_1 = levels("cpuset", root)
    names = [folder / "cpuset.cpus.effective" for folder in version_2]
    names += [folder / name for folder in version_1 for name in ("cpuset.effective_cpus", "cpuset.cpus")]
    lists = [found for found in (_listed(read(name) or "") for name in names) if found]
    return frozenset.intersection(*lists) or None if lists else None


def _listed(text: str) -> frozenset[int]:
    """Return the numbers of a text such as `0-3,8`; no numbers if the text has another form."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        begin, end = number(first), number(last if dash else first)
        if begin is None or end is None or not begin <= end < _MOST_CORES:
            return frozenset()
        found.update(range(begin, end + 1))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Bound:
    """A memory limit in bytes, and the files with its current use."""

    limit: int
    usage: Path
    stat: Path

    def left(self) -> int:
        used = number(read(self.usage)) or 0
        return max(self.limit - max(used - _inactive(read(self.stat) or ""), 0), 0)


def memory_limit(root: Path = ROOT) -> int | None:
    """Return the memory limit of the groups in bytes, or None."""
    return min((bound.limit for bound in _bounds(root)), default=None)


def memory_left(root: Path = ROOT) -> int | None:
    """Return the free bytes below the limits, or None. File caches that were not used lately count as free."""
    return min((bound.left() for bound in _bounds(root)), default=None)


def machine_left(root: Path = ROOT) -> int | None:
    """Return the bytes that Linux can provide without swapping, or None if unknown."""
    for line in (read(root / "proc/meminfo") or "").splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            kilobytes = number(amount.strip().removesuffix(" kB"))
            return None if kilobytes is None else kilobytes << 10
    return None


def _bounds(root: Path) -> Iterator[_Bound]:
    version_2, version_1 = levels("memory", root)
    for folder in version_2:
        for name in ("memory.max", "memory.high"):
            yield from _bound(number(read(folder / name)), folder / "memory.current", folder / "memory.stat")
    for depth, folder in enumerate(version_1):
        usage, stat = folder / "memory.usage_in_bytes", folder / "memory.stat"
        yield from _bound(number(read(folder / "memory.limit_in_bytes")), usage, stat)
        if depth == 0:  # the innermost group also has the limits above the mount point
            yield from _bound(_entry(read(stat) or "", "hierarchical_memory_limit"), usage, stat)


def _bound(limit: int | None, usage: Path, stat: Path) -> Iterator[_Bound]:
    if limit and limit < _NO_LIMIT:
        yield _Bound(limit, usage, stat)


def _inactive(stat: str) -> int:
    """Return the bytes of reclaimable file caches in a group. Version 1 has a separate total."""
    return _entry(stat, "total_inactive_file") or _entry(stat, "inactive_file") or 0


def _entry(stat: str, name: str) -> int | None:
    for line in stat.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return number(value.strip())
    return None

"""Replace the generated parts of pages: the lines between `<!-- begin: NAME -->` and `<!-- end: NAME -->`."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def fill(page: str, parts: dict[str, str]) -> None:
    """Write the named parts into a page of the project."""
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    for name, part in parts.items():
        marked = re.compile(rf"(<!-- begin: {re.escape(name)} -->\n).*?(<!-- end: {re.escape(name)} -->)", re.DOTALL)
        text, count = marked.subn(lambda found, part=part: f"{found[1]}{part.strip()}\n{found[2]}", text)
        assert count == 1, f"{page} has {count} parts with the name {name}"
    path.write_text(text, encoding="utf-8")


def machine() -> str:
    """Return the processor, the number of cores and the version of Python."""
    processor = platform.processor() or platform.machine()
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        processor = re.search(r"model name\s*: (.*)", listed.read_text() + f"\nmodel name : {processor}")[1].strip()
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}"

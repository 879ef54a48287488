"""Committed files name no machine: no absolute path of somebody's disk, no package index but the reader's own."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Spelled in pieces, so that this file does not find itself.
PATHS = re.compile(r"(?<![\w.$}])/(?:" + "|".join(["work", "root", "home", "Users", "opt"]) + r")/[\w.-]+")
HOSTS = re.compile("|".join(["index" + "-url", "find-" + "links", "python" + "hosted", r"pypi\.\w+/", "npm" + "js"]))
# Options of the Makefile that keep an index out of the locks.
ALLOWED = ["--no-emit-index" + "-url", "--no-emit-find" + "-links"]


def tracked():
    """Every text file that git knows or would take, apart from the licence."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and b"\0" not in path.read_bytes()[:8192]:
            yield name, path.read_text(encoding="utf-8", errors="replace")


def found(text, pattern):
    for word in ALLOWED:
        text = text.replace(word, "")
    return [hit.group() for hit in pattern.finditer(text)]


def test_no_absolute_machine_paths():
    assert [(name, hits) for name, text in tracked() if (hits := found(text, PATHS))] == []


def test_no_package_index():
    assert [(name, hits) for name, text in tracked() if (hits := found(text, HOSTS))] == []


def test_the_search_can_find():
    assert found("see " + "/ho" + "me/ada/data", PATHS)
    assert found("--extra-index" + "-url here", HOSTS)
    assert not found("data/home/ada and https://example.org/home/x", PATHS)

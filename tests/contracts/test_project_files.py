"""Project files that repeat one another agree."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIN = re.compile(r"^([a-z0-9._-]+)==([^\s;\\]+)( ; [^\\\n]+)?", re.MULTILINE)


def pins(lock):
    """Every pinned package of a lock as {(name, marker): version}."""
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    return {(name, (marker or "").strip()): version for name, version, marker in PIN.findall(text)}


def name_of(requirement):
    return re.match(r"[A-Za-z0-9._-]+", requirement).group().lower()


@pytest.mark.parametrize("lock", ["runtime", "dev", "bench"])
def test_every_lock_holds_what_penstock_needs(lock):
    needed = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["image"]
    assert {name_of(line) for line in needed} <= {name for name, _ in pins(lock)}


def test_the_dev_lock_extends_the_runtime_lock():
    dev = pins("dev")
    assert {key: dev.get(key) for key in pins("runtime")} == pins("runtime")


@pytest.mark.parametrize("lock", ["runtime", "dev", "site"])
def test_every_pin_has_hashes(lock):
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    blocks = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)
    assert [block.split()[0] for block in blocks if PIN.match(block) and "--hash=sha256:" not in block] == []


def test_ci_calls_make_test_and_nothing_else():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert lines == [
        "#!/usr/bin/env bash",
        "set -euo pipefail",
        'cd "$(dirname "${BASH_SOURCE[0]}")/.."',
        "exec make test",
    ]


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "src" / "penstock" / "py.typed").is_file()


def test_the_changelog_has_the_version_and_where_towncrier_adds():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert f"## {PROJECT['project']['version']} (" in changelog
    assert PROJECT["tool"]["towncrier"]["directory"] == "changelog.d"
    assert "<!-- towncrier release notes start -->" in changelog


def test_each_changelog_entry_has_a_kind_and_a_sentence():
    kinds = {kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]}
    for path in (ROOT / "changelog.d").iterdir():
        if path.name == "README.md":
            continue
        _, kind, suffix = path.name.rsplit(".", 2)
        assert (kind in kinds, suffix) == (True, "md"), path.name
        assert path.read_text(encoding="utf-8").strip()[-1:] in {".", ")"}, path.name


def test_the_citation_has_the_version_and_the_address_of_the_project():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {PROJECT['project']['version']}\n" in citation
    assert f'repository-code: "{PROJECT["project"]["urls"]["Repository"]}"\n' in citation


def test_the_package_index_gets_a_readme_whose_links_lead_to_the_repository():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    metadata = {"urls": {"Repository": "https://r"}}
    hooks.ReadmeHook(str(ROOT), {}).update(metadata)
    text = metadata["readme"]["text"]
    assert "](https://r/blob/main/docs/how-to/move-to-penstock.md)" in text
    assert "](https://r/raw/main/docs/figures/make-it-fast.svg)" in text
    assert re.findall(r"\]\((?!https:)[^)]*\)", text) == []
    assert hooks.absolute("[a](#b) and [c](http://d)", "https://r") == "[a](#b) and [c](http://d)"


def test_a_release_is_refused_without_the_address_of_the_repository():
    """The workflow looks for the placeholder in every file that has the address, until the address is known."""
    workflow = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    checked = re.search(r"! grep -n repository\.invalid (.*)'", workflow)[1].split()
    address = PROJECT["project"]["urls"]["Repository"]
    tops = [path for path in ROOT.glob("*.*") if path.is_file() and path.suffix in {".cff", ".md", ".py", ".toml"}]
    assert {path.name for path in tops if address in path.read_text(encoding="utf-8")} == set(checked)


def test_the_extras_of_the_readme_are_those_of_the_project():
    rows = re.findall(r"^\| (`[^|]*) \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z0-9_]+)`", row)}
    assert named == set(PROJECT["project"]["optional-dependencies"])

"""One vocabulary: what docs/design/words.md retires names no module and no class; docstrings begin with the thing."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src/penstock").rglob("*.py"))
WORDS = (ROOT / "docs/design/words.md").read_text(encoding="utf-8")
CLAUSES = {"Of", "So", "Those", "Who"}  # a docstring that begins so only makes sense to who knows the code


def table(title):
    """The rows of a table, as tuples of its cells."""
    section = WORDS.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in row) for row in rows[2:]]


def joined(word):
    return re.sub(r"\W+", "", re.sub(r"\(.*\)", "", word)).lower()


def test_what_was_retired_names_no_module_and_no_class():
    retired = {joined(word) for row in table("Words that are not used") for word in row[0].split(",")}
    retired -= {"turn", "here", "ring"}  # common words, which may name other things
    assert len(retired) > 10
    names = {joined(path.stem): str(path) for path in SOURCES}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name != "Apart":  # fingerprints of plans name it
                names[joined(node.name)] = f"{path}: {node.name}"
    assert not {names[name] for name in retired & names.keys()}


@pytest.mark.parametrize("package", sorted({path.relative_to(ROOT / "src/penstock").parts[0] for path in SOURCES}))
def test_docstrings_begin_with_what_the_thing_is_or_does(package):
    clauses = []
    for path in SOURCES:
        if path.relative_to(ROOT / "src/penstock").parts[0] != package:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            text = (ast.get_docstring(node) if documented else None) or "It"
            if text.split()[0] in CLAUSES or text.startswith("One that"):
                clauses.append(f"{path.name}: {text.splitlines()[0]}")
    assert not clauses

"""One vocabulary: what docs/design/words.md retires names no module and no class."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src/penstock").rglob("*.py"))
WORDS = (ROOT / "docs/design/words.md").read_text(encoding="utf-8")


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

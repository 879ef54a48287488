"""An extension of griffe, which reads the docstrings for the site."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from griffe import Docstring, Extension

DOCTEST = re.compile(r"^(?P<indent> *)>>> .*\n(?:(?P=indent)\S.*\n|\n(?=(?P=indent)>>> ))*", re.MULTILINE)

SOURCE = Path(__file__).parents[2] / "src" / "penstock"

# Classes that functions define, since their base class belongs to an optional package.
DEFINED = {
    "penstock.torch.DataLoader": "torch/loader.py",
    "penstock.jax.CheckpointHandler": "adaptors/orbax.py",
    "penstock.jax.CheckpointRestore": "adaptors/orbax.py",
    "penstock.jax.CheckpointSave": "adaptors/orbax.py",
}


def fenced(text: str) -> str:
    """Put examples into fences, so that Markdown does not read them as quotations."""

    def fence(found: re.Match[str]) -> str:
        indent, example = found["indent"], found[0].rstrip("\n")
        return f"{indent}```pycon\n{example}\n{indent}```\n"

    return DOCTEST.sub(fence, text + "\n").rstrip("\n")


def defined(path: str, source: Path) -> str | None:
    """Return the docstring of a class that a function of `source` defines."""
    name = path.rpartition(".")[2]
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return ast.get_docstring(node)
    return None


class Docstrings(Extension):
    """Fence the examples, and find the docstrings of classes that functions define, and arguments of `__new__`."""

    def on_class_members(self, *, cls: Any, **kwargs: Any) -> None:
        if "__new__" in cls.members:
            cls.members["__init__"] = cls.members["__new__"]

    def on_attribute_instance(self, *, attr: Any, **kwargs: Any) -> None:
        if attr.path in DEFINED:
            text = defined(attr.path, SOURCE / DEFINED[attr.path])
            if text is not None:
                attr.docstring = Docstring(fenced(text), parent=attr)

    def on_instance(self, *, obj: Any, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)

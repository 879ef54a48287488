"""What a library says goes through `logging`, under its package's name, where the user can send it elsewhere."""

import ast
from pathlib import Path

import penstock

SOURCE = Path(penstock.__file__).parent
PRINTS = ("cli/", "demo/", "catalog/progress.py")  # commands, and the progress of downloads, which a user switches off


def _calls(name):
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if name in text else ():
            if isinstance(node, ast.Call) and name == getattr(node.func, "id", getattr(node.func, "attr", None)):
                yield path.relative_to(SOURCE).as_posix(), node


def test_a_library_prints_nothing():
    found = [where for where, call in _calls("print") if isinstance(call.func, ast.Name)]
    assert any(where.startswith("cli/") for where in found), "calls are not found any more"
    assert [where for where in found if not where.startswith(PRINTS)] == []


def test_a_logger_has_the_name_of_its_package():
    found = [(where, ast.unparse(call.args[0])) for where, call in _calls("getLogger")]
    assert found
    for where, name in found:
        assert name == repr(f"penstock.{where.partition('/')[0]}"), where

"""Ownership: the folder of code decides if it is the user's or a library's. Its name does not matter."""

import ast
import importlib
import json
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.functions import sources

import penstock as ps
from penstock.functions.ownership import is_penstocks, is_users, is_users_file, is_users_path
from penstock.functions.shipping import why_not_shippable
from penstock.profiler.lint.natures import randomness
from penstock.store.content_key.made_of import made_of

SOURCE = """
import random
SEEN = []
def note(x):
    SEEN.append(x)
    return x
def draw(x):
    return x + random.random()
class Step:
    def __call__(self, x):
        return note(x)
"""


@pytest.fixture
def fresh(monkeypatch):
    """Restore `sys.modules` and `sys.path` after the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        del sys.modules[name]
    sys.modules.update(before)


def installed(folder, name):
    """Write a module to a folder as `name`.py, import it and return it."""
    path = folder.joinpath(*name.split("."))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    for known in (name, name.partition(".")[0]):
        sys.modules.pop(known, None)
    importlib.invalidate_caches()
    return importlib.import_module(name)


def in_place(folder, name):
    """Return a module of a project that is installed in place, by a `.pth` file in the folder of packages."""
    packages = folder / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "editable.pth").write_text(str(folder / "src"))
    return installed(folder / "src", name)


def zipped(folder, name):
    with zipfile.ZipFile(folder / "app.zip", "w") as archive:
        archive.writestr(f"{name}.py", SOURCE)
    sys.path.insert(0, str(folder / "app.zip"))
    sys.modules.pop(name, None)
    return importlib.import_module(name)


def linked(folder, name):
    """Return a module in a folder that is reached by a link."""
    (folder / "real").mkdir()
    (folder / "link").symlink_to(folder / "real")
    return installed(folder / "link", name)


MODULES = {  # the function that installs a module, its folder and name, and True for the user's
    "a module of the project": (installed, "", "my_steps", True),
    "named like a library": (installed, "", "regex", True),
    "in a folder named like a library": (installed, "", "skimage.aug", True),
    "named like one of the standard library": (installed, "", "colorsys", True),
    "named like one that draws": (installed, "", "secrets", True),
    "a project installed in place": (in_place, "", "sentencepiece", True),
    "a zip file of the user's": (zipped, "", "orjson", True),
    "through a link": (linked, "", "msgpack", True),
    "a folder that begins like a library's": (installed, "site-packages-of-mine", "ujson", True),
    "a virtual environment": (installed, "venv/lib/python3/site-packages", "some_package", False),
    "a package in one": (installed, "venv/lib/python3/site-packages", "some_pack.age", False),
    "of the distribution": (installed, "usr/lib/python3/dist-packages", "some_package", False),
}


@pytest.mark.parametrize("case", MODULES)
def test_a_module_belongs_to_whom_its_folder_belongs_to(case, tmp_path, fresh):
    make, folder, name, wanted = MODULES[case]
    module = make(tmp_path / folder if folder else tmp_path, name)
    said = {
        "module": is_users(module),
        "function": is_users(module.note),
        "class": is_users(module.Step),
        "object": is_users(module.Step()),
        "path": is_users_path(f"{name}.note"),
    }
    assert said == dict.fromkeys(said, wanted)


@pytest.mark.parametrize("case", [case for case, (*_, users) in MODULES.items() if users])
def test_all_who_ask_look_into_the_users_code(case, tmp_path, fresh):
    """The code stays in its process, is searched for random numbers, and is part of the key of a cache."""
    make, folder, name, _ = MODULES[case]
    module = make(tmp_path / folder if folder else tmp_path, name)
    note = module.note
    for function in (note, lambda x: note(x), lambda x: module.note(x), module.Step()):
        assert "`SEEN`" in why_not_shippable(function)
    assert randomness(lambda x: module.draw(x)) == "random.random"
    before = made_of(ps.Dataset.range(3).map(lambda x: module.note(x))._plan).key
    module.note = types.FunctionType(compile("lambda x: x + 1", module.__file__, "eval").co_consts[0], vars(module))
    assert made_of(ps.Dataset.range(3).map(lambda x: module.note(x))._plan).key != before


@pytest.mark.parametrize("name", ["regex", "skimage.aug", "colorsys"])
def test_what_a_function_will_import_belongs_to_its_folder(name, tmp_path, fresh):
    """A module of the user is not loaded yet, and has the name of a library without side effects."""
    path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
    path.parent.mkdir(exist_ok=True)
    path.write_text(SOURCE)
    sys.path.insert(0, str(tmp_path))
    for known in (name, name.partition(".")[0]):
        sys.modules.pop(known, None)
    names = {}
    sources.executed(f"def f(x):\n    import {name} as steps\n    return steps.note(x)", names)
    assert is_users_path(f"{name}.note")
    assert name not in sys.modules  # the lookup imported nothing
    assert "which is not loaded yet" in why_not_shippable(names["f"])


def test_a_namespace_package_belongs_to_the_user_where_one_of_its_folders_does(tmp_path, fresh):
    theirs = installed(tmp_path / "site-packages", "shared_name.of_theirs")
    sys.path.insert(0, str(tmp_path / "project"))
    mine = tmp_path / "project" / "shared_name" / "of_mine.py"
    assert not is_users(sys.modules["shared_name"])
    mine.parent.mkdir(parents=True)
    mine.write_text(SOURCE)
    importlib.invalidate_caches()
    assert is_users(importlib.import_module("shared_name.of_mine"))
    assert is_users(sys.modules["shared_name"])
    assert not is_users(theirs)
    assert not is_users(theirs.note)


def named_tuple():
    import collections

    return collections.namedtuple("Pair", "a b")


VALUES = {
    "a function here": (test_a_module_belongs_to_whom_its_folder_belongs_to, True),
    "a lambda": (lambda x: x, True),
    "a class that a library made": (named_tuple(), True),
    "of the standard library": (json.dumps, False),
    "of the standard library, a class": (json.JSONDecoder, False),
    "of the standard library, a module": (json, False),
    "frozen": (importlib._bootstrap._find_and_load, False),
    "frozen, a module": (importlib._bootstrap, False),
    "built in": (len, False),
    "built in, a class": (dict, False),
    "built in, a module": (sys, False),
    "of an installed package": (np.broadcast_to.__wrapped__, False),
    "of an installed package, a module": (np, False),
    "of an installed package, in C": (np.ndarray, False),
    "of penstock": (ps.map_fn, False),
    "of penstock, a class": (ps.Dataset, False),
    "of penstock, a module": (ps, False),
    "a module made by hand": (types.ModuleType("numpy"), True),
}


@pytest.mark.parametrize("case", VALUES)
def test_whose_a_value_is(case):
    value, wanted = VALUES[case]
    assert is_users(value) is wanted


def typed(file, module):
    """Return a function as a notebook, a prompt, a doctest or a code generator creates it."""
    names = {"__name__": module}
    exec(compile("def f(x): return x", file, "exec"), names)
    return names["f"]


@pytest.mark.parametrize(
    ("file", "module", "wanted"),
    [
        ("/tmp/ipykernel_12/3456.py", "__main__", True),
        ("<ipython-input-1-abcdef>", "__main__", True),
        ("<stdin>", "__main__", True),
        ("<string>", "__main__", True),
        ("<doctest penstock.dataset.dataset[0]>", "penstock.dataset.dataset", True),
        ("<string>", "a_module_that_is_nowhere", True),
        ("<string>", None, True),
        ("<string>", "json", False),
        ("<__array_function__ internals>", "numpy", False),
        ("<string>", "penstock.plan.ops", False),
        ("<frozen os>", "os", False),
        ("relative.py", "__main__", True),
        (json.__file__, "__main__", False),
    ],
)
def test_code_that_has_no_file(file, module, wanted):
    assert is_users(typed(file, module)) is wanted


def test_penstocks_own_are_told_from_what_is_named_so():
    assert is_penstocks(ps.image.random_flip_left_right)
    assert is_penstocks(ps.Dataset)
    assert not is_penstocks(typed("/project/penstock/steps.py", "penstock.steps"))
    assert not is_penstocks(np.ndarray)


def test_a_script_is_the_users_wherever_it_lies(tmp_path):
    """Classes and functions of `__main__` are the user's. A separate interpreter prints its results."""
    script = tmp_path / "regex.py"
    script.write_text(
        "import json, sys\n"
        "from penstock.functions.ownership import is_users, is_users_path\n"
        "class Step: pass\n"
        "def f(x): return x\n"
        "print(is_users(Step), is_users(f), is_users(sys.modules['__main__']), is_users(json))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True", "False"]


def test_a_sibling_of_a_library_folder_is_the_users():
    folder = Path(json.__file__).parents[1]
    assert not is_users_file(str(folder / "json" / "decoder.py"))
    assert is_users_file(f"{folder}-of-mine/decoder.py")


def test_nobody_else_decides_by_names_or_folders():
    """Only one module knows the folders of libraries."""
    package = Path(ps.__file__).parent
    asking = {"site-packages", "dist-packages", "getsitepackages", "stdlib_module_names", "sysconfig"}
    for path in package.rglob("*.py"):
        if path.name == "ownership.py":
            continue
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if any(word in text for word in asking) else ():
            said = {
                getattr(node, "value", None) if isinstance(node, ast.Constant) else None,
                getattr(node, "attr", None),
            }
            said.update(alias.name for alias in getattr(node, "names", ()) if isinstance(alias, ast.alias))
            assert not {word for word in said if isinstance(word, str)} & asking, path

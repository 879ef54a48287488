"""`import penstock` is cheap: it loads numpy and names, and leaves everything heavy until first use."""

import subprocess
import sys

import pytest

HEAVY = {
    "cv2",
    "fsspec",
    "jax",
    "keras",
    "llvmlite",
    "numba",
    "pyarrow",
    "ray",
    "rich",
    "simplejpeg",
    "tensorflow",
    "torch",
}


def modules_after(code):
    """Names of all modules that a fresh interpreter holds after `code`."""
    printed = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], check=True, capture_output=True, text=True
    )
    assert printed.stderr == ""
    return set(printed.stdout.split())


def test_import_loads_nothing_heavy():
    assert modules_after("import penstock") & HEAVY == set()


def test_import_does_not_load_what_is_shipped_for_tests():
    assert not {name for name in modules_after("import penstock") if name.startswith("penstock.testing")}


def test_import_loads_few_modules():
    """What describes a pipeline comes with the name; the engine, image and io come when they are first used."""
    loaded = {name for name in modules_after("import penstock") if name.partition(".")[0] == "penstock"}
    assert len(loaded) <= 120
    for package in ("image", "profiler", "runtime", "physical", "rewrite", "catalog", "trace"):
        assert f"penstock.{package}" not in loaded


def test_every_public_name_comes_when_it_is_asked_for():
    code = """
import penstock as ps
for name in dir(ps):
    assert getattr(ps, name) is not None, name
for package in (ps.image, ps.io):
    assert set(dir(package)) == set(package.__all__)
    assert all(getattr(package, name) is not None for name in dir(package))
from penstock.image import *
assert resize is ps.image.resize
"""
    assert "penstock.image.public" in modules_after(code)


@pytest.mark.parametrize("name", ["io", "image"])
def test_namespaces_load_nothing_heavy(name):
    """Compiled kernels arrive with the first call, not with the namespace that names them."""
    assert modules_after(f"import penstock as ps; dir(ps.{name})") & HEAVY == set()


def test_describing_a_pipeline_loads_nothing_heavy():
    code = "import penstock as ps; ps.Dataset.range(10).map(lambda x: x + 1).batch(4).prefetch(ps.AUTOTUNE)"
    assert modules_after(code) & HEAVY == set()


def test_the_check_can_fail():
    assert "fsspec" in modules_after("import fsspec") & HEAVY

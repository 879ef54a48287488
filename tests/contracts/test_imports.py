"""`import penstock` is cheap: it loads numpy and names, and leaves everything heavy until first use."""

import os
import subprocess
import sys

import pytest

HEAVY = {
    "concurrent.futures",
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


FIRST = """
ds[3]
ds.at(2, epoch=1)
ds.batch_at(1)
list(ds.shuffle(ps.ALL, seed=1))
list(ds.shuffle(ps.AUTOTUNE))
len(ds), ds.filter(lambda x: x > 3).cache().cardinality()
ds.map(lambda x: x).cache()[1]
ds.element_spec, ds.map(str).element_spec
ds.explain(), ds.explain(analyze=True, seconds=0.05), ds.lint(), ds.memory(), ds.fingerprint(), ds.what_if(cores=2)
ds.save("saved"), list(ps.Dataset.load("saved")), ps.Dataset.load("saved")[1]
list(ds.snapshot("snapshot")), list(ds.cache("cache")), ds.cache("cache")[1]
pickle.loads(pickle.dumps(ds))[1]
iter(ds).state_dict()
ds.reduce(0, lambda total, x: total + x)
list(ds.interleave(lambda x: ps.Dataset.range(x), cycle_length=2))
list(ps.Dataset.sample_from_datasets([ds, ds], seed=1))
list(ds.group_by_window(lambda x: x % 2, lambda key, window: window.batch(2), 2))
list(ds.rejection_resample(lambda x: x % 2, [0.5, 0.5], seed=1))
list(ds.batch(2).map(lambda rows: ps.map_fn(lambda x: x + 1, rows)))
list(ds.batch(3).unbatch().window(2).flat_map(lambda w: w.batch(2)))
list(ds.distribute(service="local", workers=1))
list(ds.map(lambda x: ps.image.resize(np.zeros((4, 4, 3), np.uint8), (2, 2))))
ps.io.encode_example({"x": [1]}), ps.mixing.linear, ps.experimental.Counter(), ps.experimental.at(ds, 2)
ds.plot(), ds.head(2), repr(ds), ds._repr_html_()
ps.catalog.list_builders(), ps.profiler.Profiler
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_any_first_call_works(tmp_path):
    """What a call needs comes with it, whatever was called before: each in a fork that has loaded the names alone."""
    code = f"""
import os, pickle, sys
import numpy as np
import penstock as ps
for line in {FIRST.strip().splitlines()!r}:
    child = os.fork()
    if not child:
        os.chdir({str(tmp_path)!r})
        try:
            ds = ps.Dataset.range(6)
            eval(line)
        except BaseException as raised:
            print(line, repr(raised), flush=True)
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(line, "did not end with 0", flush=True)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_describing_a_pipeline_loads_nothing_heavy():
    code = "import penstock as ps; ps.Dataset.range(10).map(lambda x: x + 1).batch(4).prefetch(ps.AUTOTUNE)"
    assert modules_after(code) & HEAVY == set()


def test_the_check_can_fail():
    assert "fsspec" in modules_after("import fsspec") & HEAVY

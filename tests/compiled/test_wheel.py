"""A wheel (`make wheel-test`): in an environment of its own, with caches that are empty, its kernels serve at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.compiled.module import modules_of_kernels

WHEEL = os.environ.get("PENSTOCK_WHEEL", "")
pytestmark = pytest.mark.skipif(not WHEEL, reason="needs PENSTOCK_WHEEL, as `make wheel-test` gives it")

SCRIPT = """
import sys, zlib
import numpy as np
import penstock as ps
from penstock.compiled import compiling, plain_versions
from penstock.compiled.module import Compiled
from penstock.compiled.module import modules_of_kernels
assert "wheel-env" in ps.__file__, ps.__file__
with ps.io.TFRecordWriter(sys.argv[1]) as writer:
    for i in range(100):
        writer.write(bytes(range(i)))
rows = list(ps.TFRecordDataset(sys.argv[1]).shuffle(10, seed=1))
assert sorted(map(len, rows)) == list(range(100))
keyed = ps.Dataset.range(4).map(lambda x: ps.element_key() % 7)
assert list(keyed.iterator(executor="process", epoch=0)) == list(keyed.iterator(executor="inline", epoch=0))
assert not plain_versions(), plain_versions()
missing = [name for name in modules_of_kernels() if Compiled(name).ready() is None]
assert not missing and not compiling(), missing
from numba.core import event
class Compiles(event.Listener):
    def on_start(self, event): raise AssertionError(event.data)
    def on_end(self, event): pass
event.register("numba:compile", Compiles())
for name in modules_of_kernels():
    module = sys.modules[name]
    getattr(module, "warm_up", lambda: None)()
print(len(modules_of_kernels()))
"""


def test_nothing_is_compiled_behind_an_installation(tmp_path):
    environment = tmp_path / "wheel-env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--no-compile", "--target", packages, WHEEL], check=True
    )
    import numba

    (packages / "dependencies.pth").write_text(f"{Path(numba.__file__).parents[1]}\n")  # what penstock runs on
    own = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHON"))}
    own |= {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [python, "-c", SCRIPT, str(tmp_path / "records")],
        env=own, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(modules_of_kernels())
    assert not list((tmp_path / "cache").rglob("*.nbc"))

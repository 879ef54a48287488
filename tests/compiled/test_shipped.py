"""Kernels that come with penstock: used where all fits, and compiled as ever where anything does not."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from penstock.compiled import kernel_files, module
from penstock.compiled.kernel_files import LEVELS, levels_of
from penstock.errors import InvalidArgumentError

NAME = "penstock.physical.kernels.native"
LOADED = f"""
import sys
from pathlib import Path
from penstock.compiled import kernel_files as shipped
shipped.SHIPPED = Path(sys.argv[1])
from penstock.compiled.kernel_files import is_compiled
from numba.core import event
class Compiles(event.Listener):
    def on_start(self, event): print("compiles", event.data["dispatcher"].__name__)
    def on_end(self, event): pass
event.register("numba:compile", Compiles())
print(is_compiled({NAME!r}))
from {NAME} import warm_up
warm_up()
"""


def loaded(folder, tmp_path, **variables):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "empty"), **variables}
    command = [sys.executable, "-c", LOADED, str(folder)]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.slow
def test_a_level_of_this_processor_serves_and_nothing_else_does(tmp_path, monkeypatch):
    flags = kernel_files._flags()
    level = next(iter(reversed(levels_of(platform.machine(), flags))), None)
    if level is None:
        pytest.skip("no level of processors is known to be this one's")
    monkeypatch.setattr(module, "modules_of_kernels", lambda: [NAME])
    assert module.compile_into(tmp_path / "wheel", level, 1) == {}
    assert loaded(tmp_path / "wheel", tmp_path) == ["True"]
    chosen = loaded(tmp_path / "wheel", tmp_path / "2", NUMBA_CPU_NAME="generic")  # by the user
    assert chosen[:3] == ["False", "compiles", "reservoir"]
    (tmp_path / "wheel" / kernel_files.tag() / level / NAME / kernel_files.SOURCES).write_text("others")
    assert loaded(tmp_path / "wheel", tmp_path / "3")[0] == "False"


@pytest.mark.parametrize("lacks", ["avx512vl", "fma", None])
def test_a_processor_is_of_the_levels_that_it_has_all_features_of(lacks):
    flags = [flag for flag in LEVELS["x86-64-v4"] if flag != lacks]
    found = {"avx512vl": ["x86-64-v3"], "fma": [], None: ["x86-64-v4", "x86-64-v3"]}
    assert levels_of("AMD64", flags) == found[lacks]
    assert levels_of("riscv64", flags) == []


def test_a_level_that_nobody_looks_for_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="must be one of 'x86-64-v4', 'x86-64-v3', 'generic', got"):
        module.compile_into(tmp_path, "x86-64-v2")
    assert not list(tmp_path.iterdir())


def test_an_installation_without_such_kernels_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_files, "SHIPPED", tmp_path / "nothing")
    kernel_files.folder.cache_clear()
    try:
        assert kernel_files.folder() is None
        assert not kernel_files.has(NAME, kernel_files.source_files(NAME))
    finally:
        kernel_files.folder.cache_clear()

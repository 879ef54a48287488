"""`penstock compile`: every module of kernels, by as many processes as are wanted."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time

import pytest
from tests.compiled.written import writer

from penstock.cli import main
from penstock.compiled import module
from penstock.compiled.child import AT_WORK
from penstock.compiled.kernel_files import note_of, root


@pytest.fixture
def modules(tmp_path, monkeypatch):
    written = writer(tmp_path, monkeypatch)

    def known(**sources):
        written(**sources)
        monkeypatch.setattr(module, "modules_of_kernels", lambda: list(sources))

    return known


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_each_is_named_once_and_not_compiled_again(modules, capsys, jobs):
    names = [f"ahead_{number}" for number in range(5)]
    modules(**dict.fromkeys(names, ""))
    for _ in range(2):
        assert main(["compile", "--jobs", jobs]) == 0
        printed = capsys.readouterr()
        assert printed.out.splitlines()[:-1] == names
        assert printed.out.splitlines()[-1].startswith("5 modules of kernels: there after ")
        assert printed.err == ""
        assert all(note_of(name).exists() for name in names)


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_what_fails_is_told_with_its_reason_and_the_status_is_1(modules, capsys, jobs):
    modules(ahead_bad="raise OSError('no compiler here')", ahead_worse="import os\nos._exit(3)", ahead_good="")
    assert main(["compile", "--jobs", jobs]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == "ahead_good"
    assert printed.out.splitlines()[1].startswith("1 module of kernels: ")
    assert printed.err.splitlines() == [
        "penstock: ahead_bad could not be compiled: OSError: no compiler here",
        "penstock: ahead_worse could not be compiled: exit status 3",
    ]


def test_without_an_interpreter_nothing_is_compiled(modules, capsys, monkeypatch):
    modules(ahead_never="")
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert main(["compile"]) == 1
    assert capsys.readouterr().err == "penstock: ahead_never could not be compiled: no process could be started\n"


@pytest.mark.parametrize("jobs", ["0", "-1", "many", "1.5"])
def test_jobs_are_a_number_from_1_on(capsys, jobs):
    with pytest.raises(SystemExit, match="2"):
        main(["compile", f"--jobs={jobs}"])
    assert f"at least 1, got {jobs}" in capsys.readouterr().err


def test_all_kernels_of_penstock_are_known():
    names = module.modules_of_kernels()
    assert {
        "penstock.io.kernels.tfrecord.scan",
        "penstock.image.resizing.bilinear_native",
    } <= {*names}
    assert len(names) > 18
    for name in names:
        assert importlib.util.find_spec(name) is not None, name


def test_info_says_what_is_compiled_and_who_compiles_the_rest(modules, capsys):
    modules(told_one="", told_two="")
    assert main(["info"]) == 0
    first, cores, kernels, compiler = capsys.readouterr().out.splitlines()
    assert first.startswith("penstock ")
    assert cores.startswith("cores: ")
    assert kernels.startswith("kernels: 0 of 2 modules are compiled for this processor, in ")
    assert compiler.startswith("compiling: nothing")
    told = {"pid": os.getpid(), "begun": time.time() - 3, "modules": ["told_one", "told_two"]}
    root().mkdir(exist_ok=True)
    (root() / AT_WORK).write_text(json.dumps(told))
    assert main(["info"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"compiling: process {os.getpid()}, for 3 s, told_one, told_two"
    (root() / AT_WORK).unlink()
    assert main(["compile", "--jobs", "1"]) == 0
    capsys.readouterr()
    assert main(["info"]) == 0
    assert "kernels: 2 of 2 modules" in capsys.readouterr().out.splitlines()[-1]

"""`penstock compile`: every module of kernels, by as many processes as are wanted."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from tests.compiled.written import writer

from penstock.cli import main
from penstock.compiled import ahead
from penstock.compiled.note import note_of


@pytest.fixture
def modules(tmp_path, monkeypatch):
    written = writer(tmp_path, monkeypatch)

    def known(**sources):
        written(**sources)
        monkeypatch.setattr(ahead, "modules_of_kernels", lambda: list(sources))

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
    names = ahead.modules_of_kernels()
    assert {"penstock.io.kernels.csv", "penstock.io.kernels.tfrecord.scan", "penstock.image.kernels.native"} <= {*names}
    assert len(names) > 20
    for name in names:
        assert importlib.util.find_spec(name) is not None, name

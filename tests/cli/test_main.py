"""The command `penstock`: what it prints, and with which status it ends."""

from __future__ import annotations

import pytest

from penstock.cli import demo, main
from penstock.cli.catalog import prepare
from penstock.cli.main import INTERRUPTED


def test_version_names_what_matters(capsys):
    assert main(["version"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("penstock ")
    assert "numpy" in printed
    assert "Python" in printed


def test_without_a_command_the_usage_is_shown(capsys):
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "usage: penstock" in capsys.readouterr().err


def test_demo_help_names_every_flag(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["demo", "--help"])
    printed = capsys.readouterr().out
    for flag in ("--data-dir", "--epochs", "--examples", "--batch-size", "--step-ms", "--out", "--seed"):
        assert flag in printed


def test_prepare_lists_the_catalog(capsys):
    assert main(["prepare"]) == 0
    assert "shapes" in capsys.readouterr().out.split()


def test_prepare_writes_once(tmp_path, capsys):
    arguments = ["prepare", "shapes", "--examples", "4", "--data-dir", str(tmp_path)]
    assert main(arguments) == 0
    first = capsys.readouterr().out
    assert "shapes train: 4 examples" in first
    assert f"written: {tmp_path / 'shapes' / '4_examples' / '1.0.0'}" in first
    assert main(arguments) == 0
    assert "already there" in capsys.readouterr().out


def test_an_error_is_one_text_and_status_1(capsys):
    assert main(["prepare", "shaeps"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("penstock: There is no data set 'shaeps'")
    assert "Traceback" not in printed.err


def test_a_bad_setting_is_an_error_text(capsys):
    assert main(["demo", "--epochs", "0"]) == 1
    assert capsys.readouterr().err == "penstock: epochs must be at least 1, got 0.\n"


@pytest.mark.parametrize("command", [demo, prepare])
def test_ctrl_c_is_one_line_and_status_130(command, monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", interrupted)
    assert main([command.__name__.rpartition(".")[2]]) == INTERRUPTED == 130
    assert capsys.readouterr().err == "penstock: interrupted\n"

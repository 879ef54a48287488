"""The message if a pipeline finds entries of other pipelines, and none of its own."""

import logging

import pytest

import penstock as ps
from penstock.store.content_key.difference import why_not
from penstock.store.content_key.made_of import made_of

SIZE = 224


def scaled(x):
    return x * SIZE


def plain(x):
    return x


def passes(path, function=plain, size=2):
    return list(ps.Dataset.range(6).map(function).batch(size).snapshot(path))


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, "penstock")

    def lines():
        return [record.getMessage() for record in caplog.records if "new entry" in record.getMessage()]

    return lines


def test_the_first_entry_and_its_own_are_no_news(tmp_path, told):
    passes(tmp_path)
    passes(tmp_path)
    assert told() == []


def test_the_nearest_entry_is_compared(tmp_path, told, monkeypatch):
    passes(tmp_path, scaled, 2)
    passes(tmp_path, plain, 3)
    first, *_ = told()
    assert "; nearest is " in first
    monkeypatch.setitem(globals(), "SIZE", 256)
    passes(tmp_path, scaled, 2)
    _, line = told()
    assert line.startswith(f"{tmp_path}: a new entry, ")
    assert line.endswith("what differs: global SIZE = 256 (map#1), was 224")


def test_it_is_said_once_for_a_data_set(tmp_path, told):
    passes(tmp_path, size=2)
    ds = ps.Dataset.range(6).map(plain).batch(3).snapshot(tmp_path)
    next(iter(ds))
    list(ds)
    assert len(told()) == 1


def test_many_differences_are_counted(tmp_path):
    passes(tmp_path, scaled, 2)
    other = made_of(ps.Dataset.range(9).batch(3).shuffle(4).take(1).skip(0)._plan)
    assert why_not(other, str(tmp_path)).endswith(" more")


def test_damaged_entries_and_other_files_are_passed_over(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{")
    assert why_not(made_of(seed=1), str(tmp_path)) is None
    assert why_not(made_of(seed=1), str(tmp_path / "missing")) is None

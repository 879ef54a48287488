"""What is said of a shuffle that takes long to fill, with a clock of the test's own."""

import logging
import re

import pytest

import penstock as ps
from penstock.physical import memory
from penstock.physical.memory import FillingLog


def said(caplog, seconds):
    """The lines of a step of 1,000 elements that is told how far it is at these times, and is then full."""
    times = iter([0.0, *seconds, seconds[-1] + 1])
    log = FillingLog("shuffle(1000)", 1000, lambda: next(times))
    with caplog.at_level(logging.INFO, logger="penstock"):
        for count, _ in enumerate(seconds, 1):
            log.at(100 * count)
        log.full(1000)
    return [record.getMessage() for record in caplog.records]


def test_nothing_is_said_of_what_is_quick(caplog):
    assert said(caplog, [1.0, 2.0, 4.9]) == []


def test_what_takes_long_is_said_now_and_then_and_at_the_end(caplog):
    assert said(caplog, [4.0, 6.0, 8.0, 25.0, 27.0]) == [
        "shuffle(1000) fills: 200 of 1,000 elements after 6 seconds; the first element comes when it is full",
        "shuffle(1000) fills: 500 of 1,000 elements after 27 seconds; the first element comes when it is full",
        "shuffle(1000) is full: 1,000 elements after 28 seconds",
    ]


@pytest.mark.parametrize("rank", [None, "0", "1"])
def test_only_the_first_line_is_a_warning_and_only_on_one_rank(caplog, monkeypatch, rank):
    monkeypatch.setattr(FillingLog, "_warned", False)
    monkeypatch.delenv("RANK", raising=False)
    if rank:
        monkeypatch.setenv("RANK", rank)
    said(caplog, [6.0, 27.0])
    said(caplog, [6.0])
    levels = [record.levelname for record in caplog.records]
    assert levels == ["INFO" if rank == "1" else "WARNING", *["INFO"] * 4]


def asked(took, count):
    """How many elements are asked for, when one takes so many seconds."""
    now, done, found = 0.0, 0, []
    log = FillingLog("shuffle(1000)", 1000, lambda: now)
    for _ in range(count):
        found.append(log.ask())
        done += found[-1]
        now += took * found[-1]
        log.at(done)
    return found


def test_of_what_takes_long_little_is_asked_for_at_a_time():
    assert asked(0.0, 8) == [1, 4, 16, 64, 256, 1024, 4096, 4096]
    assert asked(0.01, 6) == [1, 4, 4, 4, 4, 4]
    assert asked(3.0, 3) == [1, 1, 1]


def test_a_shuffle_says_it(caplog, monkeypatch):
    monkeypatch.setattr(memory, "_FIRST", 0.0)
    with caplog.at_level(logging.INFO, logger="penstock"):
        next(iter(ps.Dataset.range(10_000).shuffle(5000)))
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].startswith("shuffle(5000) fills: ")
    assert " of 5,000 elements" in lines[0]
    assert lines[-1].startswith("shuffle(5000) is full: 5,000 elements")


def test_a_cache_that_is_asked_for_a_number_says_it(caplog, monkeypatch):
    monkeypatch.setattr(memory, "_FIRST", 0.0)
    ds = ps.Dataset.range(5000).filter(lambda x: x >= 10).cache()
    with caplog.at_level(logging.INFO, logger="penstock"):
        assert ds[0] == 10
    lines = [record.getMessage() for record in caplog.records]
    assert re.match(r"cache fills: [0-9,]+ elements after 0 seconds", lines[0])
    assert lines[-1].startswith("cache is full: 4,990 elements")


def test_a_flat_map_that_is_laid_out_says_how_far_it_is(caplog, monkeypatch):
    """Its function is called for each outer element before the first is given by its number."""
    caplog.set_level(logging.INFO, logger="penstock")
    monkeypatch.setattr(memory, "_FIRST", -1.0)
    dataset = ps.Dataset.range(5).flat_map(lambda x: ps.Dataset.range(x, x + 2))
    assert dataset[3] == 2
    said = [record.getMessage() for record in caplog.records if record.name == "penstock.physical"]
    assert "flat_map(<lambda>) by number fills: 1 of 5 elements after 0 seconds" in said[0]
    assert "flat_map(<lambda>) by number is full: 5 elements" in said[-1]

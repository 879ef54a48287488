"""Damaged records are refused or read, in agreement with the plain parser; nothing is read past a buffer's end."""

import ast
import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from penstock import io

MUTANTS = Path(__file__).with_name("mutants.py")
_spec = importlib.util.spec_from_file_location("mutants", MUTANTS)
mutants = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(mutants)

SEEDS = range(100 if os.environ.get("HYPOTHESIS_PROFILE") == "search" else 10)  # 10,000 mutants in make fuzz

SCALARS = {f"feature_{i:02d}": io.FixedLenFeature((), (np.int64, np.float32, bytes)[i % 3]) for i in range(12)}


def scalars(rng):
    """A record of scalars as a writer spells it, so that the parser takes its shortest way."""
    values = {0: lambda: int(rng.integers(2**63)) >> int(rng.integers(64)), 1: rng.random, 2: lambda: rng.bytes(5)}
    return io.encode_example({name: values[i % 3]() for i, name in enumerate(SCALARS)} | {"unknown": [1, 2]})


@pytest.mark.parametrize("seed", SEEDS)
def test_mutants_among_sound_records(seed):
    """A mutant is read with what the parser remembers of sound records, and they with what it learnt of the mutant."""
    rng = np.random.default_rng(seed)
    good = total = 0
    for _ in range(5):
        sound = [scalars(rng) for _ in range(3)]
        for _ in range(10):
            mutant = mutants.mutated(rng, sound[2])
            total += 1
            good += mutants.check([*sound, mutant, *sound], SCALARS) == 2 * len(sound) + 1
    for sound in list(mutants.originals(rng))[:5]:
        for _ in range(10):
            mutant = mutants.mutated(rng, sound)
            total += 1
            good += mutants.check([sound, sound, mutant, sound], mutants.MUTANT_SPEC) == 4
    assert total == 100
    assert 0 < good < total


GUARDED = """
    import ctypes, importlib.util, mmap, sys
    import numpy as np

    found = importlib.util.spec_from_file_location("mutants", {mutants!r})
    mutants = importlib.util.module_from_spec(found)
    found.loader.exec_module(mutants)

    from penstock.errors import PenstockError
    from penstock.io import batch as parsing, parse_columns
    from penstock.io.expected import expect
    from penstock.io.kernels.tfrecord.find_record import find_record
    from penstock.io.kernels.tfrecord.scan import scan
    from penstock.io.tfrecord.framing import EVERYTHING, NOTHING, frame
    import crc32c

    parsing._KERNEL.loaded()
    size = 4 * mmap.PAGESIZE
    pages = mmap.mmap(-1, size + mmap.PAGESIZE)
    first = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(first + size), mmap.PAGESIZE, 0) == 0
    memory = np.frombuffer(pages, np.uint8)[:size]

    def at_the_end(data):
        memory[size - len(data):] = np.frombuffer(data, np.uint8)
        return memory[size - len(data):]
"""


def in_a_child(script):
    """The script in an interpreter of its own, behind whose `memory` no byte may be read: reading one is its end."""
    code = textwrap.dedent(GUARDED.format(mutants=str(MUTANTS))) + textwrap.dedent(script)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, timeout=120
    )


guarded = pytest.mark.skipif(sys.platform != "linux", reason="pages are protected through the C library of Linux")


@guarded
def test_reading_behind_the_end_would_be_seen():
    done = in_a_child("print(memory[-1]); print(ctypes.string_at(first + size, 1))")
    assert done.stdout == "0\n"
    assert done.returncode < 0, done.stderr


@guarded
def test_the_parser_reads_nothing_behind_the_buffer():
    done = in_a_child("""
        rng = np.random.default_rng(11)
        outcomes = {"read": 0, "refused": 0}
        sound = list(mutants.originals(rng))
        for round in range(60):
            for record in sound[:10]:
                last = record[: int(rng.integers(len(record)))] if round % 3 else mutants.mutated(rng, record)
                batch = [record, record, last]
                lengths = np.array([len(one) for one in batch])
                data = at_the_end(b"".join(batch))
                try:
                    parse_columns(data, np.cumsum(lengths) - lengths, lengths, mutants.MUTANT_SPEC)
                    outcomes["read"] += 1
                except PenstockError:
                    outcomes["refused"] += 1
        print(outcomes)
    """)
    assert done.returncode == 0, done.stderr
    outcomes = ast.literal_eval(done.stdout)
    assert sum(outcomes.values()) == 600
    assert min(outcomes.values()) > 10


@guarded
def test_the_parser_reads_nothing_behind_any_of_several_buffers():
    """What is remembered of a record in one buffer leads to none of its bytes in another."""
    done = in_a_child("""
        rng = np.random.default_rng(13)
        features = {"id": mutants.MUTANT_SPEC["id"], "image": mutants.MUTANT_SPEC["image"]}
        sound = list(mutants.originals(rng))
        outcomes = {"read": 0, "refused": 0}
        for round in range(600):
            record = sound[round % 10]
            last = record[: int(rng.integers(len(record)))] if round % 3 else mutants.mutated(rng, record)
            buffers = np.frombuffer(bytes(2000) + record, np.uint8), at_the_end(last)
            which = np.array([0, 1, 0], np.int32) if round % 2 else np.array([1, 0, 1], np.int32)
            starts, lengths = np.where(which == 0, 2000, 0), np.where(which == 0, len(record), len(last))
            try:
                parsing.parse_strings(buffers, which, starts, lengths, expect(features))
                outcomes["read"] += 1
            except PenstockError:
                outcomes["refused"] += 1
        print(outcomes)
    """)
    assert done.returncode == 0, done.stderr
    outcomes = ast.literal_eval(done.stdout)
    assert sum(outcomes.values()) == 600
    assert min(outcomes.values()) > 10


@guarded
def test_every_sound_record_is_read_at_the_very_end():
    done = in_a_child("""
        from penstock import io

        wanted = {"a": io.FixedLenFeature((), np.int64, 0), "text": io.FixedLenFeature((), bytes, b""),
                  "x": io.FixedLenFeature((), np.float32, 0.0), "four": io.FixedLenFeature((4,), np.float32, [0.0] * 4)}
        count = 0
        for value in [0, 1, 127, 128, 2**21, 2**35, 2**56 - 1, 2**56, 2**63 - 1, -1]:
            for name, last in [("a", value), ("text", b"x" * (value % 9)), ("x", 0.5), ("four", [1.0] * 4)]:
                record = io.encode_example({name: last})
                starts, lengths = np.arange(3) * len(record), np.full(3, len(record))
                found = parse_columns(at_the_end(record * 3), starts, lengths, wanted)[name].singles()
                assert [np.array_equal(one, last) for one in found] == [True] * 3, (name, last, found)
                count += 1
        print(count)
    """)
    assert (done.returncode, done.stdout) == (0, "40\n"), done.stderr


@guarded
def test_the_scan_reads_nothing_behind_the_buffer():
    done = in_a_child("""
        rng = np.random.default_rng(5)
        seen = set()
        for round in range(3000):
            record = rng.bytes(int(rng.integers(1200)))
            header, footer = frame(len(record), crc32c.crc32c(record))
            stream = (header + record + footer) * 2
            cut = stream[: int(rng.integers(len(stream)))]
            data = at_the_end(mutants.mutated(rng, cut) if round % 3 else stream)
            starts, lengths = np.empty(4, np.int64), np.empty(4, np.int64)
            for check in (EVERYTHING, NOTHING):
                count, at, status = scan(data, 0, 1 << 20, check, starts, lengths)
                assert (lengths[:count] >= 0).all() and (starts[:count] + lengths[:count] <= len(data)).all()
                seen.add((check, int(status)))
            at, status = find_record(data, 0)
            assert 0 <= at <= len(data)
        print(len(seen))
    """)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 6

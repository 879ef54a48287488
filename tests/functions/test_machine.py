"""The machine's table of instructions is that of the interpreter."""

import dis
import sys

import pytest

from penstock.functions.code import parts
from penstock.functions.machine import (
    _GIVES,
    _MOVES,
    _TAKES,
    EFFECTS,
    ENDS,
    EVERYWHERE,
    NOTHING,
    REFUSED,
    VERSIONS,
)


def instructions():
    """What this interpreter's compiler may write, without what it makes of that when it runs."""
    own = {name for name, code in dis.opmap.items() if code < 256 and not name.startswith("INSTRUMENTED_")}
    return own - set(getattr(dis, "_specialized_opmap", ()))


def is_gone_through(name):
    pair = "_FAST_" in name and len(parts(name)) == 2
    return any(name in table for table in (_MOVES, _TAKES, _GIVES, EFFECTS, NOTHING)) or "JUMP_" in name or pair


def test_the_table_is_that_of_this_interpreter():
    assert instructions() == EVERYWHERE | VERSIONS[sys.version_info[:2]]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_instruction_is_gone_through_or_refused(version):
    every = EVERYWHERE | VERSIONS[version]
    assert {name for name in every if is_gone_through(name) == (name in REFUSED)} == set()


def test_nothing_is_known_of_what_no_version_has():
    every = EVERYWHERE.union(*VERSIONS.values())
    assert (REFUSED | NOTHING | ENDS | EFFECTS.keys()) - every == set()


def test_effects_are_those_that_the_interpreter_tells():
    for name, (takes, gives) in EFFECTS.items():
        if name in dis.opmap and name not in ("PUSH_EXC_INFO", "RETURN_GENERATOR"):  # which stand where values come
            argument = 0 if dis.opmap[name] >= dis.HAVE_ARGUMENT else None
            assert dis.stack_effect(dis.opmap[name], argument) == gives - takes, name

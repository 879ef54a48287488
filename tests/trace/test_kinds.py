"""What the reading of a function finds, given the kinds of its arguments: never anything that is not so."""

import collections
import functools
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import penstock as ps
from penstock.trace.kinds.reader import read
from penstock.trace.kinds.values import Mismatch, Number, SpelledText, Text, Widened, kind_of_spec

TEXT = Text()
ROW = kind_of_spec({"name": ps.TensorSpec((), bytes), "names": ps.TensorSpec((None,), bytes)})
WORDS = ["a", "b"]
BOTH = {"a", b"b"}
NONE = []
CLASSES = {"a": 0, "b": 1}
COUNTS = collections.defaultdict(int, a=1)
MEAN = np.array([0.4, 0.5, 0.6])
MEAN32 = MEAN.astype(np.float32)


def helper(s):
    return s == "a"


def matched(s):
    match s:
        case "a":
            return 1
        case _:
            return 0


def looped(s):
    count = 0
    for word in s.split():
        if word.lower() == "a":
            count += 1
    return count


def handled(s):
    try:
        return s == "a"
    except ValueError:
        return False


def renamed(row):
    name = row["name"].strip()
    return name != "a"


MISMATCHES = {
    "==": (lambda s: s == "a", TEXT, "=="),
    "turned": (lambda s: s == "a", TEXT, "=="),
    "!=": (lambda s: s != "a", TEXT, "!="),
    "in a tuple": (lambda s: s in ("a", "b"), TEXT, "in"),
    "in a set": (lambda s: s in {"a", "b"}, TEXT, "in"),
    "not in a list": (lambda s: s not in WORDS, TEXT, "in"),
    "in a dict": (lambda s: s in CLASSES, TEXT, "in"),
    "get": (lambda s: CLASSES.get(s, -1), TEXT, "get"),
    "defaultdict": (lambda s: COUNTS[s], TEXT, "[]"),
    "count": (lambda s: WORDS.count(s), TEXT, "count"),
    "a byte": (lambda s: s[0] == "a", TEXT, "byte"),
    "a method's": (lambda s: s.strip().lower() == "a", TEXT, "=="),
    "a part": (lambda s: s[:1] == "a", TEXT, "=="),
    "a key's": (lambda row: row["name"] == "a", ROW, "=="),
    "got": (lambda row: row.get("name") == "a", ROW, "=="),
    "an item's": (lambda row: row["names"][0] == "a", ROW, "=="),
    "an array's": (lambda row: row["names"] == "a", ROW, "=="),
    "a comprehension's": (lambda s: [w for w in s.split() if w == "a"], TEXT, "=="),
    "match": (matched, TEXT, "=="),
    "a loop's": (looped, TEXT, "=="),
    "a helper's": (lambda s: helper(s), TEXT, "=="),
    "in try": (handled, TEXT, "=="),
    "in a variable": (renamed, ROW, "!="),
}


@pytest.mark.parametrize("case", MISMATCHES)
def test_text_beside_str_is_found(case):
    function, kind, how = MISMATCHES[case]
    (found,) = read(function, [kind])
    assert isinstance(found, Mismatch)
    assert (found.how, found.compared) == (how, "a")


def decoded(s):
    if len(s) > 3:
        s = s.decode()
    return s == "a"


def asked(s):
    return isinstance(s, str) and s == "a"


def asked_by_match(s):
    match s:
        case str() if s == "a":
            return 1
        case _:
            return 0


def changed(row):
    row["name"] = row["name"].decode()
    return row["name"] == "a"


def changed_elsewhere(row):
    decode_in_place(row)
    return row["name"] == "a"


def decode_in_place(row):
    row["name"] = row["name"].decode()


def in_a_loop(s):
    for _ in range(3):
        if s == "a":
            return 1
        s = s.decode()
    return 0


def in_a_handler(s):
    try:
        s = s.decode()
    except AttributeError:
        print("text already")
    return s == "a"


def generator(s):
    yield s == "a"


def of_an_inner_function(s):
    def again():
        nonlocal s
        s = s.decode()

    again()
    return s == "a"


NOT_FOUND = {
    "bytes": (lambda s: s == b"a", TEXT),
    "decoded": (lambda s: s.decode() == "a", TEXT),
    "both are asked for": (lambda s: s == "a" or s == b"a", TEXT),
    "both are listed": (lambda s: s in ("a", b"a"), TEXT),
    "both are in a set": (lambda s: s in BOTH, TEXT),
    "decoded in a branch": (decoded, TEXT),
    "asked for its type": (asked, TEXT),
    "matched by its type": (asked_by_match, TEXT),
    "changed in its dict": (changed, ROW),
    "changed by a helper": (changed_elsewhere, ROW),
    "decoded in a loop": (in_a_loop, TEXT),
    "decoded where it can be": (in_a_handler, TEXT),
    "a generator": (generator, TEXT),
    "changed by an inner function": (of_an_inner_function, TEXT),
    "a number": (lambda x: x == "a", Number(np.dtype("int64"), array=False)),
    "of which nothing is known": (lambda x: x == "a", None),
    "an empty list": (lambda s: s in NONE, TEXT),
    "with repr": (lambda s: f"{s!r}", TEXT),
    "printed": (lambda s: print(f"got {s}"), TEXT),
}


@pytest.mark.parametrize("case", NOT_FOUND)
def test_what_may_be_meant_is_not_found(case):
    function, kind = NOT_FOUND[case]
    assert read(function, [kind]) == []


SPELLED = {
    "an f-string": lambda s: f"{s}.png",
    "with a format": lambda s: f"{s:>10}" if False else f"x{s}",
    "str": lambda s: "x/" + str(s),
    "%": lambda s: "%s.png" % s,  # noqa: UP031
    "% of several": lambda s: "%s-%d" % (s, 1),  # noqa: UP031
    "format": lambda s: "{}.png".format(s),  # noqa: UP032
    "to a call": lambda s: len(f"{s}.png"),
    "in a tuple": lambda s: (1, f"{s}"),
}


@pytest.mark.parametrize("case", SPELLED)
def test_text_in_a_str_is_found(case):
    found = read(SPELLED[case], [TEXT])
    assert found
    assert all(isinstance(one, SpelledText) for one in found)


def exact(function, *arrays):
    given = function(*arrays)
    return [leaf.dtype for leaf in (given if isinstance(given, tuple) else (given,))]


ARITHMETIC = {
    "a float": (lambda x: x / 255.0, np.uint8, True),
    "an int": (lambda x: x / 255, np.uint8, True),
    "an array of float64": (lambda x: x.astype(np.float32) - MEAN, np.uint8, True),
    "float32 and an array of float64": (lambda x: (x * 2 - MEAN)[::-1], np.float32, True),
    "one of a tuple": (lambda x: (x, x * 0.5), np.uint8, True),
    "later": (lambda x: (x / 255.0 - 0.5) * 2, np.uint8, True),
    "a number of float32": (lambda x: x / np.float32(255), np.uint8, False),
    "an array of float32": (lambda x: x - MEAN32, np.float32, False),
    "float32 and a float": (lambda x: x / 255.0, np.float32, False),
    "narrowed behind": (lambda x: (x / 255.0).astype(np.float32), np.uint8, False),
    "asked for": (lambda x: x.astype(np.float64) / 255.0, np.uint8, False),
    "asked for by name": (lambda x: x.astype("float64") / 255.0, np.uint8, False),
    "wide already": (lambda x: x / 255.0, np.float64, False),
    "int64 is as wide": (lambda x: x / 255.0, np.int64, False),
    "whole": (lambda x: x // 2 + 1, np.uint8, False),
}


@pytest.mark.parametrize("case", ARITHMETIC)
def test_float64_made_of_less_is_found(case):
    function, dtype, wanted = ARITHMETIC[case]
    found = read(function, [Number(np.dtype(dtype), array=True)])
    assert [type(one) for one in found] == [Widened] * wanted
    if wanted:  # and it is so
        assert np.dtype("float64") in exact(function, np.ones((4, 3), dtype))


# -- generated functions: whatever is found happens each time the line is reached

CONDITIONS = ["len(s) > 2", "n % 2", "flag"]


@st.composite
def statements(draw, depth=0):
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["strip", "decode", "encode", "compare", "if", "while", "other", "swap"]))
        if kind == "if" and depth < 2:
            lines += [f"if {draw(st.sampled_from(CONDITIONS))}:", *_indented(draw(statements(depth=depth + 1)))]
            if draw(st.booleans()):
                lines += ["else:", *_indented(draw(statements(depth=depth + 1)))]
        elif kind == "while" and depth < 2:
            lines += ["for n in range(2):", *_indented(draw(statements(depth=depth + 1)))]
        elif kind == "compare":
            lines.append(draw(st.sampled_from(['mark(s); s == "a"', 'mark(s); s in ("a", "b")', 'mark(t); t != "a"'])))
        else:
            changes = {"strip": "s = s.strip()", "decode": "s = as_str(s)", "encode": "s = as_bytes(s)"}
            lines.append(changes.get(kind, "s, t = t, s" if kind == "swap" else "t = s"))
    return lines


def _indented(lines):
    return [f"    {line}" for line in lines]


def as_str(s):
    return s.decode() if hasattr(s, "decode") else s


def as_bytes(s):
    return s.encode() if hasattr(s, "encode") else s


COMPARED = ["if flag:", '    mark(s); s == "a"']


@given(statements())
@example(COMPARED)
def test_what_is_found_happens_whenever_its_line_is_reached(lines):
    source = "def f(s, n, flag):\n    t = s\n" + textwrap.indent("\n".join(lines), "    ") + "\n    return 0\n"
    seen = collections.defaultdict(set)

    def mark(value):
        seen[sys._getframe(1).f_lineno].add(type(value))

    # what these give is not known
    names = {"mark": functools.partial(mark), "as_str": len, "as_bytes": len}
    exec(compile(source, "generated.py", "exec"), names)
    found = read(names["f"], [TEXT, None, None])
    names.update(as_str=as_str, as_bytes=as_bytes)
    for text in (b"a", b"abc"):
        for n in (0, 1):
            for flag in (False, True):
                names["f"](text, n, flag)
    assert found or lines != COMPARED
    for one in found:
        line = int(one.where.rpartition(":")[2])
        assert seen[line] <= {bytes}, source

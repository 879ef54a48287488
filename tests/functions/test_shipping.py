"""Functions that the engine may move to another process by itself, and the reasons why others stay."""

import asyncio
import base64
import collections
import copy
import dataclasses
import datetime as dt
import enum
import functools
import gc
import hashlib
import heapq
import io
import itertools
import json
import logging
import math
import operator
import os
import pathlib
import pickle
import queue
import random
import re
import struct
import sys
import threading
import time
import types
import typing
import uuid
import weakref
import zlib
from contextlib import suppress

import numpy as np
import pytest
from tests.functions import sources

import penstock as ps
from penstock.functions.memory import notes_of
from penstock.functions.shipping import why_not_shippable

ASCII = re.compile(rb"[a-z]+")


class Vocabulary:
    """A class as users write it: a table, a method that reads it, and a method that counts."""

    known: typing.ClassVar = {"the": 1}

    def __init__(self, words):
        self.words = words
        self.missed = 0
        self.log = []

    def __call__(self, text):
        return [self.number(word) for word in text.split()]

    def number(self, word):
        return self.words.get(word, 0)

    def __getitem__(self, word):
        return self.words[word]

    @property
    def size(self):
        return len(self.words)

    def counted(self, word):
        self.missed += word not in self.words
        return self.words.get(word, 0)

    def logged(self, word):
        self.log.append(word)
        return word

    def indirect(self, word):
        return self.logged(word)

    @staticmethod
    def lower(text):
        return text.lower()

    @classmethod
    def learn(cls, word):
        cls.known[word] = len(cls.known)
        return cls.known[word]

    @classmethod
    def common(cls, word):
        return word in cls.known


class Derived(Vocabulary):
    def number(self, word):
        return super().number(word)


class Strange:
    def __getattr__(self, name):
        return 1


class Descriptor:
    def __get__(self, owner, kind):
        print(owner)


class Described:
    value = Descriptor()


class Growing(dict):
    def __missing__(self, key):
        self[key] = len(self)
        return self[key]


class Slotted:
    __slots__ = ("seen", "table")

    def __init__(self):
        self.table, self.seen = {"a": 1}, []

    def reads(self, x):
        return self.table.get(x)

    def writes(self, x):
        self.seen.append(x)


class Writing:
    def __enter__(self):
        print("in")

    def __exit__(self, *error):
        return None


@dataclasses.dataclass
class Sample:
    image: object
    label: int = 0


@dataclasses.dataclass
class Counting:
    made: typing.ClassVar = []
    value: int

    def __post_init__(self):
        self.made.append(self.value)


class Pair(typing.NamedTuple):
    left: object
    right: object


class Colour(enum.Enum):
    RED = 1


def plain(x):
    return x * 2


def noisy(x):
    print(x)
    return x


def through(x):
    return noisy(x)


def put(where, x):
    where.append(x)
    return where


def identity(x):
    return x


def changes(array):
    array += 1
    return array


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


@functools.lru_cache
def remembered(x):
    return x + 1


def _shippable():
    """Return functions that only read objects from outside. Some of them stay, because the walk is coarse."""
    vocabulary = {"a": 1, "b": 2}
    words = ["a", "b"]
    rows = [[1, 2], [3, 4]]
    settings = {"size": (3, 4), "names": ["a"], "nested": {"k": [1]}}
    table = np.arange(10.0)
    matrix = np.ones((4, 4), np.float32)
    steps = [math.sqrt, lambda x: x + 1, plain]
    by_name = {"double": plain, "root": math.sqrt}
    pattern = re.compile(r"\w+")
    letters = {"a", "b"}
    vocab = Vocabulary(vocabulary)
    slotted = Slotted()
    recent = collections.deque([1, 2], maxlen=3)
    counts = collections.Counter("aab")

    def tokenise(text):
        found = []
        for word in pattern.findall(text.decode().lower()):
            if word in letters:
                found.append(vocabulary.get(word, 0))
        return np.array(found, np.int64)

    def loops_over_bytes(data):
        checksum = 0
        for value in data:
            checksum = (checksum * 31 + value) & 0xFFFFFFFF
        return checksum

    def while_loop(x):
        while x > 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
        return x

    def composed(x):
        for step in steps:
            x = step(x)
        return x

    def fills_its_own(x):
        found = np.zeros(3)
        found[:] = x
        found += 1
        np.add(found, 1, out=found)
        found.sort()
        return found

    def counts_words(text):
        found = {}
        for word in text.split():
            found[word] = found.get(word, 0) + 1
        return sorted(found.items(), key=lambda pair: -pair[1])

    def with_counter(text):
        found = collections.Counter(text.split())
        found.update(["more"])
        return found.most_common(1)[0][1]

    def copies_first(x):
        mine = dict(vocabulary)
        mine["z"] = x
        other = words.copy()
        other.append("z")
        third = [*words, "z"]
        third.sort()
        return len(mine) + len(other) + len(third)

    def handles(x):
        try:
            return int(x)
        except (ValueError, TypeError):
            return -1
        finally:
            del x

    def suppresses(x):
        with suppress(KeyError):
            return vocabulary[x]
        return 0

    def reads_a_file(path):
        with open(path, "rb") as file:  # noqa: PTH123 - the case it is about
            return file.read()

    def imports(x):
        import statistics
        from math import floor

        return statistics.fmean([floor(x), 2])

    def nested(x):
        offset = 3

        def inner(y):
            nonlocal offset
            offset += y
            return offset

        return inner(x) + inner(x)

    def keeps_own_state(x):
        state = {"n": 0}

        def step():
            state["n"] += 1
            return state["n"]

        return step() + step()

    def fills_its_own_dict(x):
        found = {}
        found["dtype"] = np.float32
        found["words"] = vocabulary
        found["x"] = x
        found["y"] = x + 1
        found.setdefault("z", []).append(x)
        return x.astype(found["dtype"])

    def saves_a_picture(x):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, x)
        return buffer.getvalue()

    def unpacks(pair):
        (first, *others), last = pair
        return first, len(others), last

    def matches(x):
        match x:
            case {"a": value}:
                return value
            case [first, *_]:
                return first
            case _:
                return None

    def seeded(x):
        generator = np.random.default_rng(int(x))
        return generator.normal(size=3) + random.Random(int(x)).random()

    def generates_inside(x):
        return sum(value * value for value in range(int(x)) if value % 2)

    def annotated(x: int, *rest: int, scale: float = 2.0, **more: int) -> float:
        return x * scale + len(rest) + len(more)

    return (
        {
            "arithmetic": lambda x: (x * 2 + 1) / 3,
            "tokenise": tokenise,
            "loop over bytes": loops_over_bytes,
            "while loop": while_loop,
            "json": lambda data: json.loads(data)["text"],
            "regular expression": lambda data: ASCII.sub(b"", data),
            "regular expression with a function": lambda text: re.sub("a", lambda found: found.group().upper(), text),
            "hash": lambda data: hashlib.sha256(data).hexdigest(),
            "zlib and base64": lambda data: base64.b64encode(zlib.decompress(data)),
            "struct": lambda data: struct.unpack("<i", data)[0],
            "lookup": lambda x: vocabulary[x],
            "lookup by a constant": lambda x: settings["size"][0] + x,
            "items of a dict": lambda x: [value for key, value in vocabulary.items() if key != x],
            "membership": lambda x: x in letters,
            "sorted set": lambda text: sorted(set(text)),
            "size of a set": lambda text: len(set(text) | letters),
            "item of an array": lambda i: table[i],
            "copy of a row": lambda i: changes(matrix[i].copy()),
            "new array of a row": lambda i: changes(matrix[i] * 2),
            "method of an array": lambda x: matrix.sum() + table.mean() + x,
            "matrix product": lambda x: matrix @ x,
            "numpy": lambda x: np.concatenate([np.sort(x), np.unique(x)]).astype(np.float32).reshape(-1, 1),
            "ufunc with its own output": lambda x: np.add(x, 1, out=np.empty_like(x)),
            "linear algebra": lambda x: np.linalg.norm(x) + np.fft.rfft(x).real.sum(),
            "several functions": composed,
            "functions by name": lambda x: by_name["double"](x) + by_name[str(x)](x),
            "own array": fills_its_own,
            "own dict": counts_words,
            "own counter": with_counter,
            "copies": copies_first,
            "deep copy": lambda x: put(copy.deepcopy(rows), x),
            "exceptions": handles,
            "raises": lambda x: [][x],
            "suppress": suppresses,
            "open for reading": reads_a_file,
            "path read": lambda name: pathlib.Path(name.decode()).read_bytes(),
            "join paths": lambda name: os.path.join("folder", name),  # noqa: PTH118 - the case it is about
            "imports": imports,
            "nested function": nested,
            "own state in a closure": keeps_own_state,
            "bytes in memory": saves_a_picture,
            "unpacking": unpacks,
            "generator seeded by the element": seeded,
            "generator expression": generates_inside,
            "annotations": annotated,
            "lambda default": lambda x, by=3: x * by,
            "helper": lambda x: plain(x) + factorial(3),
            "helper that changes what is its own": lambda x: put([], x),
            "cached helper": lambda x: remembered(x),
            "map and filter": lambda x: list(map(plain, filter(None, x))),
            "map of a read": lambda x: list(map(vocabulary.get, x)),
            "reduce": lambda x: functools.reduce(operator.add, x, 0),
            "itertools": lambda x: list(itertools.chain(x, itertools.islice(x, 2))),
            "sorted by key": lambda x: sorted(x, key=operator.itemgetter(1)),
            "heap of its own": lambda x: heapq.nlargest(2, x),
            "format": lambda x: f"{x:>5}{x!r}" + "%s" % x + f"{x}",  # noqa: UP031 - the case it is about
            "date": lambda text: dt.datetime.fromisoformat(text).year,
            "conditional": lambda x: x if x > 3 else -x,
            "chained comparison": lambda x: 1 < x < 5,
            "walrus": lambda x: (y := x + 1) * y,
            "slices": lambda x: x[1:-1] + words[:1],
            "dict comprehension": lambda x: {key: value * 2 for key, value in x.items()},
            "data class": lambda x: Sample(x, label=2),
            "named tuple": lambda x: Pair(x, left_of(x)) if False else Pair(x, 1),
            "enumeration": lambda x: Colour(x).value,
            "star arguments": lambda *parts: max(*parts),
            "keyword arguments": lambda x: plain(x=x),
            "captured object": lambda text: vocab(text),
            "captured method": lambda word: vocab.number(word),
            "captured property": lambda x: vocab.size + x,
            "captured item": lambda word: vocab[word],
            "callable object": vocab,
            "bound method": vocab.number,
            "static method": Vocabulary.lower,
            "class method": lambda word: Vocabulary.common(word),
            "slots": lambda word: slotted.reads(word),
            "partial": functools.partial(put, []) if False else functools.partial(math.pow, 2),
            "partial of a helper": functools.partial(plain, x=3),
            "captured deque": lambda x: recent[0] + len(recent) + x,
            "captured counter": lambda x: counts[x],
            "library function": json.loads,
            "builtin": abs,
            "numpy function": np.sort,
            "type": int,
            "picture": lambda data: ps.image.resize(ps.image.decode_png(data), (2, 2)),
            "primitive": ps.image.decode_jpeg,
            "rows are read": lambda x: [row[0] + sum(row) for row in rows],
            "identity": lambda x: len(identity(rows)) + x,
            "deep read": lambda x: settings["nested"]["k"][0] + x,
        },
        {
            "own dict of several kinds": (fills_its_own_dict, "stores `vocabulary` in an object"),
            "match": (matches, "not analysed (Match)"),
            "object of its own": (lambda text: Vocabulary({"a": 1}).counted(text), "more than a data class"),
            "partial made here": (lambda x: functools.partial(identity, words)()[0], "passes on `identity`"),
            "attribute by name": (lambda x: getattr(x, "real"), "known only at run time"),  # noqa: B009 - the case it is about
            "function of a function": (lambda x: np.vectorize(plain)(x), "known only at run time"),
            "unknown method": (lambda x: x.record(), "calls .record, whose effects are not known"),
            "pickle": (lambda x: pickle.loads(x), "whose effects are not known"),
        },
    )


def left_of(x):
    return x - 1


def _kept():
    """Return functions that store a function with a side effect, in many ways, and call it later."""
    seen = []

    class Box:
        def __init__(self, held):
            self.held = held

    def in_items(x):
        found = {}
        found["a"] = lambda y: seen.append(y)
        return found["a"](x)

    def known_in_items(x):
        found = {}
        found["a"] = seen_to
        return found["a"](x)

    def seen_to(x):
        seen.append(x)

    def in_an_attribute(x):
        box = Box(None)
        box.held = lambda y: seen.append(y)
        return box.held(x)

    def as_a_default(x):
        def inner(y, held=(lambda z: seen.append(z),)):
            return held[0](y)

        return inner(x)

    def inside_another(x):
        first = lambda y: seen.append(y)  # noqa: E731 - the case it is about
        return [lambda y: first(y)][0](x)

    def returned(x):
        def make():
            return [lambda y: seen.append(y)]

        return make()[0](x)

    def yielded(x):
        def make():
            yield lambda y: seen.append(y)

        return [each(x) for each in make()]

    def added_to_a_list(x):
        held = [left_of]
        held += [lambda y: seen.append(y)]
        return held[1](x)

    def taken_from_a_set(x):
        held = {lambda y: seen.append(y)}
        return held.pop()(x)

    def among_all_arguments(x):
        def inner(*held, **named):
            return named["last"](x)

        return inner(last=lambda y: seen.append(y))

    def matched(x):
        match (lambda y: seen.append(y), 2):
            case (held, _):
                return held(x)

    def beside_a_name(x):
        for _, held in {"a": lambda y: seen.append(y)}.items():
            held(x)
        return x

    return {
        "list": lambda x: [each(x) for each in [lambda y: seen.append(y)]],
        "tuple": lambda x: (lambda y: seen.append(y), 1)[0](x),
        "dict": lambda x: {"a": lambda y: seen.append(y)}["a"](x),
        "items": in_items,
        "known in items": known_in_items,
        "items of a dict": beside_a_name,
        "attribute": in_an_attribute,
        "made with": lambda x: Box(lambda y: seen.append(y)).held(x),
        "partial": lambda x: functools.partial(lambda y: seen.append(y), x)(),
        "default": as_a_default,
        "closure": inside_another,
        "returned": returned,
        "yielded": yielded,
        "added": added_to_a_list,
        "set": taken_from_a_set,
        "arguments": among_all_arguments,
        "iterator": lambda x: next(iter([lambda y: seen.append(y)]))(x),
        "enumerated": lambda x: [each(x) for _, each in enumerate([lambda y: seen.append(y)])],
        "zip": lambda x: [each(x) for each, _ in zip([lambda y: seen.append(y)], [1])],  # noqa: B905
        "by its call": lambda x: (lambda y: seen.append(y)).__call__(x),
        "match": matched,
        "to a library": lambda x: np.piecewise(x, [x > 0], [lambda y: seen.append(y)]),
        "map_fn": lambda x: ps.map_fn(lambda y: seen.append(y), x),
        "map_fn of a pair": lambda x: ps.map_fn(lambda y: seen_to(*y), (x, x)),
    }


def _visible():
    """Return functions with observable effects, and a part of the reason for each."""
    seen = []
    vocabulary = {"a": 1}
    rows = [[1], [2]]
    many = [[i] for i in range(100)]
    settings = {"names": ["a"]}
    groups = collections.defaultdict(list)
    recent = collections.deque(maxlen=3)
    counts = collections.Counter()
    letters = {"a", "b"}
    data = bytearray(4)
    buffer = np.zeros(3)
    matrix = np.ones((4, 4))
    generator = np.random.default_rng(0)
    old_generator = np.random.RandomState(0)
    own_random = random.Random(1)
    numbers = itertools.count()
    values = iter([1, 2, 3])
    lazy = (x for x in range(3))
    lock = threading.Lock()
    event = threading.Event()
    local = threading.local()
    jobs = queue.Queue()
    logger = logging.getLogger("test")
    vocab = Vocabulary({})
    slotted = Slotted()
    strange = Strange()
    growing = Growing()
    holder = types.SimpleNamespace(n=0)
    described = Described()
    this = sys.modules[__name__]
    unknown = [identity] * 20
    torch = types.ModuleType("torch")
    torch.relu = identity
    count = 0

    def assigns_outside(x):
        nonlocal count
        count += 1
        return x

    def assigns_global(x):
        global ASCII
        ASCII = x
        return x

    def aliased(x):
        mine = seen
        mine.append(x)
        return x

    def aliased_in_a_tuple(x):
        mine, other = (seen, x)
        mine.append(other)
        return x

    def chosen(x):
        where = seen if x else []
        where.append(x)
        return x

    def in_a_container(x):
        held = {"list": seen}
        held["list"].append(x)
        return x

    def put_by_item(x):
        held = {}
        held["list"] = seen
        held["list"].append(x)
        return x

    def put_by_attribute(x):
        held = Sample(x)
        held.image = seen
        held.image.append(x)
        return x

    def put_by_method(x):
        held = []
        held.append(seen)
        for one in held:
            one.append(x)
        return x

    def put_late(x):
        held = []
        for _ in range(2):
            for one in held:
                one.append(x)
            held.append(seen)
        return x

    def cell_set_late(x):
        where = []

        def add():
            where.append(x)

        for _ in range(2):
            add()
            where = seen
        return x

    def returned(x):
        def give():
            return seen

        give().append(x)
        return x

    def shallow(x):
        mine = dict(settings)
        mine["names"].append(x)
        return x

    def through_rows(x):
        for row in rows:
            row.append(x)
        return x

    def through_many(x):
        for row in many:
            row.append(x)
        return x

    def row_in_place(i):
        row = matrix[i]
        row += 1
        return row

    def view(x):
        flat = matrix.reshape(-1)
        flat[0] = x
        return x

    def same_array(x):
        mine = np.asarray(buffer)
        mine[0] = x
        return mine

    def inner_function(x):
        def add(y):
            seen.append(y)

        add(x)
        return x

    def comprehension(x):
        return [seen.append(y) for y in x]

    def handed_over(x):
        return list(map(lambda y: seen.append(y), x))  # noqa: C417 - the case it is about

    def writes_file(path):
        with open(path, "w") as file:  # noqa: PTH123 - the case it is about
            file.write("x")

    def mode_by_name(path):
        return open(path, mode="ab")  # noqa: PTH123 - the case it is about

    def in_except(x):
        try:
            return int(x)
        except ValueError:
            seen.append(x)
            return 0

    def in_finally(x):
        try:
            return int(x)
        finally:
            seen.append(x)

    def holds(x):
        with lock:
            return x

    def manages(x):
        with Writing():
            return x

    def defines_class(x):
        class Inner:
            pass

        return Inner

    def loops_over_set(text):
        return [word for word in set(text)]  # noqa: C416 - the case it is about

    def yields(x):
        yield x

    async def waits(x):
        return x

    def default(x, found=[]):  # noqa: B006 - the mistake it is about
        found.append(x)
        return x

    def keyword_default(x, *, found={}):  # noqa: B006 - the mistake it is about
        found[x] = 1
        return x

    return {
        "append": (lambda x: seen.append(x) or x, "it appends to `seen`"),
        "helper appends": (lambda x: put(seen, x), "it calls `put`, which appends to `seen`"),
        "nonlocal": (assigns_outside, "it assigns to `count`"),
        "global": (assigns_global, "it assigns to `ASCII`, a global"),
        "another name": (aliased, "appends to `seen`"),
        "in a tuple": (aliased_in_a_tuple, "appends to an object in `seen`"),
        "one of two": (chosen, "appends to `seen`"),
        "in a container": (in_a_container, "appends to an object in `seen`"),
        "put in by item": (put_by_item, "stores `seen` in an object"),
        "put in by attribute": (put_by_attribute, "stores `seen` in an object"),
        "put in by method": (put_by_method, "stores `seen` in an object"),
        "put in for the next turn": (put_late, "stores `seen` in an object"),
        "set for the next call": (cell_set_late, "appends to `seen`"),
        "returned": (returned, "appends to `seen`"),
        "partial made here": (lambda x: functools.partial(put, seen)(x), "it calls `put`, which appends to"),
        "given by a partial": (lambda x: functools.partial(identity, seen)().append(x), "passes on `identity`"),
        "method caller": (lambda x: operator.methodcaller("append", x)(seen), "known only at run time"),
        "handed to something of its own": (lambda x: x(seen), "passes `seen` to a function"),
        "class of an object": (lambda x: setattr(type(vocab), "n", x), "passes on `vocab`"),
        "class attribute by object": (lambda x: vocab.__class__.known.update(x), "uses .known"),
        "dict of an object": (lambda x: vocab.__dict__.update(n=x), "updates an object in `vocab.__dict__`"),
        "descriptor": (lambda x: described.value, "with code of its class"),
        "table of another module": (lambda x: this.TABLE[x], "reads `TABLE`"),
        "readinto": (lambda x: x.readinto(data), "passes `data` to .readinto"),
        "shallow copy": (shallow, "appends to"),
        "rows of a list": (through_rows, "appends to"),
        "rows of a long list": (through_many, "appends to an object in `many`"),
        "dict item": (lambda x: vocabulary.__setitem__(x, 1), "vocabulary"),
        "dict setdefault": (lambda x: vocabulary.setdefault(x, len(vocabulary)), "may add to `vocabulary`"),
        "dict update": (lambda x: vocabulary.update({x: 1}), "updates `vocabulary`"),
        "deep append": (lambda x: settings["names"].append(x), "appends to `settings['names']`"),
        "defaultdict": (lambda x: groups[x], "a defaultdict"),
        "missing": (lambda x: growing[x], "writes into `growing`"),
        "deque": (lambda x: recent.append(x), "appends to `recent`"),
        "counter": (lambda x: counts.update([x]), "updates `counts`"),
        "set": (lambda x: letters.add(x), "adds to `letters`"),
        "bytearray": (lambda x: data.extend(x), "extends `data`"),
        "array item": (lambda x: buffer.__setitem__(0, x), "buffer"),
        "array row in place": (row_in_place, "`matrix`"),
        "array in place": (lambda x: changes(buffer), "changes `buffer`"),
        "array view": (view, "writes into `matrix`"),
        "asarray": (same_array, "writes into `buffer`"),
        "out": (lambda x: np.add(x, 1, out=buffer), "changes `buffer` (`numpy.add`)"),
        "out by place": (lambda x: np.add(x, 1, buffer), "changes `buffer` (`numpy.add`)"),
        "out by place of a function": (lambda x: np.clip(x, 0, 1, buffer), "changes `buffer` (`numpy.clip`)"),
        "out among all arguments": (lambda x, more=(1, buffer): np.add(x, *more), "passes `more[…]` to `numpy.add`"),
        "out of a method": (lambda x: x.sum(out=buffer), "passes `buffer` to .sum"),
        "copyto": (lambda x: np.copyto(buffer, x), "changes `buffer`"),
        "fill": (lambda x: buffer.fill(x), "fills `buffer`"),
        "heap": (lambda x: heapq.heappush(seen, x), "changes `seen`"),
        "delete": (lambda x: operator.delitem(seen, 0), "changes `seen`"),
        "method of the class": (lambda x: list.append(seen, x), "appends to `seen`"),
        "getattr": (lambda x: getattr(seen, "append")(x), "known only at run time"),  # noqa: B009 - the case it is about
        "getattr by name": (lambda x: getattr(seen, x)(x), "known only at run time"),
        "setattr": (lambda x: setattr(holder, "n", x), "changes `holder`"),
        "object setattr": (lambda x: object.__setattr__(holder, "n", x), "holder"),
        "inner function": (inner_function, "appends to `seen`"),
        "comprehension": (comprehension, "appends to `seen`"),
        "handed over": (handed_over, "appends to `seen`"),
        "bound method handed over": (lambda x: list(map(seen.append, x)), "appends to `seen`"),
        "sort key": (lambda x: sorted(x, key=seen.append), "appends to `seen`"),
        "bound method": (seen.append, "appends to"),
        "partial": (functools.partial(put, seen), "appends to"),
        "default argument": (default, "appends to `found`"),
        "keyword default": (keyword_default, "writes into `found`"),
        "exception handler": (in_except, "appends to `seen`"),
        "finally": (in_finally, "appends to `seen`"),
        "attribute": (lambda x: vocab.counted(x), "`vocab.counted`, which assigns to an attribute, missed, of `vocab`"),
        "attribute's list": (lambda x: vocab.logged(x), "appends to"),
        "method of a method": (vocab.indirect, "appends to"),
        "class attribute": (lambda x: Vocabulary.learn(x), "writes into"),
        "slots": (lambda x: slotted.writes(x), "appends to"),
        "made object": (lambda x: Counting(x), "more than a data class"),
        "getattr of a class": (lambda x: strange.anything, "with code of its class"),
        "super": (Derived({}).number, "super()"),
        "function attribute": (lambda x: setattr(plain, "last", x), "changes `plain`"),
        "print": (lambda x: print(x), "it prints"),
        "helper of a helper": (through, "it calls `noisy`, which prints"),
        "input": (lambda x: input(), "terminal"),
        "standard output": (lambda x: sys.stdout.write(x), "sys.stdout"),
        "logging": (lambda x: logging.info(x), "logs"),
        "logger": (lambda x: logger.info(x), "`logger`"),
        "open for writing": (writes_file, "opens a file for writing"),
        "open by name": (mode_by_name, "opens a file for writing"),
        "path written": (lambda x: pathlib.Path("p").write_text(x), "calls .write_text"),
        "np.save": (lambda x: np.save("p", x), "changes files"),
        "tofile": (lambda x: x.tofile("p"), "calls .tofile"),
        "time": (lambda x: time.time(), "reads the clock"),
        "now": (lambda x: dt.datetime.now().year, "reads the clock"),
        "random": (lambda x: random.random(), "draws random numbers"),
        "shuffle": (lambda x: random.shuffle(x), "draws random numbers"),
        "np.random": (lambda x: np.random.rand(), "draws random numbers"),
        "unseeded generator": (lambda x: np.random.default_rng().normal(), "draws random numbers"),
        "generator": (lambda x: generator.normal(), "draws random numbers from `generator`"),
        "random state": (lambda x: old_generator.rand(), "draws random numbers from `old_generator`"),
        "own random": (lambda x: own_random.random(), "draws random numbers from `own_random`"),
        "uuid": (lambda x: uuid.uuid4().hex, "draws random numbers"),
        "process": (lambda x: os.getpid(), "operating system"),
        "environment": (lambda x: os.environ["HOME"], "os.environ"),
        "thread": (lambda x: threading.get_ident(), "threads"),
        "hash of a text": (lambda x: hash(x), "process"),
        "identity": (lambda x: id(x), "process"),
        "order of a set": (loops_over_set, "depends on the order of a set"),
        "list of a set": (lambda x: list(set(x)), "depends on the order of a set"),
        "joined set": (lambda x: " ".join({*x}), "depends on the order of a set"),
        "captured set": (lambda x: [letter for letter in letters], "depends on the order of a set"),  # noqa: C416 - the case it is about
        "count": (lambda x: next(numbers), "takes items from the iterator `numbers`"),
        "iterator": (lambda x: list(zip(x, values)), "takes items from the iterator `values`"),  # noqa: B905
        "lazy": (lambda x: sum(lazy), "takes items from the iterator `lazy`"),
        "lock": (holds, "`lock`"),
        "event": (lambda x: event.is_set(), "`event`"),
        "thread local": (lambda x: local.__dict__, "`local`"),
        "queue": (lambda x: jobs.put(x), "`jobs`"),
        "with block": (manages, "more than a data class"),
        "open file": (lambda x: sys.stdin.read(), "sys.stdin"),
        "eval": (lambda x: eval(x), "known only at run time"),
        "class statement": (defines_class, "source text"),
        "generator function": (yields, "generator"),
        "coroutine": (waits, "coroutine"),
        "unknown library": (lambda x: asyncio.run(x), "threads"),
        "accelerator": (lambda x: torch.relu(x), "accelerator"),
        "many functions": (lambda x: unknown[x](x), "passes on `unknown`"),
        "undefined": (lambda x: not_there(x), "not defined yet"),  # noqa: F821 - the case it is about
        "large": (lambda x, by=np.zeros(9 << 20): by[x], "more than 64 MiB"),  # noqa: B008 - the case it is about
        "cannot be pickled": (lambda x, by=weakref.ref(Sample): by is x, "cannot be pickled"),  # noqa: B008 - the case it is about
        "a table of a module that is imported": (looks_up, "reads `TABLE`: another process imports"),
        "the same, by a method": (lambda x: Sluggish().reads(x), "more than a data class"),
        "a global that a function sets": (lambda x: scaled(x), "reads `SCALE`, to which `configure` assigns"),
    }


TABLE = {"a": [1]}
SCALE = 1


def looks_up(x):
    return TABLE[x]


def configure(scale):
    global SCALE
    SCALE = scale


def scaled(x):
    return x * SCALE


class Sluggish:
    def reads(self, x):
        return TABLE[x]


OTHER_REASONS = {  # for these functions of KEPT, the walk finds another reason before it reaches `seen`
    "known in items": "stores `seen_to` in an object",
    "attribute": "more than a data class",
    "added": "passes on `left_of`",
    "arguments": "known only at run time",
    "match": "not analysed (Match)",
}
SHIPPABLE, STAYING = _shippable()
VISIBLE = _visible()
KEPT = _kept()


@pytest.mark.parametrize("name", SHIPPABLE)
def test_functions_that_leave_no_trace_may_go(name):
    assert why_not_shippable(SHIPPABLE[name]) is None


@pytest.mark.parametrize("name", STAYING)
def test_some_functions_stay_though_they_only_compute(name):
    function, part = STAYING[name]
    assert part in why_not_shippable(function)


@pytest.mark.parametrize("name", VISIBLE)
def test_what_could_be_noticed_is_said(name):
    function, part = VISIBLE[name]
    why = why_not_shippable(function)
    assert why is not None
    assert part in why


@pytest.mark.parametrize("name", KEPT)
def test_a_function_that_is_kept_is_looked_through(name):
    why = why_not_shippable(KEPT[name])
    assert why is not None
    assert OTHER_REASONS.get(name, "appends to `seen`") in why


def test_nothing_is_called():
    class Touchy:
        def __getattribute__(self, name):
            raise AssertionError(name)

        def __reduce__(self):
            return (int, ())

    def touched(x):
        raise AssertionError

    touchy = Touchy()
    assert "with code of its class" in why_not_shippable(lambda x: touchy.value)
    assert why_not_shippable(lambda x: touched(x)) is None


def test_a_verdict_follows_what_the_function_reads():
    def build():
        helper = plain

        def function(x):
            return helper(x)

        def replace(other):
            nonlocal helper
            helper = other

        return function, replace

    function, replace = build()
    assert why_not_shippable(function) is None
    replace(noisy)
    assert why_not_shippable(function) == "it calls `helper`, which prints"


def test_it_is_remembered_and_forgotten_with_the_function():

    def function(x):
        return x

    why_not_shippable(function)
    gone = weakref.ref(function)
    assert "shippable" in notes_of(function)
    del function
    gc.collect()
    assert gone() is None


def test_functions_that_call_each_other_come_to_an_end():
    def ping(x):
        return pong(x - 1) if x else 0

    def pong(x):
        return ping(x - 1) if x else 1

    assert why_not_shippable(ping) is None


def test_a_long_function_is_not_looked_through():
    source = "def f(x):\n" + "    x = x + 1\n" * 9000 + "    return x\n"
    names = sources.executed(source)
    assert "too long to be analysed" in why_not_shippable(names["f"])

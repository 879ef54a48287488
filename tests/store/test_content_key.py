"""Keys: the properties that distinguish two snapshots, and those that do not."""

import array
import collections
import contextvars
import copyreg
import dataclasses
import datetime as dt
import enum
import fractions
import functools
import importlib
import itertools
import operator
import re
import struct
import subprocess
import sys
import threading
import types
import weakref
from pathlib import Path

import cv2
import fsspec
import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import BytesColumn, DenseColumn
from penstock.block.structure import Structure
from penstock.plan.inputs import Scan
from penstock.plan.ops import Prefetch
from penstock.store.chunk import Chunk
from penstock.store.content_key.made_of import made_of
from penstock.store.manifest import Manifest
from penstock.store.saved_source import SavedSource

RANGE = ps.Dataset.range

SCALE = 2


def scaled(x):
    return helper(x) * SCALE


def helper(x):
    return x + 1


class Adder:
    def __init__(self, by):
        self.by = by
        self.lock = threading.Lock()

    def __call__(self, x):
        return x + self.by


class Heir(Adder):
    """Its code is in its base class."""


@dataclasses.dataclass(frozen=True)
class Scaler:
    by: int

    def __call__(self, x):
        return self.scaled(x)

    def scaled(self, x):
        return x * self.by


def key(dataset):
    return made_of(dataset._plan).key


def slices(values, dtype=np.int64):
    return ps.Dataset.from_tensor_slices(np.array(values, dtype))


def adding(by):
    return RANGE(3).map(lambda x: x + by)


def named(by):
    return RANGE(3).map(lambda x: str(by))


def nested(ds):
    return RANGE(3).flat_map(lambda x: ds)


def looked_up(many):
    return RANGE(3).map(lambda x: many[int(x)])


DIFFERENT = {
    "the contents of arrays": (slices([1, 2]), slices([1, 3])),
    "the contents of byte strings": (slices([b"a", b"b"], object), slices([b"a", b"c"], object)),
    "dtypes": (slices([1, 2]), slices([1, 2], np.uint64)),
    "closures": (adding(1), adding(2)),
    "paths": (named(Path("a")), named(Path("b"))),
    "data sets": (nested(RANGE(1)), nested(RANGE(2))),
    "the fields of objects": (RANGE(3).map(Adder(1)), RANGE(3).map(Adder(2))),
    "partial arguments": (RANGE(3).map(functools.partial(max, 1)), RANGE(3).map(functools.partial(max, 2))),
    "bound methods' objects": (RANGE(3).map(Scaler(1).scaled), RANGE(3).map(Scaler(2).scaled)),
    "sets": (named(frozenset([1, 2])), named(frozenset([1, 3]))),
    "parameters": (RANGE(3).batch(2), RANGE(3).batch(2, drop_remainder=True)),
    "the order of steps": (RANGE(4).map(scaled).skip(2), RANGE(4).skip(2).map(scaled)),
    "late items of lists": (looked_up([*range(3000), 1]), looked_up([*range(3000), 2])),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_another_content_is_another_snapshot(name):
    one, other = DIFFERENT[name]
    assert key(one) != key(other)
    assert key(one) == key(one)


class Listed(list):
    """A list with an attribute."""

    def __init__(self, by):
        super().__init__([1])
        self.by = by


class Named(dict):
    def __init__(self, by):
        super().__init__(a=1)
        self.by = by


class Viewed(np.ndarray):
    """An array with an attribute, which numpy does not copy with it."""


class Copied:
    """Its state is more than the part that copying takes."""

    def __init__(self, by):
        self.by = by

    def __reduce__(self):
        return Copied, (0,)


class Pared(Copied):
    __reduce__ = object.__reduce__

    def __getstate__(self):
        return {}


def viewed(by):
    found = np.zeros(2).view(Viewed)
    found.by = by
    return found


def counted(by):
    """An integer of its own class."""
    return type("Counted", (int,), {"by": by})(3)


def of_kind(by):
    return type("Kind", (type,), {"by": by})("Made", (), {})


def referred(by):
    HELD.append(Adder(by))
    return weakref.ref(HELD[-1])


HELD = []
KINDS = {
    "struct.Struct": lambda by: struct.Struct("<iq"[:by] + "i"),
    "a read-only mapping": lambda by: types.MappingProxyType({"a": by}),
    "the order of a named tuple's fields": lambda by: collections.namedtuple("Pair", ["a", "b"][:: by - 1 or -1])(1, 1),
    "the items of a named tuple": lambda by: collections.namedtuple("Pair", ["a", "b"])(1, by),
    "a view of memory": lambda by: memoryview(bytes([by])),
    "the order of an array in memory": lambda by: np.asarray(np.ones((2, 3)), order="CF"[by - 1]),
    "a defaultdict's factory": lambda by: collections.defaultdict([int, float][by - 1]),
    "the items of a defaultdict": lambda by: collections.defaultdict(int, a=by),
    "an attribute of a list": Listed,
    "an attribute of a dict": Named,
    "an attribute of an array": viewed,
    "a class derived from int": counted,
    "a class of a class": of_kind,
    "__reduce__ of one's own": Copied,
    "__getstate__ of one's own": Pared,
    "a weak reference": referred,
    "a ContextVar's default": lambda by: contextvars.ContextVar("by", default=by),
    "bytearray": lambda by: bytearray([by]),
    "array.array": lambda by: array.array("b", [by]),
    "a deque's length": lambda by: collections.deque([1], maxlen=by),
    "a counter": lambda by: collections.Counter(a=by),
    "an enumeration": lambda by: enum.Enum("Colour", ["red", "blue"])(by),
    "a slice": lambda by: slice(by),
    "a range": lambda by: range(by),
    "a date": lambda by: dt.timedelta(by),
    "a pattern": lambda by: re.compile("a" * by),
    "a namespace": lambda by: types.SimpleNamespace(by=by),
    "a fraction": lambda by: fractions.Fraction(1, by + 1),
    "an operator": lambda by: operator.itemgetter(by),
    "a numpy scalar": lambda by: np.float32(by),
    "a dtype": lambda by: np.dtype([("a", "<i4"), ("b", "<f4")][:by]),
    "a function that remembers": lambda by: functools.lru_cache(lambda x: x + by),
    "a chain of dicts": lambda by: collections.ChainMap({}, {"a": by}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_captured_value_of_any_kind_counts_by_its_content(kind):
    made = [KINDS[kind](by) for by in (1, 2, 1)]
    one, other, again = (key(named(value)) for value in made)
    assert one == again != other


def test_a_key_that_cannot_see_a_value_is_unique():
    one, other = cv2.createCLAHE(2.0), cv2.createCLAHE(3.0)
    assert key(named(one)) == key(named(one)) != key(named(other))


ALIKE = {
    "who works": (RANGE(3).map(scaled), RANGE(3).map(scaled, num_parallel_calls=4, executor="thread")),
    "what is made ahead": (RANGE(3).map(scaled).batch(2), RANGE(3).map(scaled).prefetch(2).batch(2)),
    "equal objects": (RANGE(3).map(Adder(1)), RANGE(3).map(Adder(1))),
    "the order in which sets are made": (named({"a", "b", "c"}), named({"c", "b", "a"})),
}


@pytest.mark.parametrize("name", ALIKE)
def test_what_gives_the_same_elements_is_the_same(name):
    one, other = ALIKE[name]
    assert key(one) == key(other)


@pytest.mark.parametrize(("owner", "made"), [(Adder, Heir(1)), (Scaler, Scaler(1))])
def test_the_methods_of_an_object_count(owner, made, monkeypatch):
    before = key(RANGE(3).map(made))
    monkeypatch.setattr(owner, "scaled" if owner is Scaler else "__call__", lambda self, x: x)
    assert key(RANGE(3).map(made)) != before


def compiled(text):
    """Compile a function of the user from its source."""
    names = {"__name__": "__main__"}
    exec(compile(text, "train.py", "exec"), names)
    return names["function"]


def of_text(text):
    return key(RANGE(3).map(compiled(text)))


def test_where_a_function_stands_and_what_is_said_of_it_do_not_count():
    plain = of_text("def function(x):\n    return x + 1")
    assert plain == of_text("\n\n# moved\ndef function(x):\n    # said\n    return x + 1")
    documented = of_text("def function(x):\n    'one'\n    return x + 1")
    assert documented == of_text("def function(x):\n    'another'\n    return x + 1")
    used = of_text("def function(x):\n    'one'\n    return 'one'")
    assert used != of_text("def function(x):\n    'two'\n    return 'two'")


@pytest.fixture
def a_module(tmp_path, monkeypatch):
    """Write and import a module of the user."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(text):
        sys.modules.pop("steps_of_mine", None)
        path = tmp_path / "steps_of_mine.py"
        path.write_text(text)
        # the cached file may be of the same second
        Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
        importlib.invalidate_caches()
        return importlib.import_module("steps_of_mine")

    yield write
    sys.modules.pop("steps_of_mine", None)


def test_what_a_function_uses_of_the_users_modules_counts(a_module):
    def with_module(text):
        return key(RANGE(3).map(a_user_of(a_module(text))))

    first = with_module("def used(x): return x + 1\ndef other(x): return x")
    assert first == with_module("def used(x): return x + 1\ndef other(x): return 2 * x")
    assert first != with_module("def used(x): return x + 2\ndef other(x): return x")


def a_user_of(module):
    names = {"__name__": "__main__", "steps": module}
    exec("def function(x): return steps.used(x)", names)
    return names["function"]


def test_a_module_that_is_imported_by_the_function_counts_before_and_after_it_is_loaded(a_module):
    text = "def function(x):\n    from steps_of_mine import used\n    return used(x)"
    a_module("def used(x): return x + 1")
    loaded = of_text(text)
    del sys.modules["steps_of_mine"]
    assert of_text(text) == loaded
    assert "steps_of_mine" not in sys.modules
    a_module("def used(x): return x + 2")
    assert of_text(text) != loaded


@pytest.mark.parametrize(
    "line", ["from mine_of_steps.inner import used", "import mine_of_steps.inner", "from mine_of_steps import inner"]
)
def test_modules_inside_packages_count(line, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "mine_of_steps"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    (package / "inner.py").write_text("used = 1")
    text = f"def function(x):\n    {line}\n    return x"
    before = of_text(text)
    (package / "inner.py").write_text("used = 2")
    assert of_text(text) != before


def test_a_key_is_the_same_in_every_process():
    program = (
        "import penstock as ps, re\n"
        "from penstock.store.content_key.made_of import made_of\n"
        "WORDS = {'a', 'b', 'c', 'd'}\n"
        "class Kept:\n    names = {'x', 'y', 'z'}\n    def __call__(self, x): return x in {'u', 'v', 'w'}\n"
        "def kept(x): return x in WORDS and re.match('a', str(x))\n"
        "print(made_of(ps.Dataset.range(3).filter(kept).map(Kept())._plan).key)"
    )
    run = [sys.executable, "-c", program]
    keys = {subprocess.run(run, capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert len(keys) == 1


def test_the_values_and_functions_that_a_function_uses_count(monkeypatch):
    keys = [key(RANGE(3).map(scaled))]
    monkeypatch.setitem(globals(), "SCALE", 3)
    keys.append(key(RANGE(3).map(scaled)))
    monkeypatch.setitem(globals(), "helper", lambda x: x + 2)
    keys.append(key(RANGE(3).map(scaled)))
    assert len(set(keys)) == 3


def test_a_file_that_changes_is_another_content(tmp_path):
    def write(*records):
        with ps.io.TFRecordWriter(tmp_path / "a") as writer:
            for record in records:
                writer.write(record)
        return key(ps.TFRecordDataset(str(tmp_path / "a")))

    assert write(b"a") != write(b"a", b"b")


NAMED_BY = {
    "list_files": lambda name: ps.Dataset.list_files(f"{name.parent}/*.txt"),
    "the user": lambda name: ps.Dataset.from_tensor_slices([str(name)]),
    "the user, beside labels": lambda name: ps.Dataset.from_tensor_slices((np.arange(1), [str(name)])),
    "the user, with a mask": lambda name: ps.Dataset.from_tensor_slices({"a": [__file__], "b": [str(name)]}),
    "one tensor": lambda name: ps.Dataset.from_tensors([str(name), str(name)]),
}


@pytest.mark.parametrize("named_by", NAMED_BY)
def test_files_count_whose_names_are_in_elements(named_by, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one")
    before = made_of(NAMED_BY[named_by](path)._plan)
    assert made_of(NAMED_BY[named_by](path)._plan).key == before.key
    assert str(path) in [name for name, *_ in before.sources]
    path.write_text("another")
    assert made_of(NAMED_BY[named_by](path)._plan).key != before.key


def test_files_on_servers_are_known_by_what_the_server_says():
    file_system = fsspec.filesystem("memory")
    names = [f"memory://keys/{number}.txt" for number in range(3)]
    for name in names:
        file_system.pipe(name, b"one")
    made = made_of(ps.TextLineDataset(names)._plan)
    assert [(name, size) for name, size, _ in made.sources] == [(name, 3) for name in names]
    assert all(version for _, _, version in made.sources)
    file_system.pipe(names[1], b"another")
    assert made_of(ps.TextLineDataset(names)._plan).key != made.key
    file_system.rm(names[1])
    assert made_of(ps.TextLineDataset(names)._plan).sources[1] == (names[1], -1, "")


def test_a_mapped_array_is_known_by_its_file(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(10))
    keys = [key(ps.Dataset.from_tensor_slices(np.load(tmp_path / "a.npy", mmap_mode="r")[i:5])) for i in (0, 1, 0)]
    np.save(tmp_path / "a.npy", np.arange(11))
    keys.append(key(ps.Dataset.from_tensor_slices(np.load(tmp_path / "a.npy", mmap_mode="r")[:5])))
    assert keys[0] == keys[2]
    assert len(set(keys)) == 3


class ArrayOfOthers:
    """An array of another library: a copy includes its address in memory."""

    __module__ = "another_library"

    def __init__(self, numbers, dtype="int64"):
        self.numbers = np.array(numbers, dtype)
        self.dtype = dtype

    def __dlpack__(self):
        raise BufferError

    def __array__(self, dtype=None, copy=None):
        return self.numbers

    def __reduce_ex__(self, protocol):
        return object, (), {"lies at": id(self.numbers)}


class Narrow(ArrayOfOthers):
    """Numbers without a numpy dtype, together with numbers that need a gradient."""

    __module__ = "another_library"

    def __init__(self, numbers):
        super().__init__(numbers, "float32")
        self.dtype = "bfloat16"

    def __array__(self, dtype=None, copy=None):
        raise TypeError

    def detach(self):
        return self

    def cpu(self):
        return self

    def float(self):
        return self.numbers


@pytest.mark.parametrize("kind", [ArrayOfOthers, Narrow])
def test_arrays_of_other_libraries_are_known_by_their_numbers(kind, monkeypatch):
    library = types.ModuleType("another_library")
    library.__file__ = str(Path(np.__file__).parents[1] / "another_library.py")
    monkeypatch.setitem(sys.modules, "another_library", library)
    one, same, other = kind([1, 2]), kind([1, 2]), kind([1, 3])
    assert key(named(one)) == key(named(same)) != key(named(other))
    assert key(named([one])) == key(named([same])) != key(named([other]))


def test_dtypes_of_other_libraries_arrays_count():
    assert key(named(ArrayOfOthers([1]))) != key(named(ArrayOfOthers([1], "int32")))


class Unruly:
    def __getattr__(self, name):
        raise RuntimeError(name)

    def __reduce_ex__(self, protocol):
        raise RuntimeError


@pytest.mark.parametrize(
    "strange",
    [
        itertools.count(),
        (x for x in range(3)),
        threading.Lock(),
        Unruly(),
        sys,
        enum.Enum("Colour", "RED BLUE").RED,
        np.ma.array([1, 2]),
        collections.deque([1]),
        functools.lru_cache(helper),
        np.array([None, [1]], object),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_all_kinds_have_a_key(strange):
    assert key(named(strange)) == key(named(strange)) != key(named(None))


def test_a_container_that_holds_itself_has_a_key():
    endless = [1]
    endless.append(endless)
    assert len(key(RANGE(3).map(lambda x: endless[0]))) == 32


@pytest.mark.parametrize("ds", [ps.Dataset.from_list([1, 2, 3]), ps.Dataset.from_list([{"a": "x"}, {"a": "yz"}])])
def test_a_key_does_not_depend_on_how_blocks_are_sent_to_processes(ds, monkeypatch):
    """The module that sends Blocks is loaded only when it is needed, so another process would not find the cache."""
    for kind in (Block, Structure, DenseColumn, BytesColumn):
        monkeypatch.delitem(copyreg.dispatch_table, kind, raising=False)
    before = key(ds)
    for kind in (Block, Structure, DenseColumn, BytesColumn):
        monkeypatch.setitem(copyreg.dispatch_table, kind, lambda value: (len, (str(value),)))
    assert key(ds) == before


def test_what_only_copyreg_can_copy_counts_by_what_it_is():
    expressions = [re.compile("a+"), re.compile("a+"), re.compile("b")]
    keys = [key(RANGE(3).map(functools.partial(re.Pattern.sub, one))) for one in expressions]
    assert keys[0] == keys[1] != keys[2]
    assert key(RANGE(3).map(np.negative)) != key(RANGE(3).map(np.abs))


def test_the_key_of_a_saved_data_set_is_that_of_earlier_versions():
    """Its classes have moved. The cache still finds earlier entries over it."""
    chunk = Chunk("chunks/0.arrow", 0, 3, 3, 8, (1,))
    manifest = Manifest("key", "run", None, None, (chunk,), created="then", penstock="0.1")
    source = SavedSource("folder", manifest, ps.TensorSpec((), np.int64), (0,))
    assert made_of(Prefetch(input=Scan(source=source), buffer_size=1)).key == "3aaa709382219972619487208f65f3a1"
    assert made_of(source).key == "5ef28cf13c418bcafb97aeed97d3f39f"


def test_an_object_of_the_user_is_no_step():
    class Setting:
        changes_elements = True

    assert made_of(Setting()).parts[0].text == "value = Setting object"

"""The policies on a user's function never contradict each other. A table of functions shows it.

Each implication is stated once, and is true for each function of the table. The header of a function lists its facts:
`pure` (may run on tracers), `ships` (AUTOTUNE may move it to another process), `draws` (random by its element),
`random` (lint calls it random), `state` (lint: it assigns outside of itself), `numpy` (lint: plain numpy). `change()`
changes a value that the function depends on.
"""

import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.functions import sources

import penstock as ps
from penstock.block.column import DenseColumn
from penstock.block.structure import LEAF
from penstock.functions.facts import why_visible
from penstock.functions.shipping import unpicklable, why_not_shippable
from penstock.functions.uses import keeps_state, takes_lock, uses
from penstock.plan.fingerprint import fingerprint
from penstock.profiler.lint.natures import draws_by_itself, only_numpy, randomness
from penstock.store.content_key.made_of import made_of
from penstock.trace.purity import captured, may_draw, why_impure
from penstock.trace.traced import traced

TABLE = """
== arithmetic: pure ships numpy
f = lambda x: x * 2 + 1

== a_global_number: pure ships numpy
SIZE = 3
f = lambda x: x * SIZE
def change():
    global SIZE
    SIZE = 4

== a_closure: pure ships numpy
def made(by):
    def f(x): return x + by
    def change():
        nonlocal by
        by = 7
    return f, change
f, change = made(5)

== a_default: pure ships numpy
def f(x, by=2): return x * by
def change(): f.__defaults__ = (3,)

== a_keyword_default: pure ships numpy
def f(x, *, by=2): return x * by
def change(): f.__kwdefaults__ = {"by": 3}

== a_partial: pure ships numpy
f = functools.partial(lambda x, by: x * by, by=2)
def change(): f.keywords["by"] = 3

== a_helper: pure ships numpy
def half(x): return x / 2
def f(x): return half(x) + 1
def change():
    global half
    half = lambda x: x / 4

== a_helper_of_a_helper: pure ships numpy
SCALE = 2
def inner(x): return x * SCALE
def outer(x): return inner(x) + 1
f = lambda x: outer(x)
def change():
    global SCALE
    SCALE = 3

== an_array_that_is_read: pure ships numpy
MEAN = np.arange(3.0)
f = lambda x: x - MEAN[0]
def change(): MEAN[0] = 9

== an_array_that_is_written:
SUMS = np.zeros(3)
def f(x):
    SUMS[0] += 1
    return x
def change(): SUMS[0] = 9

== a_dict_that_is_read: pure ships
TABLE = {"a": 1, "b": 2}
f = lambda x: x * TABLE["a"]
def change(): TABLE["a"] = 5

== a_dict_that_is_written:
COUNTS = {}
def f(x):
    COUNTS["n"] = COUNTS.get("n", 0) + 1
    return x
def change(): COUNTS["n"] = 5

== a_list_that_is_read: pure ships
WEIGHTS = [1.0, 2.0]
f = lambda x: x * WEIGHTS[1]
def change(): WEIGHTS[1] = 3.0

== a_list_that_is_appended_to:
SEEN = []
def f(x):
    SEEN.append(x)
    return x
def change(): SEEN.append(1)

== an_append_under_another_name:
SEEN = []
def f(x):
    note = SEEN.append
    note(x)
    return x

== an_append_in_a_helper:
SEEN = []
def note(x): SEEN.append(x)
def f(x):
    note(x)
    return x

== an_append_to_what_a_local_list_holds:
SEEN = []
def f(x):
    rows = [SEEN]
    rows[0].append(x)
    return x

== a_list_of_its_own: pure ships
def f(x):
    found = []
    for i in range(3):
        found.append(x + i)
    return found[0]

== a_vocabulary: ships
WORDS = {b"the": 1, b"a": 2}
def f(text):
    ids = []
    for word in text.split():
        ids.append(WORDS.get(word, 0))
    return ids
def change(): WORDS[b"of"] = 3

== rows_from_a_vocabulary: ships
WORDS = {b"the": 1}
def f(text):
    out = np.zeros(4)
    for i, word in enumerate(text.split()[:4]):
        out[i] = WORDS.get(word, 0)
    return out
def change(): WORDS[b"of"] = 3

== a_global_counter: state
N = 0
def f(x):
    global N
    N += 1
    return x
def change():
    global N
    N = 9

== a_nonlocal_counter: state
def made():
    n = 0
    def f(x):
        nonlocal n
        n += 1
        return x
    return f
f = made()

== an_attribute_of_the_function: state
def f(x):
    f.last = x
    return x

== an_attribute_of_a_global: state
class Log: pass
LOG = Log()
def f(x):
    LOG.last = x
    return x
def change(): LOG.last = 5

== an_attribute_of_its_own_object:
class Row:
    def __init__(self, value): self.value = value
def f(x):
    return Row(x).value

== a_field_of_its_own_data_class: ships
import dataclasses
@dataclasses.dataclass
class Row: value: object
def f(x):
    return Row(x).value

== prints:
def f(x):
    print(x)
    return x

== logs:
import logging
LOG = logging.getLogger("penstock.test")
def f(x):
    LOG.info("x")
    return x

== writes_a_file:
def f(x):
    open("/nowhere", "w")
    return x

== saves_an_array:
def f(x):
    np.save("/nowhere.npy", x)
    return x

== changes_numpy:
def f(x):
    np.seterr(all="ignore")
    return x

== fills_a_global_array:
BUFFER = np.zeros(3)
def f(x):
    np.copyto(BUFFER, x)
    return BUFFER + 0
def change(): BUFFER[0] = 1

== sorts_a_global_array:
BUFFER = np.zeros(3)
def f(x):
    BUFFER.sort()
    return x

== an_output_argument:
BUFFER = np.zeros(3)
def f(x): return np.add(x, 1, out=BUFFER)

== reads_the_clock: random
import time
def f(x): return x + time.time()

== draws_from_numpy: random
def f(x): return x + np.random.rand()

== draws_from_random: random
import random
def f(x): return x + random.random()

== draws_from_a_global_generator: random
RNG = np.random.default_rng(0)
def f(x): return x + RNG.integers(3)

== draws_from_a_seeded_generator: ships
def f(x):
    rng = np.random.default_rng(int(x))
    return x + rng.integers(3)

== draws_by_the_element: ships random
def f(x):
    rng = np.random.default_rng(ps.element_key())
    return x + rng.integers(3)

== flips_at_random: pure ships draws random
f = lambda x: ps.image.random_flip_left_right(x)

== a_uuid: random
import uuid
def f(x): return x + uuid.uuid4().int % 2

== a_hash:
f = lambda x: x + hash("a") % 2

== a_lock: lock
import threading
LOCK = threading.Lock()
def f(x):
    with LOCK:
        return x

== an_open_file:
import io
HANDLE = io.BytesIO(b"ab")
def f(x): return x + len(HANDLE.read(1))

== an_iterator:
ROWS = iter(range(9))
def f(x): return x + next(ROWS)

== a_generator_object:
ROWS = (i for i in range(9))
def f(x): return x + next(ROWS)

== yields:
def f(x):
    yield x

== a_coroutine:
async def f(x):
    return x

== a_class_inside:
def f(x):
    class Inner: pass
    return x

== evaluates:
def f(x): return eval("x")

== a_regular_expression: ships
PATTERN = re.compile("a+")
def f(text): return len(PATTERN.findall(text.decode()))
def change():
    global PATTERN
    PATTERN = re.compile("b+")

== a_ufunc_under_a_name: pure ships numpy
work = np.exp
f = lambda x: work(x)
def change():
    global work
    work = np.log

== json: ships
import json
f = lambda text: json.loads(text)

== a_struct: ships
import struct
f = lambda text: struct.unpack("<i", text)

== numpy_that_is_not_exact: pure ships numpy
f = lambda x: np.exp(x)

== sums: pure ships numpy
f = lambda x: np.sum(x)

== a_branch: pure ships
def f(x):
    if x > 3:
        return x
    return x + 1

== a_try: ships
def f(x):
    try:
        return x / 2
    except ZeroDivisionError:
        return x

== a_with_of_its_own: ships
import io
def f(text):
    with io.BytesIO(text) as file:
        return file.read()

== a_comprehension: pure ships
f = lambda x: sum([i for i in range(3)]) + x

== a_loop_over_a_set:
NAMES = {"a", "b"}
def f(x): return x + len([n for n in NAMES])

== a_set_that_is_asked: ships
NAMES = {"a", "b"}
def f(text): return text.decode() in NAMES
def change(): NAMES.add("c")

== a_frozen_set: pure ships
NAMES = frozenset({1, 2})
def f(x): return x + len(NAMES)
def change():
    global NAMES
    NAMES = frozenset({1})

== an_object_that_is_called: pure ships numpy
class Scale:
    def __init__(self, by): self.by = by
    def __call__(self, x): return x * self.by
f = Scale(2)
def change(): f.by = 3

== an_object_that_counts: state
class Count:
    def __init__(self): self.n = 0
    def __call__(self, x):
        self.n += 1
        return x
f = Count()
def change(): f.n = 5

== an_object_with_a_vocabulary: ships
class Encode:
    def __init__(self, table): self.table = table
    def words(self, text): return text.split()
    def __call__(self, text): return [self.table.get(word, 0) for word in self.words(text)]
f = Encode({b"a": 1})
def change(): f.table[b"b"] = 2

== an_object_that_keeps_a_list:
class Keep:
    def __init__(self): self.rows = []
    def __call__(self, x):
        self.rows.append(x)
        return x
f = Keep()
def change(): f.rows.append(1)

== a_method: pure ships numpy
class Scale:
    def __init__(self, by): self.by = by
    def scaled(self, x): return x * self.by
owner = Scale(2)
f = owner.scaled
def change(): owner.by = 3

== a_chain_of_objects: pure ships
class Add:
    def __init__(self, by): self.by = by
    def __call__(self, x): return x + self.by
class Compose:
    def __init__(self, steps): self.steps = steps
    def __call__(self, x):
        for step in self.steps:
            x = step(x)
        return x
f = Compose([Add(1), Add(2)])
def change(): f.steps[0].by = 9

== a_method_of_a_class: ships numpy
class Tools:
    by = 2
    @classmethod
    def scaled(cls, x): return x * cls.by
def f(x): return Tools.scaled(x)
def change(): Tools.by = 3

== a_property:
class Odd:
    seen = 0
    @property
    def by(self):
        Odd.seen += 1
        return 2
ODD = Odd()
def f(x): return x * ODD.by

== a_subclass_of_dict:
class Counting(dict):
    def __missing__(self, key):
        self[key] = len(self)
        return self[key]
IDS = Counting()
def f(text): return IDS[text]
def change(): IDS[b"z"] = 5

== a_defaultdict:
import collections
IDS = collections.defaultdict(int)
def f(text): return IDS[text]
def change(): IDS[b"z"] = 5

== a_default_list:
def f(x, seen=[]):
    seen.append(x)
    return x
def change(): f.__defaults__[0].append(1)

== a_cached_function:
@functools.lru_cache
def length(text): return len(text)
def f(text): return length(text)

== an_import_inside: ships numpy
def f(x):
    import math
    return x + math.pi

== an_unknown_library:
import pytest
def f(x):
    pytest.approx(x)
    return x

== a_name_that_is_not_there:
def f(x): return nowhere(x)

== decodes: pure ships
f = lambda record: ps.image.resize(ps.image.decode_jpeg(record, channels=3), (8, 8))

== parses: pure ships
SPEC = {"x": ps.io.FixedLenFeature((), np.int64, 0)}
f = lambda record: ps.io.parse_single_example(record, SPEC)["x"]
"""
ROWS = {
    name: (set(known.split()), source)
    for name, known, source in re.findall(r"^== (\w+):(.*)\n((?:(?!== ).*\n)*)", TABLE, re.MULTILINE)
}


HEAD = "import functools, os, re\nimport numpy as np\nimport penstock as ps\n"
TUTORIALS = Path(__file__).with_name("tutorials.py")


def executed(name, module="__main__"):
    names = {"__name__": module}
    return sources.executed(
        "import functools, os, re\nimport numpy as np\nimport penstock as ps\n" + ROWS[name][1], names
    )


@cache
def of_tutorials():
    """Return functions of tutorials and their known facts, by name."""
    names = {"__name__": "__main__"}
    exec(compile(TUTORIALS.read_text(), TUTORIALS, "exec"), names)
    found = {}
    for function, known in names["FUNCTIONS"]:
        name = getattr(function, "__name__", type(function).__name__)
        found[f"{name}#{len(found)}"] = function, known
    return found


@cache
def everything():
    return {**{name: found(name) for name in ROWS}, **{name: facts(f) for name, (f, _) in of_tutorials().items()}}


@cache
def found(name):
    """Return the results of all policies for a function of the table."""
    return facts(executed(name)["f"])


def facts(f):
    return {
        "function": f,
        "impure": why_impure(f),
        "draws": may_draw(f),
        "stays": why_not_shippable(f),
        "visible": why_visible(f),
        "state": keeps_state(f),
        "random": randomness(f),
        "by_itself": any(map(draws_by_itself, uses(f))),
        "lock": takes_lock(f),
        "numpy": only_numpy(f),
        "stuck": unpicklable(f),
    }


IMPLICATIONS = {
    "what is pure does nothing that could be noticed": lambda s: s["impure"] or not s["visible"],
    "what is pure may be moved": lambda s: s["impure"] or not s["stays"],
    "what may be moved does nothing that could be noticed": lambda s: s["stays"] or not s["visible"],
    "what may be moved can be pickled": lambda s: s["stays"] or not s["stuck"],
    "what is pure assigns to nothing outside": lambda s: s["impure"] or not s["state"],
    "what assigns to something outside keeps state": lambda s: (
        not str(s["visible"]).startswith("it assigns") or s["state"]
    ),
    "what is called random may draw": lambda s: not s["random"] or s["draws"],
    "what draws by itself is not pure, and stays": lambda s: not s["by_itself"] or (s["impure"] and s["stays"]),
    "what is random and moved draws by its element": lambda s: not s["random"] or s["stays"] or not s["by_itself"],
    "what takes a lock stays": lambda s: not s["lock"] or (s["stays"] and s["impure"]),
    "what is plain numpy does nothing that could be noticed": lambda s: not s["numpy"] or not s["visible"],
    "what is plain numpy draws nothing": lambda s: not s["numpy"] or not s["random"],
    "a reason is a sentence about the function": lambda s: all(
        why is None or (isinstance(why, str) and why) for why in (s["impure"], s["stays"], s["visible"])
    ),
}


@pytest.mark.parametrize("implication", IMPLICATIONS)
def test_policies_agree(implication):
    holds = IMPLICATIONS[implication]
    assert [name for name, told in everything().items() if not holds(told)] == []


def said(facts):
    """Return the words of a function's header in the table."""
    told = {"pure": not facts["impure"], "ships": not facts["stays"], "draws": not facts["impure"] and facts["draws"]}
    told |= {word: facts[word] for word in ("random", "state", "numpy", "lock")}
    return {word for word, holds in told.items() if holds}


def test_the_table_is_as_it_is_known():
    assert len(ROWS) >= 60
    assert {name: said(found(name)) for name in ROWS} == {name: known for name, (known, _) in ROWS.items()}


def test_functions_of_tutorials_move_and_run_by_block_as_they_are_known_to():
    wanted = {name: known for name, (_, known) in of_tutorials().items()}
    assert {name: said(everything()[name]) & {"pure", "ships"} for name in wanted} == wanted


@pytest.mark.parametrize("name", ROWS)
def test_in_a_module_that_is_imported_only_its_variables_make_a_difference(name, monkeypatch):
    """In another process, the variables have the values that the module assigns first."""
    module = ModuleType("policies_row")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    vars(module).update(executed(name, module.__name__))
    there = facts(vars(module)["f"])
    assert there["impure"] == found(name)["impure"]
    assert there["stays"] == found(name)["stays"] or "another process" in there["stays"] or not there["stays"]


@pytest.mark.parametrize("name", ROWS)
def test_what_ships_has_a_digest_that_is_the_same_for_the_same_function(name):
    first, second = executed(name)["f"], executed(name)["f"]
    assert made_of(first).key == made_of(second).key
    assert fingerprint(ps.Dataset.range(3).map(first)._plan) == fingerprint(ps.Dataset.range(3).map(second)._plan)


CHANGING = [name for name, (_, source) in ROWS.items() if "def change(" in source]


@pytest.mark.parametrize("name", CHANGING)
def test_what_a_function_depends_on_is_in_its_key(name):
    names = executed(name)
    f = names["f"]
    key = made_of(f).key
    assert made_of(f).key == key
    names["change"]()
    assert made_of(f).key != key


@pytest.mark.parametrize("name", [name for name in CHANGING if "pure" in ROWS[name][0]])
def test_what_a_pure_function_depends_on_is_watched(name):
    names = executed(name)
    read = captured(names["f"])
    assert read.unchanged()
    names["change"]()
    assert not read.unchanged()


@pytest.mark.parametrize("name", ROWS)
def test_only_what_is_pure_is_traced(name):
    names = {"__name__": "__main__"}
    exec(HEAD + ROWS[name][1], names)  # without source text, so that parts of a function cannot be traced
    f = names["f"]
    assert traced(f, LEAF, [DenseColumn(np.arange(3)).spec()]).graph is None or why_impure(f) is None


# functions with and without side effects in this process; in another one, their results may differ
TORCH = """
class Compose:
    def __init__(self, transforms): self.transforms = transforms
    def __call__(self, x): return x
class ToTensor:
    def __call__(self, x): return x
class RandomCrop(ToTensor): pass
class Tensor:
    def add_(self, x): return self
    def cpu(self): return self
    def __sub__(self, x): return x
def from_numpy(x): return x
def rand(x): return x
"""
LOUD = """
class Loud:
    __add__ = __radd__ = __iadd__ = __lt__ = __eq__ = __contains__ = __getitem__ = __call__ = lambda self, x: note(x)
    __format__ = __float__ = __neg__ = __len__ = __bool__ = __str__ = __repr__ = lambda self, *x: note(1)
    __setitem__ = __setattr__ = lambda self, name, x: note(x)
LOUD = Loud()
"""
QUIET = """
class Quiet:
    def __init__(self, y): self.y = y
    def __add__(self, x): return self.y + x
    def __lt__(self, x): return self.y < x
    def __str__(self): return str(self.y)
    def __len__(self): return 3
Q = Quiet(1)
"""
MANY = """
lines = ["def filled():", " l = []", *[" l.append(lambda y: y)"] * %d, " l.append(lambda y: %s)", " return l"]
exec("\\n".join(lines))
"""
FROZEN = "@dataclasses.dataclass(frozen=True)\nclass P:\n  x: int\n  y: int\n"
IN_SIGHT = {  # source, and a part of the reason or None
    "from_numpy": ("f = torch.from_numpy", None),
    "a chain of transformations": ("f = torchvision.Compose([torchvision.ToTensor(), np.sqrt])", None),
    "a chain in a function": ("C = torchvision.Compose([torchvision.ToTensor()])\ndef f(x): return C(x)", None),
    "a chain that draws": ("f = torchvision.Compose([torchvision.RandomCrop()])", "draws random numbers"),
    "a chain with an act": ("f = torchvision.Compose([torchvision.Compose([note])])", "appends to `seen`"),
    "torch draws": ("f = lambda x: torch.rand(x)", "draws random numbers"),
    "a tensor": ("M = torch.Tensor()\nf = lambda x: (torch.from_numpy(x) - M)", None),
    "a tensor is changed": ("M = torch.Tensor()\nf = lambda x: M.add_(x)", "calls add_ of `M`"),
    "a set of texts": ("f = lambda x: [word for word in set(x.split())]", None),
    "a hash": ("f = lambda x: hash(x)", None),
    "a seeded state": ("f = lambda x: np.random.RandomState(int(x)).randint(0, 3)", None),
    "an unseeded state": ("f = lambda x: np.random.RandomState().randint(0, 3)", "draws random numbers"),
    "a frozen dataclass": (FROZEN + "def f(x):\n  p = P(int(x), 1)\n  return p.x + dataclasses.asdict(p)['y']", None),
    "a frozen object of outside": (
        FROZEN + "ONE = P(1, 2)\nf = lambda x: object.__setattr__(ONE, 'x', x)",
        "assigns to an attribute of `ONE`",
    ),
    "lists by key": (
        "def f(x):\n  d = collections.defaultdict(list)\n  for w in x.split(): d[w[0]].append(w)\n  return len(d)",
        None,
    ),
    "what a key is made by": ("f = lambda x: collections.defaultdict(lambda: note)['z'](x)", "passes on `note`"),
    "how a key is made": ("f = lambda x: collections.defaultdict(lambda: note(1))['z']", "appends to `seen`"),
    "the files of a folder": ("f = lambda x: sorted(os.listdir(x.decode()))", None),
    "a folder is made": ("f = lambda x: os.mkdir(x)", "calls the operating system"),
    "the environment": ("f = lambda x: os.environ.get('HOME', '') + os.environ['HOME'] + os.getenv('HOME')", None),
    "a change of it": ("def f(x): os.environ['A'] = x", "writes into"),
    "another": ("f = lambda x: os.environ.setdefault('A', x)", "may add to"),
    "bytes.decode": ("f = bytes.decode", None),
    "str.lower": ("f = lambda x: [*map(str.lower, x)]", None),
    "bytes.fromhex": ("f = bytes.fromhex", None),
    "int.__add__": ("f = lambda x: int.__add__(x, 1)", None),
    "list.append": ("f = lambda x: list.append(seen, x)", "appends to `seen`"),
    **{
        f"an operator, {each}": (f"{LOUD}f = lambda x: {each}", "appends to `seen`")
        for each in (
            "LOUD + x",
            "x + LOUD",
            "operator.add(LOUD, x)",
            "LOUD < x",
            "x > LOUD",
            "LOUD == x",
            "-LOUD",
            "len(LOUD)",
            "1 if LOUD else 2",
            "not LOUD",
            "x in LOUD",
            "LOUD[x]",
            "LOUD(x)",
            "f'{LOUD}'",
            "f'{LOUD!r}'",
            "'%s' % LOUD",
            "'{}'.format(LOUD)",
            "str(LOUD)",
            "float(LOUD)",
            "max(LOUD, x)",
            "note.__call__(x)",
        )
    },
    "an operator in place": (f"{LOUD}def f(x):\n  y = Loud()\n  y += x\n  return y", "more than a data class"),
    "an item is set": (f"{LOUD}def f(x):\n  y = Loud()\n  y[0] = x\n  return x", "more than a data class"),
    "an attribute is set": (f"{LOUD}def f(x):\n  y = Loud()\n  y.a = x\n  return x", "more than a data class"),
    "operators that compute": (f"{QUIET}f = lambda x: Q + 1 < 2 and Q < x and f'{{Q}}' and len(Q)", None),
    "what an operator gives": (f"{QUIET}f = lambda x: (Quiet(x) + note).y(x)", "more than a data class"),
    "a frozen dataclass as text": (FROZEN + "f = lambda x: f'{P(x, 1)}' + str(P(x, 2) == P(1, 2))", None),
    "lists of functions inside one another": (
        "def f(x):\n  def g(y):\n    def h(z):\n      def i(w): return w\n      l = [i]\n      l.append(i)\n"
        "      return l[0](z)\n    l = [h]\n    l.append(h)\n    return l[0](y)\n"
        "  l = [g]\n  l.append(g)\n  return l[0](x)",
        "known only at run time",
    ),
    "many functions in a list": (f"{MANY % (300, 'y + 1')}f = lambda x: [g(x) for g in filled()]", "no source text"),
    "windows in a dict": ("f = lambda w: ps.Dataset.zip((w['a'].batch(3), w['b'].batch(3)))", None),
    "zip of windows": ("f = lambda a, b: ps.Dataset.zip(a, b).batch(3)", None),
    "a data set of outside": ("f = lambda x: D", None),
    "a step of it": ("f = lambda x: D.map(lambda y: y + x).skip(1).take(2)", None),
    "a step of the object's": (
        "class A:\n  def __init__(self): self.base = ps.Dataset.range(9)\n"
        "  def part(self, i): return self.base.shard(4, i)\nf = A().part",
        None,
    ),
    "a filter that notes": ("f = lambda x: D.filter(note)", "appends to `seen`"),
    "a step that notes": ("f = lambda x: ps.Dataset.range(9).map(lambda y: note(y))", "appends to `seen`"),
    "zip with one of outside": ("f = lambda x: ps.Dataset.zip((D, ps.Dataset.range(3)))", None),
    "a mixture": ("f = lambda x: ps.Dataset.sample_from_datasets([D, D])", None),
    "apply": ("f = lambda x: D.apply(lambda d: d.map(lambda y: y))", "reads the data set"),
    "apply that reads": ("f = lambda x: D.apply(lambda d: list(d))", "reads the data set"),
    "files by name": ("f = lambda x: ps.Dataset.list_files(x).interleave(ps.TextLineDataset)", None),
    "a list": ("f = lambda x: ps.Dataset.from_list([x, 2])", None),
    "random numbers": ("f = lambda x: ps.Dataset.random(1).take(3)", None),
    "options": ("f = lambda x: ps.Dataset.range(3).with_options(ps.Options())", None),
    "a folder of images": ("f = lambda x: ps.ImageFolderDataset(x)", None),
    "a tar file": ("f = lambda x: ps.WebDataset(x)", None),
    "a loop over a data set": ("def f(x):\n  for y in D: x += y\n  return x", "reads the data set `D`"),
    "a loop over a step of it": ("f = lambda x: [y for y in D.take(2)]", "reads the data set `D`"),
    "a sum of it": ("f = lambda x: sum(D)", "reads the data set `D`"),
    "the next of it": ("f = lambda x: next(iter(D.batch(2)))", "reads the data set `D`"),
    "reduced": ("f = lambda x: D.reduce(0, lambda a, b: a + b)", "reads the data set `D`"),
    "saved": ("f = lambda x: ps.Dataset.range(3).save('x')", "(.save)"),
    "one of its own": ("f = lambda x: list(ps.Dataset.range(3).map(lambda y: y + x))", None),
}


@pytest.mark.parametrize("name", IN_SIGHT)
def test_what_could_be_seen_of_a_call(name, monkeypatch):
    source, part = IN_SIGHT[name]
    names = {"__name__": "__main__"}
    for library in ("torch", "torchvision"):  # as if these were installed
        module = names[library] = ModuleType(library)
        module.__file__ = f"/somewhere/site-packages/{library}/__init__.py"
        monkeypatch.setitem(sys.modules, library, module)
        exec(compile(TORCH, module.__file__, "exec"), vars(module))
    exec("import collections, dataclasses, functools, operator, os\nimport numpy as np\nimport penstock as ps", names)
    head = "D = ps.Dataset.range(9)\nseen = []\ndef note(x):\n    seen.append(x)\n    return x\n"
    sources.executed(head + source, names)
    why = why_visible(names["f"])
    assert (why is None) if part is None else (why is not None and part in why), why
    assert part is None or why_not_shippable(names["f"])

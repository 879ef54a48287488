"""Reading and writing items, and arrays from values: Blocks and single elements give the same bits."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tests.trace.test_rowwise import bits

import penstock as ps
from penstock.block.structure import flatten
from penstock.trace.traced import traced

EYE = np.eye(10, dtype=np.float32)
TABLE = np.arange(10) * 7 - 30
CUBE = np.random.default_rng(0).standard_normal((10, 3, 4)).astype(np.float32)
TURNED = CUBE.T
NORM = np.array([1, 2, 3], np.float32)
TABLES = {"one": TABLE, "two": (TABLE, EYE)}
SMALL = np.arange(10, dtype=np.int8)
ALL, MIDDLE = slice(None), slice(1, 3)


def helper(y):
    return EYE[y]


def one_hot(y):
    made = np.zeros(10, np.float32)
    made[y] = 1
    return made


def one_hot_under_two_names(y):
    made = np.ones(10)
    same, before = made, made * 2
    made[y] = 5
    made[0] = -1
    return same, before, made.sum()


def with_default(y, table=CUBE):
    return table[y, 1]


class Calls:
    def __call__(self, y):
        return EYE[y]

    def method(self, y):
        return np.eye(10)[y]


LOOK_UPS = {
    "global": lambda y: EYE[y],
    "numbers": lambda y: (TABLE[y], SMALL[y] + np.int8(1), TABLE[y] * 2),
    "eye": lambda y: (np.eye(10)[y], np.identity(10)[y].astype(np.uint8), np.eye(10, dtype=bool)[y]),
    "arange": lambda y: (np.arange(3, 13)[y], np.linspace(0, 1, 10)[y], np.arange(20)[::2][y] * 1),
    "calculated": lambda y: ((EYE * 2)[y], (1 - EYE)[y], EYE.astype(np.float64)[y], np.sqrt(EYE)[y]),
    "beside stand-ins": lambda y: (EYE[y] * y, y * EYE, EYE * y, np.where(EYE[y] > 0, TABLE, y), np.clip(y, TABLE, 9)),
    "joined": lambda y: (np.concatenate([EYE[y], TABLE]), np.stack([TABLE, EYE[y]]), EYE[y].dot(EYE), EYE[y] @ EYE),
    "in operations": lambda y: ps.image.normalize(np.stack([CUBE[y][:, :3]] * 4), NORM, NORM),
    "more axes": lambda y: (CUBE[y], CUBE[y, 1], CUBE[y, -1, 2], CUBE[y, :2], CUBE[y, 0, 1:], CUBE[y].sum(axis=0)),
    "axes in front": lambda y: (TABLE[None][0, y], CUBE[1:][y - y, 2], CUBE.reshape(10, -1)[y]),
    "a helper": helper,
    "a lambda inside": lambda y: (lambda k: TABLE[k] + EYE[k])(y),
    "a nest": lambda y: (TABLES["one"][y], TABLES["two"][1][y]),
    "a default": with_default,
    "an object": Calls(),
    "a method": Calls().method,
    "a partial": functools.partial(lambda table, y: table[y], CUBE),
    "places calculated": lambda y: (TABLE[y - 1], TABLE[y // 2], EYE[(y + 1) % 10], TABLE[-y]),
    "several places": lambda y: (TABLE[np.stack([y, y // 2])], CUBE[np.stack([y, y])].sum(), CUBE[y[None]]),
    "take": lambda y: EYE[y] @ CUBE.reshape(10, -1),
    "a stand-in's": lambda y: (np.stack([y, y * 2, y * 3] * 4)[y], (EYE[0] * y)[y], (CUBE * y)[y, 1, 2]),
    "one-hot": one_hot,
    "two names": one_hot_under_two_names,
}
LONG = np.sin(np.arange(40_000, dtype=np.float32)).reshape(20_000, 2)  # too large to be watched
SLICES = {
    "of a table": lambda y: TABLE[y : y + 3],
    "of rows": lambda y: (CUBE[y : y + 2], CUBE[y + 1 : y + 2].sum()),
    "of a large one": lambda y: (LONG[y : y + 24], LONG[y + 1 - 2 : 23 + y][0], len(LONG)),
    "of nothing": lambda y: (TABLE[y:y], y),
}
MADE = {
    "made of numbers": lambda y: (y, np.arange(5), np.linspace(0, 1, 3), np.eye(2)[0] * 1),
    "calculated from constants": lambda y: (
        y,
        np.arange(4) * 2,
        1 - EYE,
        np.square(TABLE),
        np.tril(np.ones((3, 3), bool)),
    ),
    "an array of a list": lambda y: {"y": y, "x": np.array([1, 2, 3]), "z": np.array(EYE), "w": np.full(2, 7)},
    "turned and cut": lambda y: (y, np.arange(6).reshape(2, 3), np.arange(9)[2:5]),
    "of the length": lambda y: (y, np.arange(len(np.stack([y, y])))),
}
WRITES = {
    "a place": lambda x, y: written(x, y, 1),
    "a value": lambda x, y: written(x, y, x[0, 0] * 2),
    "an array": lambda x, y: written(x, y, x[1]),
    "an array of constants": lambda x, y: written(x, y, np.arange(4, dtype=np.float32)),
    "two places": lambda x, y: written(x, (y, y), 7),
    "a place and a number": lambda x, y: written(x, (0, y), 7.5),
    "a place and slices": lambda x, y: written(x, (y, MIDDLE), x[0, :2]),
    "several places": lambda x, y: written(x, np.stack([y, y - y]), x[:2]),
    "slices": lambda x, y: written(x, MIDDLE, 0),
    "slices and a value": lambda x, y: written(x, (ALL, MIDDLE), x[0, 0]),
    "slices and an array": lambda x, y: written(x, (Ellipsis, 0), x[:, 1]),
    "a number": lambda x, y: written(x, 0, y),
    "a mask": lambda x, y: written(x, x < 0, 0),
    "a mask and a value": lambda x, y: written(x, x < 0, x[0, 0]),
    "of ones": lambda x, y: written(np.ones((4, 4), np.int32), y, 3),
    "of full": lambda x, y: written(np.full((4, 4), 2.5), y, x[0]),
    "a part": lambda x, y: halved((x + x)[1:]),
    "a turned part": lambda x, y: halved((x + x).T[:, :2].reshape(-1)),
    "a flipped image": lambda x, y: halved(ps.image.flip_left_right(ps.image.resize(x[..., None], (2, 3)))),
}
LISTS = {
    "two": lambda x, y: np.array([x[0, 0], x[1, 1]]),
    "of two kinds": lambda x, y: (np.array([x[0, 0], y]), np.asarray([y, y > 1]), np.array([x[0, 0], np.int8(3)])),
    "beside Python's": lambda x, y: (np.array([x[0, 0], 1]), np.array([y, 2.5]), np.array([y, True]), np.array([1, y])),
    "of a dtype": lambda x, y: (np.array([y, x[0, 0]], np.float32), np.array((y, 2), dtype="uint8")),
    "of integers": lambda x, y: np.array([x[0, 0], x[0, 1]], np.int64),
    "of arrays": lambda x, y: (np.array([x[0], x[1]]), np.array([x[0], [1, 2, 3, y]]), np.array([[y], [x[0, 0]]])),
    "of itself": lambda x, y: (np.array(x), np.asarray(x) + 1, np.array(x, np.float64), np.asarray(x, np.float32)),
    "as a leaf": lambda x, y: {"a": [x[0, 0], x[1, 1]], "b": [y, 1], "c": [[y, y], [1, 2]], "d": [x[0], x[1]]},
    "numbers as a leaf": lambda x, y: {"a": [y, 2.5], "b": [x[0, 0], 2]},
}


def written(x, index, value):
    made = x.copy()
    before = made + 0
    made[index] = value
    return made, before, made.sum()


def halved(x):
    x //= 2
    x[0] = 7
    x += x
    return x


def outcome(function, rows, by_block):
    options = ps.Options()
    options.experimental_optimization.map_vectorization = by_block
    found = []
    try:
        with np.errstate(all="ignore"):
            for element in ps.Dataset.from_tensor_slices(rows).map(function).with_options(options):
                found.append([bits(leaf) for leaf in flatten(element)[0]])
    except Exception as error:
        found.append((type(error), str(error).splitlines()[0], getattr(error, "__notes__", None)))
    return found


def graph_of(function, rows):
    leaves, structure = flatten(ps.Dataset.from_tensor_slices(rows).element_spec)
    return traced(function, structure, leaves).graph


def same(function, rows):
    fast, plain = (outcome(function, rows, by_block) for by_block in (True, False))
    assert fast == plain
    return plain


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LOOK_UPS)
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int32, np.int8])
def test_look_ups(name, dtype):
    rows = np.random.default_rng(0).integers(0, 10, 60).astype(dtype)
    assert graph_of(LOOK_UPS[name], rows) is not None
    same(LOOK_UPS[name], rows)


@pytest.mark.parametrize("name", SLICES)
@pytest.mark.parametrize("wrong", [3, -1, -3, 8, 9, 19_990, 1 << 40])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16])
def test_slices_between_two_places(name, wrong, dtype):
    rows = np.random.default_rng(0).integers(1, 7, 60)
    assert graph_of(SLICES[name], rows.astype(dtype)) is not None
    if np.iinfo(dtype).min <= wrong <= np.iinfo(dtype).max:
        rows[41] = wrong
        same(SLICES[name], rows.astype(dtype))


@pytest.mark.parametrize(
    "function",
    [lambda y: TABLE[y : 2 * y], lambda y: TABLE[y : y + 4 : 2], lambda y: TABLE[y + 1 : y], lambda y: TABLE[:y]],
)
def test_slices_of_unknown_length_run_as_written(function):
    rows = np.full(20, 3)
    assert graph_of(function, rows) is None
    same(function, rows)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MADE)
def test_arrays_of_constants_are_made_for_each_element(name):
    rows = np.arange(40)
    assert graph_of(MADE[name], rows) is not None
    same(MADE[name], rows)
    arrays = [leaf for one in ps.Dataset.from_tensor_slices(rows).map(MADE[name]) for leaf in flatten(one)[0][1:]]
    for array in arrays:
        array += array.dtype.type(1)  # this changes no other array
    again = [leaf for one in ps.Dataset.from_tensor_slices(rows).map(MADE[name]) for leaf in flatten(one)[0][1:]]
    assert all(np.array_equal(was, now + now.dtype.type(1)) for was, now in zip(arrays, again, strict=True))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LOOK_UPS)
@pytest.mark.parametrize("wrong", [10, -11, 1 << 40, -1])
def test_a_place_out_of_range_takes_that_element_alone(name, wrong):
    rows = np.random.default_rng(0).integers(0, 10, 60)
    rows[41] = wrong
    same(LOOK_UPS[name], rows)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LOOK_UPS)
@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.uint64])
def test_what_is_no_place_is_looked_up_as_written(name, dtype):
    rows = np.random.default_rng(0).integers(0, 10, 60).astype(dtype)
    same(LOOK_UPS[name], rows)
    if dtype == np.uint64:
        rows[41] = np.iinfo(np.uint64).max  # as int64 this would be -1
        same(LOOK_UPS[name], rows)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*WRITES, *LISTS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("wrong", [0, 4, -5])
def test_arrays_that_are_written_or_made(name, dtype, wrong):
    function = WRITES.get(name) or LISTS[name]
    random = np.random.default_rng(1)
    x = (random.standard_normal((60, 4, 4)) * 100).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[30:, 0, 0] = np.resize([np.nan, -0.0, np.inf, 1e19, -1e19, 3e9], 30)
    y = random.integers(0, 4, 60)
    y[35] = (1 << 53) + 1 if name == "a number" else y[35] or wrong
    y[44] = wrong
    same(function, (x, y))


BY_BLOCK = [*WRITES, *LISTS]


@pytest.mark.parametrize("name", BY_BLOCK)
def test_they_run_by_block(name):
    x, y = np.ones((5, 4, 4), np.float32), np.arange(5) % 4
    graph = graph_of(WRITES.get(name) or LISTS[name], (x, y))
    assert graph is not None
    assert not any(equation.primitive.by_row for equation in graph.equations)


def row_written_into(y):
    row = EYE[y]
    row += 1
    return row


def row_of_its_own_written_into(y):
    table = np.eye(10)
    row = table[y]
    row += 1
    return row, table.sum()


def row_at_another_place(y):
    row = EYE[(y + 1) % 10]
    row += 1
    return row


def part_and_whole(y):
    made = np.zeros(10)
    part = made[2:5]
    part += y
    return part, made * 2


def item_of_a_row(y):
    table = np.eye(10)
    row = table[y]
    row[0] = 3
    return row, table.sum()


def view_written_into(y):
    made = np.zeros(10)
    part = made[2:5]
    made[y] = 1
    return part


def through_a_view(y):
    made = np.zeros(10)
    part = made[2:5]
    part[0] = y
    return made


def shared(y):
    made = np.arange(6)
    return y, made, made[:3]


NOT_BY_BLOCK = {
    "a table itself": lambda y: (y, EYE),
    "a part of a table": lambda y: (y, EYE[:2]),
    "a table as another array": lambda y: (y, np.asarray(EYE), np.atleast_2d(TABLE)),
    "an array and a part of it": shared,
    "a turned array": lambda y: (y, np.arange(6).reshape(2, 3).T),
    "row": row_written_into,
    "own row": row_of_its_own_written_into,
    "another row": row_at_another_place,
    "part and whole": part_and_whole,
    "item of a row": item_of_a_row,
    "view": view_written_into,
    "through a view": through_a_view,
    "turned": lambda y: TURNED[y % 4],
    "behind slices": lambda y: CUBE[:, y % 3],
    "objects": lambda y: np.array(["a", "b"], object)[y % 2] == "a",
    "a float in integers": lambda y: written(np.zeros(4, np.int32), 0, y / 3),
    "a number too large": lambda y: written(np.zeros(4, np.uint8), 0, 300),
    "another shape": lambda y: written(np.zeros(4), 0, np.stack([y, y])),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NOT_BY_BLOCK)
def test_what_might_be_seen_runs_as_written(name):
    rows = np.arange(40) % 10
    before = EYE.copy()
    assert graph_of(NOT_BY_BLOCK[name], rows) is None
    found = []
    for by_block in (True, False):
        found.append(outcome(NOT_BY_BLOCK[name], rows, by_block))
        EYE[:] = before
    assert found[0] == found[1]


def test_a_table_that_is_written_to_meanwhile():
    table = np.arange(10)

    def function(y):
        return table[y]

    ds = ps.Dataset.from_tensor_slices(np.arange(60) % 10).map(function)
    assert [int(x) for x in ds] == [*range(10)] * 6
    table[:] = table[::-1].copy()
    assert [int(x) for x in ds] == [*range(9, -1, -1)] * 6


def test_a_row_that_is_received_is_no_part_of_the_table():
    ds = ps.Dataset.from_tensor_slices(np.arange(60) % 10).map(lambda y: EYE[y])
    for row in ds:
        row += 1
    assert (np.eye(10) == EYE).all()


def recursive(y, more=2):
    return LARGE[y] + (recursive(y, more - 1) if more else 0)


def large_row_written_into(y):
    row = MATRIX[y]
    row += 1
    return row


def look(y):
    return LARGE[y]


def total(y):
    return y + LARGE.sum()


class Looks:
    def __call__(self, y):
        return LARGE[0] + y

    def method(self, y):
        return LARGE[1] + y


class LooksToo(Looks):
    pass


OBJECT = LooksToo()
LIVE = {
    "a global": lambda y: LARGE[y],
    "rows": lambda y: (MATRIX[y], MATRIX[y, 1], MATRIX[y, :3], MATRIX[-y]),
    "as long as it is": lambda y: LARGE[(y * 7919) % len(LARGE)],
    "beside a small one": lambda y: LARGE[TABLE[y]] + TABLE[y],
    "several places": lambda y: LARGE[np.stack([y, y + 1])],
    "in a list": lambda y: [LARGE, TABLE][0][y],
    "in an inner function": lambda y: (lambda k: MATRIX[k].sum())(y),
}
NOT_LIVE = {
    "all of it": lambda y: LARGE.sum() + y,
    "one of it": lambda y: LARGE[3] + y,
    "compared": lambda y: (y == LARGE)[:3],
    "compared with it": lambda y: (LARGE == 5)[:3],
    "as text": lambda y: str(LARGE).encode(),
    "its shape": lambda y: y + LARGE.shape[0],
    "an attribute": lambda y: HOLDS.table[y],
    "iterated": lambda y: y + max(LARGE),
    "its item written to": large_row_written_into,
    "turned": lambda y: LARGE_TURNED[y],
    "calls itself": recursive,
    "a helper's": lambda y: look(y),
    "an object's": lambda y: OBJECT(y),
    "a method's": lambda y: OBJECT.method(y),
    "an object": Looks(),
    "an object of a class below": LooksToo(),
    "a partial": functools.partial(lambda more, y: LARGE[y] + more, 3),
    "a helper that uses all of it": lambda y: LARGE[y] + total(y),
}
LARGE = np.arange(1 << 14)
MATRIX = np.random.default_rng(0).standard_normal((1000, 20))
LARGE_TURNED = np.asfortranarray(MATRIX)


class HOLDS:
    table = LARGE


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*LIVE, *NOT_LIVE])
@pytest.mark.parametrize("wrong", [5, -1, 1 << 14, 1000])
def test_arrays_too_large_to_be_watched(name, wrong):
    rows = np.random.default_rng(0).integers(0, 10, 60)
    rows[41] = wrong
    before = MATRIX.copy()
    function = LIVE.get(name) or NOT_LIVE[name]
    assert (graph_of(function, rows) is not None) == (name in LIVE)
    found = []
    for by_block in (True, False):
        found.append(outcome(function, rows, by_block))
        MATRIX[:] = before
    assert found[0] == found[1]


@pytest.mark.parametrize("name", LIVE)
def test_a_large_array_is_looked_up_in_as_it_is(name):
    global LARGE, MATRIX
    kept = LARGE, MATRIX
    rows = np.random.default_rng(0).integers(0, 10, 60)
    ds = ps.Dataset.from_tensor_slices(rows).map(LIVE[name])
    try:
        for step in range(4):
            found = [[bits(leaf) for leaf in flatten(element)[0]] for element in ds]
            assert found == outcome(LIVE[name], rows, by_block=False)
            LARGE[:] = LARGE[::-1].copy()
            MATRIX[:] *= 2
            if step == 1:
                LARGE, MATRIX = LARGE + 1, MATRIX.astype(np.float32)
            if step == 2:
                LARGE.resize(1 << 13, refcheck=False)
                MATRIX.shape = (500, 40)
    finally:
        LARGE, MATRIX = kept
        LARGE[:] = np.sort(LARGE)
        MATRIX[:] = np.random.default_rng(0).standard_normal((1000, 20))


@pytest.fixture
def tokens(tmp_path):
    np.arange(1 << 16, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    return np.memmap(tmp_path / "tokens.bin", np.uint16, "r+")


def test_a_memory_map_is_looked_up_in_as_it_is(tokens):
    def windows(i):
        window = tokens[i : i + 9].astype(np.int64)
        return window[:-1], window[1:]

    rows = np.random.default_rng(0).integers(0, len(tokens) - 9, 60)
    for function in (windows, lambda i: tokens[i : i + 8], lambda i: tokens[i], lambda i: (tokens[i + 1], len(tokens))):
        assert graph_of(function, rows) is not None
        ds = ps.Dataset.from_tensor_slices(rows).map(function)
        for _ in range(2):
            found = [[bits(leaf) for leaf in flatten(element)[0]] for element in ds]
            assert found == outcome(function, rows, by_block=False)
            tokens[:] = tokens[::-1].copy()


def test_a_memory_map_that_is_used_otherwise_runs_as_written(tokens):
    rows = np.arange(60)
    for function in (
        lambda i: tokens[i : i + 8].sum() + tokens.sum(),
        lambda i: tokens[:8] + i,
        lambda i: tokens[i : 2 * i],
    ):
        assert graph_of(function, rows) is None
    rows[50] = len(tokens) - 3
    same(lambda i: tokens[i : i + 3], rows)
    assert outcome(lambda i: tokens[i : i + 8], rows, by_block=True) == outcome(
        lambda i: tokens[i : i + 8], rows, by_block=False
    )


def test_empty_tables_and_rows():
    nothing = np.zeros((0, 3))
    same(lambda y: nothing[y], np.arange(3))
    same(lambda y: np.zeros((4, 0))[y], np.arange(3))
    same(lambda x: np.array([x, x]), np.zeros((3, 0)))


def test_elements_of_differing_shape():
    def generated():
        for i in range(24):
            yield np.arange(i % 4 + 1), i % 3

    spec = ps.TensorSpec((None,), np.int64), ps.TensorSpec((), np.int64)
    found = []
    for by_block in (True, False):
        options = ps.Options()
        options.experimental_optimization.map_vectorization = by_block
        ds = ps.Dataset.from_generator(generated, output_signature=spec).with_options(options)
        rows = list(ds.map(lambda x, y: (TABLE[x], EYE[y], written(x, 0, y))))
        found.append([[bits(leaf) for leaf in flatten(row)[0]] for row in rows])
    assert found[0] == found[1]

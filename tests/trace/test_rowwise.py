"""Views, reductions and inexact functions of numpy: Blocks and single elements give the same bits."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.trace.test_purity import TABLE

import penstock as ps
from penstock.block.column import DenseColumn
from penstock.block.structure import flatten
from penstock.physical.vectorise import steps
from penstock.trace import numpy_rows
from penstock.trace import rowwise as module
from penstock.trace.graph import Const
from penstock.trace.rowwise import rowwise
from penstock.trace.traced import traced, why_not_made


def in_place(x):
    total = x * 2
    same = total
    total += x
    total -= 1
    number = x[0, 0, 0] + 0
    number += x[0, 0, 1]
    return total, same, number, total.mean()


def written_view(x):
    total = x * 2
    part = total[:1]
    part += 1
    return total


ONE = {
    "transpose": lambda x: np.transpose(x, (2, 0, 1)),
    "transpose method": lambda x: x.transpose(1, 0, 2),
    "transpose of a tuple": lambda x: x.transpose((1, 2, 0)),
    "T": lambda x: x.T,
    "moveaxis": lambda x: np.moveaxis(x, -1, 0),
    "swapaxes": lambda x: x.swapaxes(0, -1),
    "rollaxis": lambda x: np.rollaxis(x, 2),
    "turned": lambda x: x[..., ::-1],
    "flips": lambda x: (np.flip(x), np.fliplr(x), np.flipud(x), np.flip(x, -1), np.flip(x, (0, 2))),
    "some": lambda x: x[:2],
    "some of it": lambda x: x[1:, ::2, -1:],
    "one": lambda x: x[0],
    "one of one": lambda x: (x[0, -1, 1], x[0][1][-1]),
    "more axes": lambda x: (x[None], x[..., None], np.expand_dims(x, 1), np.expand_dims(x, -1)),
    "reshape": lambda x: (x.reshape(-1), x.reshape(-1, 2), np.reshape(x, (3, -1)), x.ravel(), x.flatten()),
    "reshape of a view": lambda x: x.T.reshape(-1),
    "squeeze": lambda x: (x[:1].squeeze(0), x[:1].squeeze(), np.squeeze(x[:, :1], axis=1)),
    "its channels": lambda x: [channel + 1 for channel in x],
    "unpacked": lambda x: (lambda a, *b: a)(*x),
    "length": lambda x: x + len(x) + x.size,
    "concatenate": lambda x: (np.concatenate([x, x + x]), np.concatenate((x, x), axis=-1)),
    "stack": lambda x: (np.stack([x, x]), np.stack([x, x], -1), np.stack([x, x * 2])),
    "pad": lambda x: (np.pad(x, ((1, 2), (0, 1), (0, 0))), np.pad(x, 1, "edge"), np.pad(x, ((1, 1),), mode="reflect")),
    "copy": lambda x: (x.copy(), np.copy(x.T)),
    "clip": lambda x: (np.clip(x, 0, 1), x.clip(1, 3), np.clip(x, x - x, x)),
    "sum": lambda x: (x.sum(), np.sum(x, axis=1), x.sum(axis=(0, 1)), x.sum(-1, keepdims=True), x.T.sum(0)),
    "mean": lambda x: (x - x.mean(), np.mean(x, (0, 1)), x.mean(keepdims=True), x.T.mean(1), x.mean().sum()),
    "std": lambda x: (x.std(), np.std(x, axis=0), x.var(axis=-1, ddof=1)),
    "max": lambda x: (x.max(), x.min(axis=(0, 1)), np.max(x, 0), np.min(x)),
    "argmax": lambda x: (x.argmax(), np.argmin(x, axis=1), x[0].argmax(-1)),
    "any": lambda x: ((x > 1).any(), np.all(x > 1, axis=0), x.prod(axis=2)),
    "bounds": lambda x: (np.maximum(x, 0), np.minimum(x, x - x), np.fmax(x, -1.0 * x)),
    "sorted": lambda x: (np.sort(x), np.sort(x.T, axis=0), np.argsort(x, axis=-1), x.argsort(0), np.cumsum(x, axis=1)),
    "measured": lambda x: (np.median(x), np.percentile(x, [10, 90], axis=0), np.ptp(x, 1), np.average(x, axis=-1)),
    "repeated": lambda x: (np.roll(x, 1, axis=0), np.tile(x, (2, 1, 1)), np.repeat(x, 2, axis=1), x.repeat(2)),
    "turned round": lambda x: (np.rot90(x), np.rot90(x, 2), np.rot90(x, -1, (1, 2)), np.rot90(x, 4).sum()),
    "products": lambda x: (
        x @ np.ones((2, 3)),
        np.dot(x, np.arange(2)),
        np.einsum("hwc,wd->hd", x, np.eye(3)),
        x.dot([1, 2]),
    ),
    "looked up": lambda x: (
        np.digitize(x, [1, 2]),
        np.searchsorted([1, 2], x),
        np.interp(x, [0, 9], [0, 1]),
        x.take([0, 1]),
    ),
    "of several": lambda x: (np.vstack([x, x]), np.hstack((x, x)), np.gradient(x[..., 0]), np.histogram(x, 4, (0, 9))),
    "chosen": lambda x: (x[[2, 0]], x[:, [1, 0, 1]], x[..., [1, 0]], x[[-1]], x[:, np.array([0, 2], np.uint8)]),
    "chosen beside slices": lambda x: (x[1:, [0, 2]], x[::-1, :, [1, 0]], x[:, [1], ::-1], x[[1, 0], ..., :1]),
    "of chosen ones": lambda x: (
        x[..., [1, 0]].mean(),
        x.T[[1, 0]].sum(0),
        x[..., [1, 0]] * 2,
        x[:, [1, 0]].sum((0, 1)),
    ),
    "transforms": lambda x: (np.abs(np.fft.rfft(x, axis=0)), np.fft.fft2(x[..., 0]), np.fft.ifft(np.fft.fft(x) * 2, 2)),
    "complex": lambda x: (x * 1j + x, np.exp(x * 1j).sum(), np.conj(x * (1 + 2j)), (x * 1j) ** 2, x * 1j == 1j),
    "copies": lambda x: (
        np.copy(x.T).sum(axis=0),
        x.T.copy().sum(axis=0),
        np.nan_to_num(x),
        np.round(x, 1),
        np.tril(x),
    ),
    "of a turned one": lambda x: (np.exp(x.T).sum(), np.abs(x.T).sum(), np.sort(x.T).mean(axis=(0, 1))),
    "by the operator": lambda x: (x**0.5, x**-1.0, x[0, 0, 0] ** 2, 2 ** x[0, 0, 1], x**x),
    "other functions": lambda x: (
        np.nextafter(x, 1),
        np.fmod(x, 2),
        np.copysign(x, -1.0),
        np.deg2rad(x),
        np.signbit(x),
    ),
    "in place": in_place,
    "in between": lambda x: ps.image.flip_left_right(x.mean(axis=0, keepdims=True) + x.T[0, 0, 0]),
}
FLOAT = {
    "exp": lambda x: (np.exp(x), np.exp(x) / np.exp(x).sum()),
    "log": lambda x: (np.log(x), np.log1p(x), np.log2(x)),
    "tanh": lambda x: np.tanh(x.T),
    "angles": lambda x: (np.sin(x), np.cos(x), np.arctan2(x, x + 1)),
    "power": lambda x: (x**2, x**2.0, x**3, np.power(x, 2), 2.0**x),
    "scalars": lambda x: (np.exp(x[0, 0, 0]), np.power(x[0, 0, 1], 3), np.tanh(x.sum())),
}


def overwritten(x):
    y = x * 2
    return np.median(y, overwrite_input=True), np.percentile(y, 20, overwrite_input=True), y


UP, DOWN, FLAT, MIXED = np.array([-1, 0, 2.5]), [3, 1, 0], np.array([1, 1, 2], np.float32), np.array([2, 0, 1, 5, -3])
WHOLE = {  # functions of a vector, which run on all rows at once if the bits are equal
    "digitize": lambda x: (np.digitize(x, UP), np.digitize(x, [0, 1], right=True), np.digitize(x, FLAT)),
    "searchsorted": lambda x: (np.searchsorted(UP, x), np.searchsorted([1, 2], x), np.searchsorted(FLAT, x, "right")),
    "interp": lambda x: (np.interp(x, UP, [1, 2, 4]), np.interp(x, [0, 1], [0.0, np.inf])),
    "nan_to_num": lambda x: (np.nan_to_num(x), np.nan_to_num(x, nan=1.5, posinf=7)),
    "round": lambda x: (np.round(x), np.round(x, 2), np.around(x, -1), x.round(1)),
    "roll": lambda x: (np.roll(x, 1), np.roll(x, -2, axis=0), np.roll(x, 20), np.roll(x, 0)),
    "repeat": lambda x: (np.repeat(x, 2), np.repeat(x, 3, axis=0), x.repeat(1), np.repeat(x, 0)),
    "repeats": lambda x: np.repeat(x[:3], [1, 0, 2]),
    "tile": lambda x: (np.tile(x, 2), np.tile(x, (2, 1)), np.tile(x, [2, 3]), np.tile(x, 1)),
    "diff": lambda x: (np.diff(x), np.diff(x, 2), np.diff(x, axis=0), np.diff(x[None], axis=0)),
    "taken": lambda x: (
        np.take(x, [2, 0]),
        x.take([[0], [-1]]),
        np.take(x, 1),
        x.take([9, -9], mode="wrap"),
        x[[1, 0]],
    ),
    "taken of a matrix": lambda x: (
        np.stack([x, x]).take([1], axis=1),
        np.take(np.stack([x, x]), [3, 0]),
        x[None][0, :][[1]],
    ),
    "isin": lambda x: (np.isin(x, [1, 2.5]), np.isin(x, TABLE, invert=True)),
    "order": lambda x: (np.median(x), np.ptp(x), np.percentile(x, 30), np.quantile(x, 0.5), np.percentile(x, 7.5, 0)),
    "several orders": lambda x: np.percentile(x, [10, 50]),  # the trial finds a difference
    "of a matrix": lambda x: (
        np.median(np.outer(x, x), axis=0),
        np.roll(np.outer(x, x), 1),
        np.roll(np.outer(x, x), (1, 2), (0, 1)),
        np.repeat(np.outer(x, x), 2),
        np.tile(np.outer(x, x), 2),
        np.diff(np.outer(x, x), axis=0),
        np.triu(np.outer(x, x)),
        np.tril(np.outer(x, x), -1),
    ),
    "of numbers": lambda x: (np.round(x[1], 1), np.nan_to_num(x[0]), np.digitize(x[2], UP), np.interp(x[1], UP, UP)),
    "outer": lambda x: (np.outer(x, x), np.outer(x, [1, 2]), np.outer(UP, x), np.outer(x[0], x)),
    "joined": lambda x: (
        np.hstack([x, x]),
        np.hstack([x, x[0]]),
        np.hstack([x[:, None], x[:, None]]),
        np.vstack([x, x]),
    ),
    "joined to constants": lambda x: (np.concatenate([x, [0.5]]), np.concatenate([UP, x]), np.hstack([x, 1, [2, 3]])),
    "joined to lists": lambda x: (
        np.concatenate([x, [x[0], x[1]]]),
        np.concatenate([[x[0]], x]),
        np.vstack([x, x[::-1]]),
    ),
    "appended": lambda x: (np.append(x, x[0]), np.append(x, 1), np.append(x, [x[1], 2.5]), np.append(x[0], x)),
    "at least": lambda x: (np.atleast_1d(x[0]), np.atleast_1d(x), np.atleast_2d(x), np.atleast_2d(x[0])),
}
BY_ROW = {
    "a table out of order": lambda x: np.searchsorted(MIXED, x),
    "a table with equal places": lambda x: np.interp(x, FLAT, [1, 2, 3]),
    "a table with a nan": lambda x: np.searchsorted([0.0, np.nan, 1.0], x),
    "a table for each": lambda x: np.searchsorted(np.sort(x), x),
}
NUMBERS = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 2.5, -1, 1e-40, 6e4]

PER_ELEMENT = {
    "wanted elsewhere": lambda x: (x, TABLE.sum()),
    "two kinds of index": lambda x: x[0, [0, 1]],
    "one of each": lambda x: np.unique(x),
    "in a sum": lambda x: x.sum(where=x > 1),
    "of another dtype": lambda x: x.sum(dtype=np.float64),
    "unknown way to pad": lambda x: np.pad(x, 1, "mean"),
    "written into what is given": lambda x: np.median(x, 0, np.empty((3, 2), np.float32)),
    "as often as it says": lambda x: np.repeat(x, np.full(4, 2), axis=0).reshape(-1)[: int(x[0, 0, 0])],
    "a view that is written into": written_view,
    "written into what it reads": overwritten,
    "by a name": lambda x: np.moveaxis(a=x, source=0, destination=1),
}


def both_ways(function, rows):
    found = []
    for by_block in (True, False):
        options = ps.Options()
        options.experimental_optimization.map_vectorization = by_block
        ds = ps.Dataset.from_tensor_slices(rows).map(function).with_options(options)
        with np.errstate(all="ignore"):
            found.append([[bits(leaf) for leaf in flatten(element)[0]] for element in ds])
    return found


def bits(leaf):
    array = np.asarray(leaf)
    return type(leaf), array.dtype, array.shape, steps(array), array.tobytes()


def rows_of(dtype, shape=(5, 4, 3, 2), seed=0):
    random = np.random.default_rng(seed)
    if dtype == np.bool_:
        return random.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        return random.integers(0, 100, shape, dtype)
    rows = random.standard_normal(shape).astype(dtype)
    return np.where(random.random(shape) < 0.1, random.choice([0.0, -0.0, np.inf, 1.0], shape), rows).astype(dtype)


def runs_by_block(function, rows):
    leaves, structure = flatten(ps.Dataset.from_tensor_slices(rows).element_spec)
    return traced(function, structure, leaves).graph is not None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_views_and_reductions(name, dtype):
    rows = rows_of(dtype)
    assert runs_by_block(ONE[name], rows)
    fast, plain = both_ways(ONE[name], rows)
    assert fast == plain


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*WHOLE, *BY_ROW])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.uint8, np.int64])
@pytest.mark.parametrize("count", [5, 16])
def test_all_rows_at_once(name, dtype, count):
    random = np.random.default_rng(count)
    rows = rows_of(dtype, (70, count))
    if np.dtype(dtype).kind == "f":
        rows[1::2] = random.choice(NUMBERS, (35, count)).astype(dtype)
        if name in ("outer", "of a matrix"):
            rows = np.abs(rows)  # the sign of the product of two nans is not defined
    function = WHOLE.get(name) or BY_ROW[name]
    assert runs_by_block(function, rows)
    fast, plain = both_ways(function, rows)
    assert fast == plain


@pytest.mark.parametrize("name", [*WHOLE, *BY_ROW])
def test_which_are_called_for_each_row(name):
    leaves, structure = flatten(ps.Dataset.from_tensor_slices(rows_of(np.float32, (70, 5))).element_spec)
    graph = traced(WHOLE.get(name) or BY_ROW[name], structure, leaves).graph
    assert graph is not None
    assert any(equation.primitive.by_row for equation in graph.equations) == (name in BY_ROW)


def test_a_form_of_a_function_that_gives_other_bits_is_not_used(monkeypatch):
    def wrong(called, args, kwargs):
        return lambda rows: called(rows) + rows.dtype.type(1)

    monkeypatch.setitem(numpy_rows.WHOLE, np.nan_to_num, wrong)
    monkeypatch.setattr(numpy_rows, "_FORMS", {})
    fast, plain = both_ways(lambda x: np.nan_to_num(x), rows_of(np.float32, (70, 5)))
    assert fast == plain


def test_constants_that_are_equal_but_not_the_same_have_forms_of_their_own():
    rows = np.full((70, 5), np.nan)
    for value in (0.0, -0.0):
        fast, plain = both_ways(lambda x, value=value: np.nan_to_num(x, nan=value), rows)
        assert fast == plain


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FLOAT)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_is_not_promised_to_be_exact(name, dtype):
    rows = rows_of(dtype, (9, 7, 5, 3))
    assert runs_by_block(FLOAT[name], rows)
    fast, plain = both_ways(FLOAT[name], rows)
    assert fast == plain


@pytest.mark.parametrize("name", PER_ELEMENT)
def test_what_has_no_form_runs_as_written(name):
    rows = rows_of(np.float32)
    assert name == "wanted elsewhere" or not runs_by_block(PER_ELEMENT[name], rows)
    fast, plain = both_ways(PER_ELEMENT[name], rows)
    assert fast == plain


STEPS = [*ONE.values(), *FLOAT.values()]


def last(result):
    return result[-1] if isinstance(result, (tuple, list)) else result


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(30))
def test_one_behind_the_other(seed):
    random = np.random.default_rng(seed)
    first, second = (STEPS[i] for i in random.integers(0, len(STEPS), 2))
    rows = rows_of([np.int32, np.float32, np.float64][seed % 3], (6, *random.integers(3, 7, 3)), seed)
    try:
        last(second(last(first(rows[0]))))
    except (ValueError, IndexError, TypeError):
        return  # the steps do not fit each other
    fast, plain = both_ways(lambda x: last(second(last(first(x)))), rows)
    assert fast == plain


def test_elements_of_differing_shape():
    def generated():
        for i in range(12):
            yield rows_of(np.float32, (3 + i % 4, 4, 3), i)

    spec = ps.TensorSpec((None, 4, 3), np.float32)

    def function(x):
        turned, some = (np.transpose(x, (2, 0, 1)), x.T, x[..., ::-1]), (x[:2], x[0])
        return *turned, *some, x[None], x[..., None], np.moveaxis(x, -1, 0)

    found = []
    for by_block in (True, False):
        options = ps.Options()
        options.experimental_optimization.map_vectorization = by_block
        ds = ps.Dataset.from_generator(generated, output_signature=spec).map(function).with_options(options)
        found.append([[bits(leaf) for leaf in flatten(element)[0]] for element in ds])
    assert found[0] == found[1]
    leaves, structure = flatten(spec)
    graph = traced(function, structure, leaves).graph
    assert graph is not None
    specs = [graph.spec_of(output).shape for output in graph.outputs]
    assert specs[:4] == [(3, None, 4), (3, 4, None), (None, 4, 3), (None, 4, 3)]
    assert [len(shape) for shape in specs[4:]] == [2, 4, 4, 3]


def test_a_form_that_gives_other_bits_is_not_used(monkeypatch):
    def of_rows(rows):
        assert trying or not rows.size, "it was found to differ"
        return rows.reshape(len(rows), -1).sum(axis=1) + np.float32(1e-6)

    trying = True
    wrong = rowwise("wrong", lambda row: row.sum(), of_rows)
    rows = rows_of(np.float32)
    assert not module._equal(*_key(wrong, rows))
    trying = False
    (made,) = wrong.run([DenseColumn(rows)], {}, len(rows), None)
    assert made.array.tobytes() == np.array([row.sum() for row in rows]).tobytes()


@pytest.mark.parametrize("shape", [(), (3,), (40,)])
@pytest.mark.parametrize("value", [np.nan, -np.inf, -1e19, 5e9, 7e4, 300.7, 0.5, 2.0, -1.0, -0.0])
def test_a_form_that_is_wrong_of_one_value_far_in_a_block_is_not_used(shape, value):
    def of_rows(rows):
        made = rows.copy()
        late = made.reshape(-1)[20:]
        late[np.frombuffer(late.tobytes(), np.uint32) == np.float32(value).view(np.uint32)] = 9
        return made

    form = module.Form(lambda row: row, of_rows)
    assert not module._equal(form, ((shape, np.dtype(np.float32)),), ())
    assert module._equal(module.Form(lambda row: row, np.copy), ((shape, np.dtype(np.float32)),), ())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
@pytest.mark.parametrize("value", [np.nan, -1e19, -1.0, 300.7])
def test_floats_out_of_range_of_unsigned_numbers(dtype, value):
    rows = np.ones(300, np.float32)
    rows[20::7] = value
    fast, plain = both_ways(lambda x: x.astype(dtype), rows)
    assert fast == plain


@pytest.mark.parametrize("shape", [(), (6,), (1,)])
def test_an_exponent_of_each_row(shape):
    random = np.random.default_rng(3)
    rows = (random.random((300, *shape)) * 500).astype(np.float32)
    exponents = random.choice(np.array([2.2, 0.5, 2, -1], np.float32), 300)
    exponents[:20] = 2.2  # the compared elements are among these
    fast, plain = both_ways(lambda x, e: (np.power(x, e), x**e), (rows, exponents))
    assert fast == plain


def aliased(x, n):
    doubled = x * 2
    found = np.diff(doubled, n=n)
    doubled += 5
    return found


DECIDED_BY_VALUES = {
    "repeats": lambda x, n: np.repeat(x, repeats=n).sum() * len(np.repeat(x, repeats=n)),
    "bins": lambda x, n: len(np.histogram(x, bins=n)[0]) * n,
    "n": lambda x, n: np.diff(x, n).sum() * len(np.diff(x, n)),
    "axis": lambda x, n: np.nansum(np.stack([x, x]), axis=n - 1) / len(np.nansum(np.stack([x, x]), axis=n - 1)),
    "axes": lambda x, n: np.median(np.stack([x, x]), axis=(n - 1,)).size * n,
    "obj": lambda x, n: np.delete(x, obj=np.stack([n, 1])).size * n,
    "in a list": lambda x, n: np.delete(x, [n, 1]).size * n,
    "a view": lambda x, n: aliased(x, n - 1),
}


@pytest.mark.parametrize("name", DECIDED_BY_VALUES)
def test_values_that_decide_a_shape(name):
    rows = np.random.default_rng(0).random((24, 6))
    many = np.where(np.arange(24) < 14, 1, 2)
    leaves, structure = flatten(ps.Dataset.from_tensor_slices((rows, many)).element_spec)
    assert traced(DECIDED_BY_VALUES[name], structure, leaves).graph is None
    fast, plain = both_ways(DECIDED_BY_VALUES[name], (rows, many))
    assert fast == plain


@pytest.mark.parametrize("of_row", [lambda x: np.ones(int(x[0])), lambda x: x[:1], lambda x: x[:1].astype(np.int8)])
def test_a_row_unlike_the_stand_ins_is_no_result(of_row):
    def function(x):
        return of_row(x) if x[0] != 1 else np.ones(1)

    rows = np.full((4, 3), 2.0)
    primitive, _ = numpy_rows.by_row(function, (module.OperandPlace(0),), {}, [DenseColumn(rows).spec()])
    primitive.run([DenseColumn(rows / 2)], {}, 4, None)
    with pytest.raises(TypeError, match="gave"):
        primitive.run([DenseColumn(rows)], {}, 4, None)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (np.average(x, weights=y), np.diff(x, prepend=y[:1], append=y[-1:]), np.gradient(x, y)),
        lambda x, y: (np.percentile(x, y * 10), np.roll(x, y[0].astype(np.int64)), np.einsum("i,i->", x, y)),
        lambda x, y: (np.interp(x, y, x), np.ediff1d(x, y, y), np.dot(x, y), np.cross(x[:3], y[:3]), np.isclose(x, y)),
    ],
)
def test_two_arrays_of_each_element(function):
    rows = np.sort(np.random.default_rng(0).random((9, 6)), axis=1)
    leaves, structure = flatten(ps.Dataset.from_tensor_slices((rows, rows)).element_spec)
    assert traced(function, structure, leaves).graph is not None
    fast, plain = both_ways(function, (rows, rows[::-1].copy()))
    assert fast == plain


def _key(primitive, rows):
    form = primitive.run.__closure__[0].cell_contents
    return form, (module._kind(DenseColumn(rows)),), ()


def test_constants_are_told_apart():
    kinds = {module._kind(Const(value)) for value in (0.0, -0.0, 0, False, np.float32(0), np.float64(0))}
    assert len(kinds) == 6


def test_a_class_with_methods_of_its_own_is_not_taken_for_an_array():
    class Row(dict):
        def sum(self):
            return self["x"]

    structure = flatten({"x": 1})[1]
    assert why_not_made(structure) is None
    own = dataclasses.replace(structure, kind=Row)
    assert why_not_made(own) == "the elements' class Row has a sum of its own"


def test_a_part_does_not_keep_the_whole():
    def generated():
        for i in range(3):
            yield np.full((1000, 100), i, np.float32)

    ds = ps.Dataset.from_generator(generated, output_signature=ps.TensorSpec((1000, 100), np.float32))
    for i, part in enumerate(ds.map(lambda x: x[:1])):
        assert part.tolist() == [[i] * 100]
        owner = part if part.base is None else part.base
        assert getattr(owner, "nbytes", 0) <= 2 * part.nbytes


def test_a_loop_over_many_rows_is_not_drawn_out():
    def summed(x):
        total = x[0]
        for row in x:
            total = total + row
        return total

    assert runs_by_block(summed, np.ones((2, 10, 3)))
    assert not runs_by_block(summed, np.ones((2, 2000, 3)))


def test_an_element_cannot_be_written_into_by_block_either():
    rows = rows_of(np.float32)
    ds = ps.Dataset.from_tensor_slices(rows).map(lambda x: np.add(x, 1, out=x))
    with pytest.raises(ValueError, match="read-only"):
        list(ds)
    assert rows.tobytes() == rows_of(np.float32).tobytes()

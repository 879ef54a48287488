"""Sources and steps of generated pipelines, as text. TensorFlow's element_spec decides which step fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import tensorflow as tf

# from an element_spec to the text of a step, or None if the step does not fit
Step = Callable[[Random, Any], str | None]

STEPS: list[Step] = []
LAST = "  # the last step"  # no step follows an error, because its effect differs from step to step


def step(function: Step) -> Step:
    STEPS.append(function)
    return function


KNOWN = ".apply(lambda ds: ds.apply(K.experimental.assert_cardinality(sum(1 for _ in ds))))"


# -- properties of elements


def leaves(spec: Any) -> list[Any]:
    return list(tf.nest.flatten(spec))


def plain(spec: Any) -> bool:
    """Return True if all components are tensors of known rank."""
    return all(isinstance(leaf, tf.TensorSpec) and leaf.shape.rank is not None for leaf in leaves(spec))


def leaf(spec: Any, *dtypes: str, rank: int | None = None) -> bool:
    """Return True if an element is one tensor of one of these dtypes."""
    return (
        isinstance(spec, tf.TensorSpec)
        and (not dtypes or spec.dtype.name in dtypes)
        and (spec.shape.rank is not None and rank in (None, spec.shape.rank))
    )


def batched(spec: Any) -> bool:
    return plain(spec) and all(part.shape.rank for part in leaves(spec))


def taking(spec: Any, body: str) -> str:
    """Return a function of an element x. A tuple's components are its arguments."""
    return f"lambda *x: {body}" if isinstance(spec, tuple) else f"lambda x: {body}"


def number(spec: Any, name: str = "x") -> str:
    """Return an int64 scalar that depends on the element."""
    if isinstance(spec, tuple):
        return number(spec[0], f"{name}[0]")
    if isinstance(spec, dict):
        key = next(iter(spec))
        return number(spec[key], f"{name}[{key!r}]")
    if spec.dtype == tf.string:
        return f"K.size({name})" if spec.shape.rank else f"K.length({name})"
    if spec.dtype == tf.bool:
        return f"K.total(K.cast({name}, 'int64'))"
    found = f"K.total({name})" if spec.shape.rank else name
    return found if spec.dtype == tf.int64 else f"K.cast({found}, 'int64')"


# -- sources


SOURCES = (
    lambda rng: f"K.Dataset.range({rng.choice((0, 1, 2, 7, 13, 20))})",
    lambda rng: f"K.Dataset.range({rng.randint(-5, 5)}, {rng.randint(-9, 20)}, {rng.choice((1, 2, 3, -1, -2))})",
    lambda rng: f"K.Dataset.range({rng.randint(0, 9)}, output_type=np.{rng.choice(('int32', 'float32'))})",
    lambda rng: f"K.Dataset.from_tensor_slices(np.arange({6 * rng.randint(0, 3)}).reshape(-1, 3))",
    lambda rng: f"K.Dataset.from_tensor_slices(np.arange({rng.randint(1, 9)}, dtype=np.float32) / 4)",
    lambda rng: "K.Dataset.from_tensor_slices((np.arange(12).reshape(6, 2), np.arange(6)))",
    lambda rng: 'K.Dataset.from_tensor_slices({"a": np.arange(5), "b": np.arange(20.0).reshape(5, 2, 2)})',
    lambda rng: 'K.Dataset.from_tensor_slices(["b", "", "aé", "b", "abc"])',
    lambda rng: "K.Dataset.from_tensor_slices((np.arange(4), (np.arange(4) > 1, np.arange(4)[::-1])))",
    lambda rng: "K.Dataset.from_tensors(np.arange(7))",
    lambda rng: 'K.Dataset.from_tensors((np.float32(1.5), {"k": b"text"}))',
    lambda rng: "K.experimental.from_list([(np.int64(1), b'x'), (np.int64(2), b'yy')])",
    lambda rng: f"K.Dataset.counter(np.int64({rng.randint(-3, 3)}), np.int64({rng.randint(-2, 4)})).take(11)",
    lambda rng: f"K.Dataset.from_generator(lambda: range({rng.randint(0, 9)}), output_signature=K.spec((), np.int64))",
    lambda rng: (
        "K.Dataset.from_generator(lambda: [(np.arange(i % 3), b'%d' % i) for i in range(7)], "
        "output_signature=(K.spec((None,), np.int64), K.spec((), bytes)))"
    ),
    lambda rng: f"K.Dataset.range({rng.randint(0, 12)}).map(lambda x: K.arange(x * 7 % 5))",
)


# -- one element, one element


def _mapped(rng: Random, spec: Any) -> Iterator[str]:
    """Yield bodies of functions of x."""
    n = rng.randint(1, 5)
    if isinstance(spec, (tuple, dict)):
        names = [repr(name) for name in (spec if isinstance(spec, dict) else range(len(spec)))]
        first, last = f"x[{names[0]}]", f"x[{names[-1]}]"
        yield from (first, last, f"({last}, {first})", f'{{"p": {first}, "q": {last}}}')
        yield f"({number(spec)} * {n}, {last})"
        return
    if not leaf(spec):
        return
    if leaf(spec, "string"):
        yield from ("(x, x)", *(("x + b'!'", "(K.length(x), x)") if leaf(spec, rank=0) else ()))
        return
    if leaf(spec, "bool"):
        yield "K.cast(x, 'int64')"
        return
    yield from (f"x * {n} - 3", f"(x, x * {n})", f'{{"a": x, "b": x + {n}}}', "-x", f"x > {n}", "((x, x + 1), x)")
    if leaf(spec, "int64"):
        yield from (f"x % {n}", f"x // {n}", "x / 4", "K.cast(x, 'float32') / 4", "K.cast(x, 'int32')")
    if leaf(spec, "int64", rank=0):
        yield from (f"K.arange(x * 3 % {n + 1})", f"K.full({n}, x)", "K.text(x)", "(K.text(x), K.full(2, x))")
    if leaf(spec, rank=1):
        yield from ("x[::-1]", "x[:2]", "K.size(x)", "K.total(x)", "(x, K.size(x))")


@step
def _map(rng: Random, spec: Any) -> str | None:
    bodies = list(_mapped(rng, spec))
    if not bodies:
        return None
    parallel = rng.choice(("", "", ", num_parallel_calls=2"))
    return f".map({taking(spec, rng.choice(bodies))}{parallel})"


@step
def _map_again(rng: Random, spec: Any) -> str | None:
    return _map(rng, spec)


@step
def _scan(rng: Random, spec: Any) -> str | None:
    if not plain(spec):
        return None
    value = number(spec)
    body = rng.choice((f"(s + {value}, s)", f"(s * 2 % 7, (s, {value}))", "(s + 1, (x, s))"))
    return f".scan(np.int64({rng.randint(0, 3)}), lambda s, x: {body})"


@step
def _enumerate(rng: Random, spec: Any) -> str:
    return f".enumerate({rng.choice(('', -3, 5))})"


# -- some of the elements


def _condition(rng: Random, spec: Any) -> str:
    return f"{number(spec)} % {rng.randint(2, 4)} {rng.choice(('!=', '==', '<'))} {rng.randint(0, 2)}"


@step
def _filter(rng: Random, spec: Any) -> str | None:
    return f".filter({taking(spec, _condition(rng, spec))})" if plain(spec) else None


@step
def _take_while(rng: Random, spec: Any) -> str | None:
    return f".take_while({taking(spec, f'{number(spec)} < {rng.randint(0, 9)}')})" if plain(spec) else None


@step
def _part(rng: Random, spec: Any) -> str:
    return f".{rng.choice(('take', 'skip'))}({rng.randint(-1, 8)})"


@step
def _shard(rng: Random, spec: Any) -> str:
    count = rng.randint(1, 4)
    return f".shard({count}, {rng.randint(0, count - 1)})"


@step
def _unique(rng: Random, spec: Any) -> str | None:
    return ".unique()" if leaf(spec, "int64", "int32", "string", rank=0) else None


@step
def _ignore_errors(rng: Random, spec: Any) -> str | None:
    if not plain(spec):
        return None
    return f".map({taking(spec, f'K.fail_if(x, {_condition(rng, spec)})')}).ignore_errors()"


@step
def _fail(rng: Random, spec: Any) -> str | None:
    if not plain(spec) or rng.random() < 0.7:
        return None
    condition = f"{number(spec)} % 9 == 7"
    return f".map({taking(spec, f'K.fail_if(x, {condition})')}){LAST}"


# -- several elements into one, and back


@step
def _batch(rng: Random, spec: Any) -> str | None:
    if not plain(spec):
        return None
    drop = rng.choice(("", ", drop_remainder=True", ", num_parallel_calls=2"))
    return f".batch({rng.randint(1, 5)}{drop})"


@step
def _unbatch(rng: Random, spec: Any) -> str | None:
    # TensorFlow crashes if rows are empty, and if components have different lengths.
    if batched(spec) and leaf(spec) and spec.shape[1:].is_fully_defined():
        return ".unbatch()"
    defined = plain(spec) and all(part.shape.is_fully_defined() for part in leaves(spec))
    return f".batch({rng.randint(1, 4)}).unbatch()" if defined else None


@step
def _rebatch(rng: Random, spec: Any) -> str | None:
    sizes = rng.choice((rng.randint(1, 6), [rng.randint(1, 4) for _ in range(rng.randint(1, 3))]))
    drop = rng.choice(("", ", drop_remainder=True"))
    return f".batch({rng.randint(1, 5)}).rebatch({sizes}{drop})" if plain(spec) else None


@step
def _padded_batch(rng: Random, spec: Any) -> str | None:
    if not plain(spec):
        return None
    arguments = [str(rng.randint(1, 4))]
    if leaf(spec, rank=1) and rng.random() < 0.5:
        arguments.append(f"padded_shapes=[{rng.choice((None, -1, 3, 5))}]")
    if leaf(spec, "int64", "float32") and rng.random() < 0.5:
        arguments.append(f"padding_values=np.{spec.dtype.name}(-1)")
    if rng.random() < 0.3:
        arguments.append("drop_remainder=True")
    return f".padded_batch({', '.join(arguments)})"


@step
def _ragged_batch(rng: Random, spec: Any) -> str | None:
    if not plain(spec) or any(part.shape.rank and part.shape.as_list() != [None] for part in leaves(spec)):
        return None
    dtype = rng.choice(("", ", row_splits_dtype=np.int32"))
    return f".ragged_batch({rng.randint(1, 4)}, {rng.random() < 0.3}{dtype})"


@step
def _sparse_batch(rng: Random, spec: Any) -> str | None:
    if not leaf(spec, "int64", "float32", "string", rank=1):
        return None
    return f".sparse_batch({rng.randint(1, 4)}, [{rng.choice((None, 4, 7))}])"


@step
def _window(rng: Random, spec: Any) -> str | None:
    if not plain(spec):
        return None
    size = rng.randint(1, 4)
    settings = f"{size}, {rng.choice((None, 1, 2, 5))}, {rng.choice((1, 1, 2))}, {rng.random() < 0.4}"
    whole = "x" if leaf(spec) else "K.Dataset.zip(x)"
    return f".window({settings}).flat_map({taking(spec, f'{whole}.batch({rng.randint(1, 4)})')})"


@step
def _group_by_window(rng: Random, spec: Any) -> str | None:
    if not plain(spec):
        return None
    size = rng.choice(("window_size=3", "window_size=1", "window_size_func=lambda key: key + 1"))
    reduced = rng.choice((f"w.batch({rng.randint(1, 3)})", "w.take(2)", "w", "w.map(lambda *x: key)"))
    key = taking(spec, f"{number(spec)} % {rng.randint(1, 3)}")
    return f".group_by_window({key}, lambda key, w: {reduced}, {size})"


@step
def _bucket(rng: Random, spec: Any) -> str | None:
    if not leaf(spec, "int64", "float32", "string", rank=1):
        return None
    boundary = ", padded_shapes=[None], pad_to_bucket_boundary=True"
    options = rng.choice(("", ", drop_remainder=True", ", no_padding=True", ", padded_shapes=[None]", boundary))
    boundaries = rng.choice(([2], [1, 3], [2, 4, 9]))
    sizes = [rng.randint(1, 3) for _ in (*boundaries, None)]
    return f".bucket_by_sequence_length(lambda x: K.cast(K.size(x), 'int32'), {boundaries}, {sizes}{options})"


@step
def _group_by_reducer(rng: Random, spec: Any) -> str | None:
    if not plain(spec):
        return None
    key = taking(spec, f"{number(spec)} % {rng.randint(1, 4)}")
    functions = f"lambda key: key * 0, lambda s, x: s + {number(spec)}, lambda s: {rng.choice(('s', '(s, s * 2)'))}"
    return f".apply(K.experimental.group_by_reducer({key}, K.experimental.Reducer({functions})))"


@step
def _reduce(rng: Random, spec: Any) -> str | None:
    if not plain(spec):
        return None
    function, start = rng.choice((("s + {}", "np.int64(1)"), ("(s[0] + {}, s[1] + 1)", "(np.int64(0), np.int64(0))")))
    reduced = f"ds.reduce({start}, lambda s, x: {function.format(number(spec))})"
    return f".apply(lambda ds: K.Dataset.from_tensors({reduced}))"


@step
def _single(rng: Random, spec: Any) -> str | None:
    if not plain(spec) or rng.random() < 0.7:
        return None
    one = rng.choice(("take(1)", "take(2)", "batch(40)"))
    return f".apply(lambda ds: K.Dataset.from_tensors(ds.{one}.get_single_element()))"


# -- one element into several, several data sets into one


def _inner(rng: Random, spec: Any) -> str:
    """Return a function from an element to a data set."""
    value = number(spec)
    bodies = [
        f"K.Dataset.range({value} % 4)",
        f"K.Dataset.range({value}, {value} + 3)",
        "K.Dataset.from_tensors(x).repeat(2)",
    ]
    if batched(spec):
        bodies.append("K.Dataset.from_tensor_slices(x)")
    return taking(spec, rng.choice(bodies))


@step
def _flat_map(rng: Random, spec: Any) -> str | None:
    return f".flat_map({_inner(rng, spec)})" if plain(spec) else None


@step
def _interleave(rng: Random, spec: Any) -> str | None:
    if not plain(spec):
        return None
    cycle, block = rng.randint(1, 4), rng.randint(1, 3)
    parallel = rng.choice(("", f", num_parallel_calls={rng.randint(1, cycle)}"))
    return f".interleave({_inner(rng, spec)}, cycle_length={cycle}, block_length={block}{parallel})"


@step
def _concatenate(rng: Random, spec: Any) -> str:
    return f".apply(lambda ds: ds.concatenate(ds.skip({rng.randint(0, 3)})))"


@step
def _zip(rng: Random, spec: Any) -> str:
    nest = rng.choice(
        (
            "ds, ds.skip(1)",
            '{"p": ds, "q": ds.take(3)}',
            "(ds, (ds, K.Dataset.range(5)))",
            "datasets=(K.Dataset.counter(), ds)",
        )
    )
    return f".apply(lambda ds: K.Dataset.zip({nest}))"


@step
def _choose(rng: Random, spec: Any) -> str | None:
    if not plain(spec):  # TensorFlow refuses some ragged tensors
        return None
    choice = rng.choice(("K.Dataset.range(9).map(lambda i: i * 5 % 3)", "K.Dataset.range(3).repeat(4)"))
    arguments = f"[ds, ds.skip(2), ds.take(1)], {choice}, stop_on_empty_dataset={rng.random() < 0.5}"
    return f".apply(lambda ds: K.Dataset.choose_from_datasets({arguments}))"


@step
def _sample_the_only(rng: Random, spec: Any) -> str | None:
    if not plain(spec):
        return None
    weights = rng.choice(("[1.0, 0.0]", "[0.0, 1.0]"))
    arguments = f"[ds, ds.take(3)], {weights}, stop_on_empty_dataset=True"
    return f".apply(lambda ds: K.Dataset.sample_from_datasets({arguments}))"


@step
def _repeat(rng: Random, spec: Any) -> str:
    endless = ["", ".enumerate()", ".prefetch(2)", ".skip(3)", ".shard(2, 1)"]
    if plain(spec):
        endless += [".batch(3)", ".window(2).flat_map(lambda *w: K.Dataset.range(2))"]
    if rng.random() < 0.5:
        return f".repeat({rng.choice(('', -1, 'None'))}){rng.choice(endless)}.take({rng.randint(0, 12)})"
    return f".repeat({rng.randint(0, 2)})"


# -- without a change


@step
def _same(rng: Random, spec: Any) -> str:
    return rng.choice(
        (
            ".cache()",
            ".prefetch(2)",
            ".prefetch(-1)",
            ".prefetch(0)",
            ".shuffle(1)",
            ".ignore_errors()",
            ".with_options(K.options(deterministic=True))",
            ".with_options(K.options(experimental_optimization__map_and_batch_fusion=True))",
        )
    )


@step
def _assert_cardinality(rng: Random, spec: Any) -> str | None:
    if rng.random() < 0.5:
        return None
    if rng.random() < 0.3:  # a wrong cardinality fails repeatedly, so a later ignore_errors would never end
        return f".apply(K.experimental.assert_cardinality(3)){LAST}"
    return KNOWN


@step
def _pad_to_cardinality(rng: Random, spec: Any) -> str | None:
    if not isinstance(spec, dict) or "valid" in spec or not plain(spec):
        return None
    if not all(part.shape.is_fully_defined() for part in leaves(spec)):
        return None
    return f"{KNOWN}.apply(K.experimental.pad_to_cardinality({rng.randint(3, 24)}))"

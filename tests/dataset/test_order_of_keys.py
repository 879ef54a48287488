"""All elements of a data set have the keys of their dicts in the order of the first element."""

import numpy as np
import pytest

import penstock as ps

ORDERS = ("a", "b", "c"), ("c", "a", "b"), ("b", "a", "c")


def part(number, size=7):
    """Elements that say where they are from, in the order of keys of this part."""
    keys = ORDERS[number]

    def element(i):
        return {key: {"a": number, "b": i, "c": np.arange(2) + i}[key] for key in keys}

    return ps.Dataset.range(size).map(element)


def parts(count=3):
    return [part(number) for number in range(count)]


def joined():
    def of(number):
        return part(int(number))

    yield "concatenate", part(0).concatenate(part(1)).concatenate(part(2))
    yield "sample", ps.Dataset.sample_from_datasets(parts(), [0.5, 0.2, 0.3], seed=4)
    yield "choose", ps.Dataset.choose_from_datasets(parts(), ps.Dataset.from_tensor_slices([0, 0, 1, 2, 1]).repeat(4))
    yield "interleave", ps.Dataset.range(3).interleave(of, cycle_length=2, block_length=2)
    yield "in parallel", ps.Dataset.range(3).interleave(of, cycle_length=3, num_parallel_calls=2)
    yield "flat_map", ps.Dataset.range(3).flat_map(of)


JOINED = dict(joined())


def as_they_are(element):
    return [(key, np.asarray(value).tolist()) for key, value in element.items()]


def opaque(number):
    """A part whose spec is not known before an element comes."""
    return part(number).map(lambda row: dict(sorted(row.items(), key=lambda item: list(row).index(item[0]))))


def check(ds, first=ORDERS[0], **settings):
    with ds.iterator(**settings) as elements:
        found = list(elements)
    assert {tuple(element) for element in found} == {first}
    return found


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
@pytest.mark.parametrize("name", JOINED)
def test_joined_data_sets_have_the_first_ones_order(name, executor):
    found = check(JOINED[name], executor=executor)
    assert len(found) == 21 or name == "choose"
    for element in found:
        assert (element["c"] == np.arange(2) + element["b"]).all()


@pytest.mark.parametrize("name", JOINED)
def test_steps_after_them_see_it(name):
    ds = JOINED[name]
    for then in (ds.shuffle(5, seed=1), ds.shuffle(100, seed=1), ds.prefetch(3), ds.cache(), ds.repeat(2), ds.batch(4)):
        for _ in range(2):
            check(then)
    assert {tuple(map(str, row)) for row in ds.map(lambda row: tuple(name.encode() for name in row))} == {
        tuple(str(name.encode()) for name in ORDERS[0])
    }


@pytest.mark.parametrize("name", JOINED)
def test_a_resumed_iteration_keeps_it(name):
    ds = JOINED[name].shuffle(6, seed=3, reshuffle_each_iteration=False)
    whole = list(map(as_they_are, ds))
    for done in (0, 1, 6, 13, len(whole) - 1):
        iterator = iter(ds)
        for _ in range(done):
            next(iterator)
        again = iter(ds)
        again.load_state_dict(iterator.state_dict())
        assert list(map(as_they_are, again)) == whole[done:]


def test_so_do_data_sets_without_a_spec():
    ds = opaque(0).concatenate(opaque(1))
    assert ds.element_spec.keys() == {"a", "b", "c"}
    check(ds)
    check(ps.Dataset.range(3).interleave(lambda i: opaque(int(i)), 3))


def test_elements_by_number_have_it():
    for ds in (part(0).concatenate(part(1)).concatenate(part(2)), opaque(0).concatenate(opaque(1))):
        for number in range(len(ds)):
            assert tuple(ds.at(number)) == ORDERS[0]
        check(ds.shuffle(100, seed=1))
        check(ds.shuffle(ps.ALL, seed=1))


class Rows:
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return dict.fromkeys(ORDERS[i % 3], i)


def test_sources_have_the_order_of_their_first_element(tmp_path):
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    files = []
    for number, keys in enumerate(ORDERS):
        table = pa.table({key: [number, number + 1] for key in keys})
        files.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(table, files[-1])
        with pa.OSFile(f"{tmp_path}/{number}.arrow", "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    arrow = [f"{tmp_path}/{number}.arrow" for number in range(3)]
    for ds in (ps.ParquetDataset(files), ps.ArrowDataset(arrow), ps.Dataset.from_sequence(Rows())):
        check(ds)
        check(ds.skip(3))
        assert tuple(ds.at(3)) == tuple(ds.at(0)) == ORDERS[0]


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_results_of_workers_have_the_first_ones_order(executor):
    def of(x):
        return {key: np.full(2000, int(x)) for key in ORDERS[int(x) % 3]}

    check(ps.Dataset.range(40).map(of, num_parallel_calls=3), executor=executor)


def labelled(number):
    """An input whose function closes over a label."""
    return ps.Dataset.range(5).map(lambda x: {"x": x, "label": number})


def ordered(number):
    """An input whose function closes over an order of keys, before a function that all inputs share."""
    keys = ORDERS[number % 3] if number != 4 else ORDERS[0]
    ds = ps.Dataset.range(5).map(lambda x: {key: {"a": number, "b": x, "c": x * x}[key] for key in keys})
    return ds.map(lambda row: {**row, "d": row["b"] + 1})


def shared(number):
    return ps.Dataset.range(number, number + 5).map(lambda x: {"b": x, "a": x // 2})


def in_tuples(number):
    keys = ("a", "b") if number < 3 else ("b", "a")
    return ps.Dataset.range(5).map(lambda x: (number, dict.fromkeys(keys, x)))


@pytest.mark.parametrize("of", [labelled, ordered, shared, in_tuples])
@pytest.mark.parametrize("cycle_length", [1, 3])
def test_small_inputs_read_together_give_what_each_gives_alone(of, cycle_length):
    found = list(ps.Dataset.range(6).interleave(lambda i: of(int(i)), cycle_length, block_length=2))
    alone = [list(of(number)) for number in range(6)]
    ds = ps.Dataset.range(6).interleave(
        lambda i: ps.Dataset.range(5).map(lambda x: (i, x)), cycle_length, block_length=2
    )
    assert found == [alone[int(i)][int(x)] for i, x in ds]

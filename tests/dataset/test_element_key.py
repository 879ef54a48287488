"""What a function draws follows from its element's number in the step's input, whoever calls it when."""

import json

import numpy as np
import pytest

import penstock as ps
from penstock.keys import fold

COUNT = 300


def drawn(x):
    """The element beside what it draws: a function that runs per element."""
    return x, np.uint64(ps.element_key()), np.uint64(ps.element_key())


def numbered(count=COUNT):
    return ps.Dataset.range(count)


def failing(x):
    if x % 7 == 3:
        raise ValueError(x)
    return x


def pairs(elements):
    return [tuple(int(value) for value in element) for element in elements]


def through(ds, **arguments):
    """All elements of a pass, failures left out."""
    found = []
    with ds.iterator(**arguments) as iterator:
        while True:
            try:
                found.append(next(iterator))
            except StopIteration:
                return found
            except ValueError:
                continue


def keys_of(ds, epoch=0):
    """What each number draws, from the definition."""
    node = ds._plan
    base = fold(0 if ds.options().seed is None else ds.options().seed, node.salt)
    return lambda number: tuple(fold(base, epoch, number, ordinal) for ordinal in (0, 1))


def test_it_is_the_key_of_the_step_the_epoch_and_the_number():
    ds = numbered(10).map(drawn)
    for epoch in (0, 3):
        keys = keys_of(ds, epoch)
        assert pairs(ds.iterator(epoch=epoch)) == [(i, *keys(i)) for i in range(10)]


PLANS = {
    "plain": lambda f, **how: numbered().map(f, **how),
    "behind a filter": lambda f, **how: numbered().filter(lambda x: x % 3 > 0).map(f, **how),
    "behind a filter that is parallel": lambda f, **how: (
        numbered().map(lambda x: x + 0, 2).filter(lambda x: x % 3 > 0).map(f, **how)
    ),
    "behind failures": lambda f, **how: numbered().map(failing, **how).map(f, **how),
    "behind a shuffle": lambda f, **how: numbered().shuffle(50).map(f, **how),
    "in front of a shuffle": lambda f, **how: numbered().map(f, **how).shuffle(50),
    "in front of a cut": lambda f, **how: numbered().map(f, **how).skip(11).take(60),
    "in front of a shard": lambda f, **how: numbered().map(f, **how).shard(3, 1),
    "in an interleave": lambda f, **how: numbered(12).interleave(
        lambda x: ps.Dataset.range(9).map(f, **how), cycle_length=3
    ),
    "in a repetition": lambda f, **how: numbered(40).map(f, **how).repeat(3),
    "behind a repetition": lambda f, **how: numbered(40).repeat(3).map(f, **how),
    "of all numbers": lambda f, **how: numbered().map(f, **how).shuffle(ps.ALL),
    "in a batch": lambda f, **how: numbered().map(f, **how).batch(16).unbatch(),
}


@pytest.mark.parametrize("name", PLANS)
def test_executorsand_settings_do_not_matter(name):
    make = PLANS[name]
    wanted = pairs(through(make(drawn), epoch=1, executor="inline"))
    assert len({keys for _, *keys in map(list, wanted) for keys in [tuple(keys)]}) == len(wanted)
    for how in ({"num_parallel_calls": 3}, {"num_parallel_calls": ps.AUTOTUNE}):
        assert pairs(through(make(drawn, **how), epoch=1)) == wanted
    plain = make(drawn).with_options(ps.Options(experimental_optimization={"apply_default_optimizations": False}))
    assert pairs(through(plain, epoch=1)) == wanted


def test_worker_processes_draw_the_same():
    ds = numbered().map(drawn, num_parallel_calls=2)
    assert pairs(ds.iterator(epoch=2, executor="process")) == pairs(ds.iterator(epoch=2, executor="inline"))


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_pass_goes_on_with_what_it_would_have_drawn(name, executor):
    ds = PLANS[name](drawn, num_parallel_calls=2)
    wanted = pairs(through(ds, epoch=1))
    for stop in (0, 1, 23):
        first = ds.iterator(epoch=1, executor=executor)
        begun = []
        while len(begun) < stop:
            try:
                begun.append(next(first))
            except ValueError:
                continue
        state = json.loads(json.dumps(first.state_dict()))
        first.close()
        with ds.iterator(executor=executor) as second:
            second.load_state_dict(state)
            rest = []
            while True:
                try:
                    rest.append(next(second))
                except StopIteration:
                    break
                except ValueError:
                    continue
        assert pairs(begun) + pairs(rest) == wanted


@pytest.mark.parametrize("batched", [False, True])
def test_in_free_order_elements_keep_what_they_draw_over_a_resume(batched):
    ds = numbered().map(drawn, num_parallel_calls=3, deterministic=False)
    ds = ds.batch(8).unbatch() if batched else ds
    wanted = sorted(pairs(numbered().map(drawn).iterator(epoch=1)))
    first = ds.iterator(epoch=1)
    begun = [next(first) for _ in range(70)]
    state = first.state_dict()
    first.close()
    with ds.iterator() as second:
        second.load_state_dict(state)
        found = begun + list(second)
    assert sorted(pairs(found)) == wanted


def test_steps_draw_apart_and_a_seed_draws_alike():
    ds = numbered(50).map(drawn).map(lambda x, a, b: (x, a, np.uint64(ps.element_key())))
    assert all(a != b for _, a, b in pairs(ds))
    seeded = numbered(50).map(lambda x: (x, np.uint64(ps.element_key(5)), np.uint64(ps.element_key(5))))
    seeded = seeded.map(lambda x, a, b: (a, b, np.uint64(ps.element_key(5))))
    found = pairs(seeded)
    assert all(a == b == c for a, b, c in found)
    assert len(set(found)) == 50


def test_passes_seeds_and_shards_draw_apart():
    ds = numbered(40).map(drawn)
    one, two = ({keys for _, *keys in pairs(ds) for keys in [tuple(keys)]} for _ in range(2))
    other = {tuple(keys) for _, *keys in pairs(ds.with_options(ps.Options(seed=9)))}
    parts = [{tuple(keys) for _, *keys in pairs(numbered(40).shard(2, k).map(drawn).iterator(epoch=0))} for k in (0, 1)]
    assert len(one | two | other) == 120
    assert len(parts[0] | parts[1]) == 40


def test_outside_of_a_data_set_every_call_gives_another():
    assert len({ps.element_key() for _ in range(100)}) == 100
    assert ps.element_key(3) == ps.element_key(3) != ps.element_key(4)


def test_a_pass_inside_a_function_draws_for_its_own_elements():
    inner = numbered(3).map(drawn)

    def both(x):
        mine = np.uint64(ps.element_key())
        own = [key for _, key, _ in inner.iterator(epoch=0, executor="inline")]
        return mine, own[0], np.uint64(ps.element_key())

    found = pairs(numbered(4).map(both).iterator(epoch=0))
    assert len({own for _, own, _ in found}) == 1
    assert len({key for mine, _, later in found for key in (mine, later)}) == 8

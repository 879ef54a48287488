"""Random steps and shuffles behind which a cache or snapshot stands: said once, on the line of the step."""

import random
import secrets
import time
import warnings
from datetime import datetime

import numpy as np
import pytest

import penstock as ps
from penstock import hints
from penstock.errors import RandomnessWarning

pytestmark = pytest.mark.filterwarnings("error")

RANGE = ps.Dataset.range


def keyed(x):
    return x + np.random.default_rng(ps.element_key()).integers(3)


def flipped(x):
    return ps.image.random_flip_left_right(np.full((2, 2, 1), x))


def clocked(x):
    return x + time.time()


def dated(x):
    return x + datetime.now().year


def secret(x):
    return x + secrets.randbelow(3)


RANDOM = {
    "element_key": (keyed, "ps.element_key"),
    "random image": (flipped, "ps.image.random_flip_left_right"),
    "numpy": (lambda x: x + np.random.rand(), "np.random.rand"),
    "the standard library": (lambda x: x + random.random(), "random.random"),
    "the clock": (clocked, "time.time"),
    "the date": (dated, "datetime.now"),
    "secrets": (secret, "secrets.randbelow"),
}

KEEPERS = {
    "cache": lambda ds, folder: ds.cache(),
    "cache in files": lambda ds, folder: ds.cache(str(folder / "kept")),
    "snapshot": lambda ds, folder: ds.snapshot(folder / "kept"),
}


@pytest.fixture(autouse=True)
def nothing_was_told(monkeypatch):
    monkeypatch.setattr(hints, "_TOLD", set())


@pytest.fixture(params=KEEPERS)
def keep(request, tmp_path):
    return lambda ds: KEEPERS[request.param](ds, tmp_path)


@pytest.mark.parametrize("name", RANDOM)
def test_what_functions_draw_from_is_named(name, keep):
    function, drawn = RANDOM[name]
    ds = keep(RANGE(3).map(function).batch(2))
    keeper = ds._plan.name
    with pytest.warns(RandomnessWarning, match=rf"random numbers of {drawn}, and {keeper}\(\) keeps the first ones"):
        list(ds)


def test_it_is_said_once_on_the_line_of_the_step(keep):
    def drawing():
        return RANGE(3).map(keyed)  # the line

    def passes():
        for _ in range(2):
            ds = keep(drawing())
            list(ds)
            list(ds)
        return ds

    with pytest.warns(RandomnessWarning) as found:
        ds = passes()
    (told,) = found
    assert told.filename == __file__
    assert told.lineno == drawing.__code__.co_firstlineno + 1
    assert str(told.message).endswith("() keeps the first ones for all epochs. " + hint(ds))


def hint(ds):
    return f"Put the step after {ds._plan.name}(), so that every epoch has its own."


@pytest.mark.parametrize("shuffled", [lambda ds: ds.shuffle(3), lambda ds: ds.shuffle(ps.ALL)])
def test_a_shuffle_is_told_with_both_ways_out(shuffled, keep):
    ds = keep(shuffled(RANGE(3)))
    with pytest.warns(RandomnessWarning, match=r"keeps the order that shuffle\((3|ALL)\) made first.*reshuffle_each"):
        list(ds)


@pytest.mark.parametrize(
    "random_step",
    [
        lambda ds: ds.filter(lambda x: random.random() < 0.5),
        lambda ds: ds.flat_map(lambda x: RANGE(random.randrange(3))),
        lambda ds: ds.interleave(lambda x: RANGE(random.randrange(3)), cycle_length=2),
        lambda ds: ds.scan(np.int64(0), lambda state, x: (state, x + random.randrange(3))),
        lambda ds: ds.take_while(lambda x: random.random() < 0.9),
        lambda ds: ps.Dataset.zip(ds, ds.map(lambda x: random.random())),
    ],
)
def test_all_steps_with_functions_are_looked_at(random_step, keep):
    with pytest.warns(RandomnessWarning, match="random.rand"):
        next(iter(keep(random_step(RANGE(3)))), None)


def drawing_generator():
    for _ in range(3):
        yield np.random.rand()


def test_a_generator_that_draws_is_told(keep):
    def made():
        return ps.Dataset.from_generator(drawing_generator)

    with pytest.warns(RandomnessWarning, match=r"drawing_generator\) uses random numbers of np.random.rand") as found:
        list(keep(made()))
    assert [told.lineno for told in found] == [made.__code__.co_firstlineno + 1]
    assert [advice.code for advice in keep(made()).lint() if advice.code == "cache-random"] == ["cache-random"]


def seeded(x):
    return x + np.random.default_rng(int(x)).integers(3)


def timed(x):
    began = time.perf_counter()
    return x * (time.perf_counter() >= began)


FIXED = {
    "a pure function": lambda keep, folder: keep(RANGE(3).map(lambda x: x * 2)),
    "a generator seeded by the element": lambda keep, folder: keep(RANGE(3).map(seeded)),
    "a function that takes the time it needs": lambda keep, folder: keep(RANGE(3).map(timed)),
    "a random function behind it": lambda keep, folder: keep(RANGE(3)).map(keyed),
    "one order on purpose": lambda keep, folder: keep(RANGE(3).shuffle(3, reshuffle_each_iteration=False)),
    "a shuffle behind it": lambda keep, folder: keep(RANGE(3).shuffle(3)).shuffle(3),
    "a shuffle of names": lambda keep, folder: keep(
        ps.Dataset.list_files(str(folder / "*.txt")).interleave(ps.TextLineDataset, cycle_length=1)
    ),
    "stateless images": lambda keep, folder: keep(
        RANGE(3).map(lambda x: ps.image.stateless_random_flip_left_right(np.full((2, 2, 1), x), seed=(1, 2)))
    ),
}


@pytest.mark.parametrize("name", FIXED)
def test_what_is_the_same_in_every_epoch_is_no_news(name, keep, tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    ds = FIXED[name](keep, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RandomnessWarning)
        list(ds)
    assert [advice.code for advice in ds.lint() if advice.code in ("cache-random", "cache-shuffled")] == []


def test_lint_says_the_same(keep):
    drawn, shuffled = keep(RANGE(3).map(keyed)), keep(RANGE(3).shuffle(3))
    (advice,) = [advice for advice in drawn.lint() if advice.code == "cache-random"]
    assert advice.mended.endswith(").map(keyed)")
    (advice,) = [advice for advice in shuffled.lint() if advice.code == "cache-shuffled"]
    assert advice.mended.endswith(").shuffle(3)")

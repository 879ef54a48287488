"""Generated pipelines against the reference interpreter, on every executor, under every rewrite, from every step."""

import json
from collections import Counter
from itertools import islice

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests import reference
from tests.strategies import MOST, Pipeline, pipelines

import penstock as ps
from penstock.block.spec import spec_of
from penstock.block.structure import flatten
from penstock.rewrite.driver import rewrite
from penstock.rewrite.phases import OptimizationOptions
from penstock.testing import assert_resumes_exactly, assert_same_elements, token

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # sums of small integers that overflow

RULES = sorted({*OptimizationOptions._settings, *OptimizationOptions._below} - {"apply_default_optimizations"})


def expected(dataset, epoch=0):
    return list(reference.run(dataset._plan, dataset.options(), epoch))


def found(dataset, epoch=0, executor="thread"):
    with dataset.iterator(epoch=epoch, executor=executor) as elements:
        return list(elements)


@settings(max_examples=max(100, settings.default.max_examples))
@given(pipelines())
def test_threads_and_the_inline_executor_give_what_the_reference_gives(pipeline: Pipeline):
    for epoch in (0, 2):
        wanted = expected(pipeline.dataset, epoch)
        assert_same_elements(found(pipeline.dataset, epoch, "inline"), wanted)
        assert_same_elements(found(pipeline.dataset, epoch, "thread"), wanted)


@settings(max_examples=max(40, settings.default.max_examples // 4))
@given(pipelines())
def test_worker_processes_give_what_the_reference_gives(pipeline: Pipeline):
    assert_same_elements(found(pipeline.dataset, 0, "process"), expected(pipeline.dataset, 0))


@settings(max_examples=20)
@given(pipelines(most_steps=3))
def test_a_state_goes_from_worker_processes_to_threads_and_back(pipeline: Pipeline):
    assert_resumes_exactly(pipeline.dataset, limit=MOST // 2, executors=("process", "thread"))


@given(pipelines())
def test_passes_of_one_data_set_are_its_epochs(pipeline: Pipeline):
    passes = [list(pipeline.dataset) for _ in range(2)]
    for epoch, elements in enumerate(passes):
        assert_same_elements(elements, expected(pipeline.dataset, epoch))


def only(*names):
    options = ps.Options()
    for name in RULES:
        setattr(options.experimental_optimization, name, name in names)
    return options


@pytest.mark.parametrize("rules", [*([rule] for rule in RULES), RULES], ids=[*RULES, "all"])
@settings(max_examples=25)
@given(pipeline=pipelines())
def test_a_rewritten_plan_gives_the_same(rules, pipeline):
    options = only(*rules)
    plan, _ = rewrite(pipeline.dataset._plan, options)
    if plan is pipeline.dataset._plan:
        return
    wanted = expected(pipeline.dataset)
    assert_same_elements(list(reference.run(plan, options)), wanted)
    assert_same_elements(found(ps.Dataset._of(plan, options), executor="inline"), wanted)


@settings(max_examples=max(40, settings.default.max_examples // 4))
@given(pipelines(most_steps=4))
def test_a_pass_continues_from_every_step_on_the_executor_that_saved_it(pipeline: Pipeline):
    assert_resumes_exactly(pipeline.dataset, limit=MOST, across=False)


@settings(max_examples=max(25, settings.default.max_examples // 8))
@given(pipelines(most_steps=4))
def test_a_pass_continues_from_every_step_on_another_executor(pipeline: Pipeline):
    assert_resumes_exactly(pipeline.dataset, limit=MOST // 2, across=True)


@settings(max_examples=25)
@given(pipelines(most_steps=4))
def test_a_checkpoint_of_a_continued_pass_is_as_good(pipeline: Pipeline):
    """Each element comes from an iterator of its own, restored from the state of the one before."""
    dataset = pipeline.dataset
    wanted = expected(dataset)[:MOST]
    given_so_far = []
    state = None
    for _ in wanted:
        with dataset.iterator(epoch=0) as elements:
            if state is not None:
                elements.load_state_dict(state)
            given_so_far.extend(islice(elements, 1))
            state = elements.state_dict()
    assert_same_elements(given_so_far, wanted)


@given(pipelines())
def test_a_known_cardinality_is_the_true_one(pipeline: Pipeline):
    count = len(expected(pipeline.dataset))
    assume(count or "repeat()" not in pipeline.text)  # as in tf.data: of unknown many, for ever, counts as infinite
    assert pipeline.dataset.cardinality() in (count, ps.UNKNOWN_CARDINALITY)


@given(pipelines())
def test_the_element_spec_admits_every_element(pipeline: Pipeline):
    spec = pipeline.dataset._plan.spec
    if spec is None:
        return
    specs, structure = flatten(spec)
    for element in expected(pipeline.dataset):
        assert flatten(element)[1].same_as(structure)
        for leaf, leaf_spec in zip(structure.flatten(element), specs, strict=True):
            assert leaf_spec.admits(leaf), f"{leaf_spec} does not admit {spec_of(leaf)}"


ORDER_MATTERS = ("take", "skip", "shard", "batch", "enumerate", "zip", "cache")


@given(pipelines(most_steps=4, deterministic=False))
def test_in_free_order_every_element_comes_exactly_once(pipeline: Pipeline):
    assume(not any(step in pipeline.text for step in ORDER_MATTERS))  # what comes depends on the order below them
    wanted = Counter(map(token, expected(pipeline.dataset)))
    assert Counter(map(token, found(pipeline.dataset))) == wanted


@settings(max_examples=max(30, settings.default.max_examples // 4))
@given(
    pipelines(most_steps=4, deterministic=False), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=4)
)
def test_in_free_order_every_element_comes_exactly_once_over_resumes(pipeline: Pipeline, cuts: list[tuple[int, int]]):
    assume(not any(step in pipeline.text for step in ORDER_MATTERS))
    wanted = Counter(map(token, expected(pipeline.dataset)))
    come: list[object] = []
    elements = pipeline.dataset.iterator()
    for count, lost in cuts:
        with elements:
            come += islice(elements, count)
            state = elements.state_dict()
            list(islice(elements, lost))
        elements = pipeline.dataset.iterator()
        elements.load_state_dict(json.loads(json.dumps(state)))
    with elements:
        come += elements
    assert Counter(map(token, come)) == wanted

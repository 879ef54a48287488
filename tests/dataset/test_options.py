"""Options: tf.data's names, frozen in use, joined where data sets are joined; unknown names are errors that help."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError, UnknownNameError
from penstock.options import AutotuneOptions, ThreadingOptions, environment
from penstock.rewrite.phases import MapVectorizationOptions, OptimizationOptions
from penstock.rewrite.rule import Switch
from penstock.settings import WITHOUT_EFFECT


def test_defaults_are_quiet_and_what_is_set_is_shown():
    assert repr(ps.Options()) == "Options()"
    options = ps.Options(seed=3, deterministic=True)
    options.experimental_optimization.map_fusion = False
    wanted = "Options(deterministic=True, seed=3, experimental_optimization=OptimizationOptions(map_fusion=False))"
    assert repr(options) == wanted


def test_every_setting_has_a_default_and_says_what_it_does():
    for group in (
        ps.Options(),
        AutotuneOptions(),
        ThreadingOptions(),
        OptimizationOptions(),
        MapVectorizationOptions(),
    ):
        for name, setting in type(group)._settings.items():
            assert getattr(group, name) == setting.default
            assert getattr(type(group), name).__doc__.endswith(".")
        assert type(group).__doc__


# -- spellings


def test_attributes_dicts_and_groups_say_the_same():
    by_attribute = ps.Options()
    by_attribute.autotune.cpu_budget = 2
    by_attribute.threading.private_threadpool_size = 4
    by_dict = ps.Options(autotune={"cpu_budget": 2}, threading={"private_threadpool_size": 4})
    by_group = ps.Options(autotune=AutotuneOptions(cpu_budget=2), threading=ThreadingOptions(private_threadpool_size=4))
    assert by_attribute == by_dict == by_group
    assert hash(by_attribute) == hash(by_dict)
    assert by_dict != ps.Options(autotune={"cpu_budget": 2})


def test_vectorising_has_a_short_form():
    options = ps.Options(experimental_optimization={"map_vectorization": False})
    assert not options.experimental_optimization.map_vectorization
    options.experimental_optimization.map_vectorization.enabled = True
    assert options.experimental_optimization.map_vectorization
    options.experimental_optimization.map_vectorization = None
    assert options.experimental_optimization == OptimizationOptions()


def test_old_names_reach_the_same_settings():
    options = ps.Options(experimental_deterministic=False)
    options.experimental_threading.private_threadpool_size = 2
    assert options == ps.Options(deterministic=False, threading={"private_threadpool_size": 2})
    assert options.experimental_deterministic is False


def test_none_leaves_a_setting_to_others():
    options = ps.Options(seed=None, deterministic=False)
    options.deterministic = None
    assert options == ps.Options()
    assert options.deterministic is True


def test_options_survive_copying_and_pickling():
    options = ps.Options(seed=3, autotune={"cpu_budget": 2})
    options.experimental_optimization.apply_default_optimizations = False
    for twin in (copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        assert twin == options
        assert not twin.experimental_optimization.map_vectorization.enabled


# -- in use


def test_options_in_use_do_not_change():
    given = ps.Options(seed=3)
    ds = ps.Dataset.range(3).with_options(given)
    for options in (given, ds.options()):
        with pytest.raises(FailedPreconditionError, match="in use"):
            options.seed = 4
        with pytest.raises(FailedPreconditionError, match="in use"):
            options.experimental_optimization.map_fusion = False
        with pytest.raises(FailedPreconditionError, match="in use"):
            options.autotune = {"cpu_budget": 2}


def test_the_later_call_wins_where_both_set_one():
    ds = ps.Dataset.range(3).with_options(ps.Options(seed=1, deterministic=False)).with_options(ps.Options(seed=2))
    assert ds.options() == ps.Options(seed=2, deterministic=False)
    assert ds.map(abs).options() == ds.options()
    assert ds.with_options(ps.Options(deterministic=True)).options().deterministic is True
    assert ds.with_options(ps.Options(seed=0)).options().seed == 0


def test_groups_are_joined_setting_by_setting():
    one = ps.Dataset.range(3).with_options(ps.Options(autotune={"cpu_budget": 1, "ram_budget": 10}))
    ds = one.with_options(ps.Options(autotune={"cpu_budget": 2}))
    assert ds.options().autotune == AutotuneOptions(cpu_budget=2, ram_budget=10)


def test_zip_and_concatenate_join_the_options_of_their_inputs():
    one = ps.Dataset.range(3).with_options(ps.Options(seed=1))
    other = ps.Dataset.range(3).with_options(ps.Options(deterministic=False))
    assert ps.Dataset.zip(one, other).options() == ps.Options(seed=1, deterministic=False)
    assert one.concatenate(other).options() == ps.Options(seed=1, deterministic=False)


def test_groups_of_two_options_are_apart():
    one, two = ps.Options(), ps.Options()
    one.experimental_optimization.map_fusion = False
    assert two.experimental_optimization.map_fusion
    assert one != two


# -- which rewrites run

SWITCHES = [name for name, one in OptimizationOptions._settings.items() if isinstance(one, Switch)]


def test_every_rewrite_is_on_unless_only_chosen_ones_run():
    options = OptimizationOptions()
    assert all(getattr(options, name) for name in SWITCHES)
    assert options.map_vectorization.enabled
    options.apply_default_optimizations = False
    assert not any(getattr(options, name) for name in SWITCHES)
    assert not options.map_vectorization.enabled
    options.map_fusion = options.map_vectorization = True
    assert [name for name in SWITCHES if getattr(options, name)] == ["map_fusion"]
    assert options.map_vectorization.enabled


def test_a_data_set_s_name_is_in_what_it_prints():
    ds = ps.Dataset.range(3).with_options(ps.Options(dataset_name="train"))
    assert repr(ds).startswith("<Dataset train: range(0, 3, 1):")
    assert ds.explain().startswith("plan of train (3 elements)")


# -- errors


@pytest.mark.parametrize("name", sorted(WITHOUT_EFFECT))
def test_settings_without_effect_are_refused_with_the_reason(name):
    *groups, last = name.split(".")
    group = ps.Options()
    for below in groups:
        group = getattr(group, below)
    with pytest.raises(UnknownNameError, match=f"tf.data's {name} does nothing here, because .*\n *Leave it out"):
        setattr(group, last, True)


def test_reading_what_is_not_there_is_an_attribute_error():
    assert not hasattr(ps.Options(), "determinstic")
    assert getattr(ps.Options().autotune, "budget", None) is None
    with pytest.raises(AttributeError, match="nothing is reported"):
        ps.Options().framework_type  # noqa: B018


ARGUMENTS = {
    "other_group": lambda: ps.Options(cpu_budget=2),
    "other_group_read": lambda: ps.Options().autotune.private_threadpool_size,
    "old_place": lambda: setattr(ps.Options().experimental_optimization, "autotune_cpu_budget", 2),
    "near_other_group": lambda: ps.Options(private_threadpool=2),
    "nothing_near": lambda: ps.Options(xyz=2),
    "in_dict": lambda: ps.Options(autotune={"cpu_budged": 2}),
    "without_effect": lambda: ps.Options(experimental_slack=True),
    "without_effect_group": lambda: ps.Options().experimental_distribute.num_devices,
    "without_effect_rule": lambda: ps.Options(experimental_optimization={"parallel_batch": True}),
    "removed": lambda: ps.Options(experimental_optimization={"approximate_image": True}),
    "group_number": lambda: ps.Options(autotune=3),
    "group_of_other_kind": lambda: ps.Options(autotune=ThreadingOptions()),
    "vectorization_number": lambda: ps.Options(experimental_optimization={"map_vectorization": 1}),
    "cpu_budget_0": lambda: AutotuneOptions(cpu_budget=0),
    "cpu_budget_text": lambda: AutotuneOptions(cpu_budget="all"),
    "ram_budget_float": lambda: AutotuneOptions(ram_budget=1e9),
    "private_threadpool_size_minus_1": lambda: ThreadingOptions(private_threadpool_size=-1),
    "dataset_name_number": lambda: ps.Options(dataset_name=3),
    "element_timeout_0": lambda: ps.Options(element_timeout=0),
    "element_timeout_minus_1": lambda: ps.Options(element_timeout=-1),
    "element_timeout_text": lambda: ps.Options(element_timeout="30s"),
    "element_timeout_infinite": lambda: ps.Options(element_timeout=float("inf")),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_options_are_refused_where_they_are_given(name):
    with pytest.raises((InvalidArgumentError, InvalidTypeError)) as caught:
        ARGUMENTS[name]()
    assert_golden(f"argument_options_{name}", f"{type(caught.value).__name__}: {caught.value}")


@pytest.mark.parametrize("seconds", [30, 0.5, np.float32(0.5), np.int64(3), Fraction(1, 4), 1e-9])
def test_seconds_are_any_real_number_above_0(seconds):
    found = ps.Options(element_timeout=seconds).element_timeout
    assert type(found) is float
    assert found == seconds
    assert ps.Options().element_timeout is None


@pytest.mark.parametrize("seconds", [float("nan"), 10**400, -(10**400), -0.0])
def test_seconds_that_never_pass_are_refused(seconds):
    with pytest.raises(InvalidArgumentError, match="element_timeout"):
        ps.Options(element_timeout=seconds)


@pytest.mark.parametrize("seconds", [True, np.bool_(True), "3", b"3", [3.0], np.ones(1), 1j])
def test_seconds_are_a_number(seconds):
    with pytest.raises(InvalidTypeError, match="element_timeout"):
        ps.Options(element_timeout=seconds)


@pytest.mark.parametrize(("name", "value"), [("seed", "1"), ("seed", True), ("seed", 0.5), ("deterministic", 1)])
def test_values_of_another_type_are_refused(name, value):
    with pytest.raises(InvalidTypeError, match=name):
        ps.Options(**{name: value})


def test_the_environment_is_read_under_our_name(monkeypatch):
    monkeypatch.setenv("PENSTOCK_SOMETHING", "x")
    assert environment("SOMETHING") == "x"
    monkeypatch.setenv("PENSTOCK_SOMETHING", "")
    assert environment("SOMETHING") is None
    assert environment("NOTHING_OF_THE_KIND") is None

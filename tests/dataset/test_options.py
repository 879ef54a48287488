"""Options: known names only, frozen in use, the later call wins."""

import pytest

import penstock as ps
from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError
from penstock.options import OptimizationOptions, environment


def test_defaults_are_quiet_and_changes_are_shown():
    assert repr(ps.Options()) == "Options()"
    options = ps.Options(seed=3)
    options.experimental_optimization.map_fusion = False
    assert repr(options) == "Options(seed=3, experimental_optimization=OptimizationOptions(map_fusion=False))"


@pytest.mark.parametrize(
    ("name", "nearest"), [("determinstic", "'deterministic'"), ("sed", "'seed'"), ("xyz", "Known are: deterministic")]
)
def test_unknown_names_are_errors_that_help(name, nearest):
    with pytest.raises(InvalidArgumentError) as caught:
        setattr(ps.Options(), name, 1)
    assert nearest in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("seed", "1"), ("seed", True), ("seed", 0.5), ("deterministic", 1)])
def test_values_of_another_type_are_refused(name, value):
    with pytest.raises(InvalidTypeError, match=name):
        ps.Options(**{name: value})


def test_options_in_use_do_not_change():
    options = ps.Options(seed=3)
    ds = ps.Dataset.range(3).with_options(options)
    with pytest.raises(FailedPreconditionError, match="in use"):
        ds.options().seed = 4
    with pytest.raises(FailedPreconditionError, match="in use"):
        ds.options().experimental_optimization.map_fusion = False


def test_the_later_call_wins_where_both_set_one():
    ds = ps.Dataset.range(3).with_options(ps.Options(seed=1, deterministic=False)).with_options(ps.Options(seed=2))
    assert ds.options() == ps.Options(seed=2, deterministic=False)
    assert ds.map(abs).options() == ds.options()


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
    assert ps.Options() == ps.Options()
    assert hash(ps.Options(seed=1)) == hash(ps.Options(seed=1))


def test_every_rule_s_switch_is_on_by_default():
    assert all(getattr(OptimizationOptions(), name) is True for name in OptimizationOptions._defaults)


def test_the_environment_is_read_under_our_name(monkeypatch):
    monkeypatch.setenv("PENSTOCK_SOMETHING", "x")
    assert environment("SOMETHING") == "x"
    monkeypatch.setenv("PENSTOCK_SOMETHING", "")
    assert environment("SOMETHING") is None
    assert environment("NOTHING_OF_THE_KIND") is None

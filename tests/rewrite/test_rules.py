"""All rules: each has a switch, comes to rest, is recorded. Equal results: dataset/test_generated.py."""

import dataclasses

import pytest
from tests.golden.golden import assert_in_page
from tests.rewrite.plans import BASE, MIXED, alone, also_impure, also_pure, impure, pure, rewritten, shape

import penstock as ps
from penstock.plan import fused, ops
from penstock.plan.fused import ShuffleAndRepeat
from penstock.plan.inputs import Scan
from penstock.plan.node import Node, UnaryNode
from penstock.rewrite import driver
from penstock.rewrite.driver import rewrite, verify
from penstock.rewrite.phases import PHASES, RULES, OptimizationOptions
from penstock.rewrite.rule import Switch, Switches, rule


def test_every_step_keeps_the_line_it_was_made_on():
    dataset = BASE.map(impure, 4).map(also_impure, 4).batch(2)
    plan = rewritten(dataset)
    assert plan.where == dataset._plan.where
    assert {step.where for step in plan.steps} == {dataset._plan.input.where, dataset._plan.input.input.where}


def test_each_rewrite_is_recorded_with_its_rule():
    record = rewrite(BASE.map(pure).skip(0).map(also_pure)._plan, ps.Options())[1]
    assert [(step.rule, step.before) for step in record] == [
        ("drop_no_ops", "skip(0)"),
        ("fuse_maps", "map(also_pure)"),
    ]


def test_with_no_rule_on_nothing_is_rewritten():
    plan = MIXED.shuffle(3).repeat(2).take(-1)._plan
    assert rewrite(plan, alone())[0] is plan


def test_a_plan_that_needs_nothing_comes_back_itself():
    plan = BASE.batch(3)._plan
    assert rewrite(plan, ps.Options())[0] is plan


def test_rules_reach_every_input():
    plan = rewritten(ps.Dataset.zip(BASE.skip(0), BASE.concatenate(BASE.take(-1))), "noop_elimination")
    assert shape(plan) == ["Zip", "Scan", "Concatenate", "Scan", "Scan"]


def test_every_rule_has_a_switch_and_a_sentence():
    assert {one for phase in PHASES for one in phase.rules} == set(RULES.values())
    for one in RULES.values():
        assert isinstance(getattr(OptimizationOptions, one.option), Switch)
        assert one.sentence.endswith(".")


def test_the_page_of_options_says_what_each_switch_does():
    switches = [name for name, one in OptimizationOptions._settings.items() if isinstance(one, Switch)]
    rows = [f"| `{name}` | {getattr(OptimizationOptions, name).__doc__} |" for name in switches]
    assert_in_page("docs/how-to/options.md", "switches", "\n".join(["| switch | what it does |", "|---|---|", *rows]))


def test_a_rule_may_run_only_where_it_is_asked_for():
    @rule(ops.Skip, "Skips one more.", default=False)
    def skip_more(skip: ops.Skip) -> Node | None:
        """Skips one more."""
        return None

    class More(Switches):
        more = Switch(skip_more)

    class Chosen(OptimizationOptions, More):
        pass

    assert not Chosen().more
    assert Chosen(more=True).more
    assert Chosen(apply_default_optimizations=False, more=True).more
    assert Chosen.more.__doc__ == "Skips one more."


def test_rules_that_chase_each_other_are_stopped(monkeypatch):
    @rule(ops.Take)
    def grow(take: ops.Take) -> Node:
        """Grows."""
        return dataclasses.replace(take, count=take.count + 1)

    class Endless(Switches):
        noop_elimination = Switch(grow)

    monkeypatch.setattr(driver, "PHASES", (Endless._phase,))
    with pytest.raises(AssertionError, match=r"Endless.*do not come to rest"):
        rewrite(BASE.take(3)._plan, ps.Options())


def test_a_plan_no_rule_may_make_is_caught():
    lone = fused.FusedMap(input=BASE._plan, steps=(BASE.map(pure)._plan,))
    with pytest.raises(AssertionError, match="one map"):
        verify(lone)
    assert issubclass(fused.FusedMap, UnaryNode)
    once = BASE.shuffle(2).repeat(1)._plan
    with pytest.raises(AssertionError, match="no two"):
        verify(ShuffleAndRepeat(input=BASE._plan, shuffle=once.input, repeat=once))
    verify(Scan(source=BASE._plan.source))

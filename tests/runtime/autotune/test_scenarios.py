"""The tuner soon reaches the rate of the best fixed setting, and then leaves it alone, on simulated pipelines."""

import pytest
from tests.runtime.autotune.scenarios import SCENARIOS, best_fixed, simulation, tuned

SEEDS = (0, 1, 2)


@pytest.mark.parametrize("seed", SEEDS[:2])
@pytest.mark.parametrize("name", SCENARIOS)
def test_it_is_as_fast_as_the_best_fixed_setting(name, seed):
    scenario = SCENARIOS[name]
    reached = tuned(name, seed).throughput(scenario.measured, scenario.seconds)
    assert reached >= scenario.share * best_fixed(name, seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_it_comes_to_rest(name, seed):
    outcome = tuned(name, seed)
    assert outcome.changes_after(SCENARIOS[name].calm) <= 2
    assert outcome.settled_at() <= SCENARIOS[name].settled


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_limits_and_the_byte_budget_hold_at_every_moment(name, seed):
    sim = simulation(name, seed)
    for _, decision in tuned(name, seed).decisions:
        assert sum(knobs.window for knobs in decision.knobs.values()) <= sim.means.ram
        for segment, knobs in decision.knobs.items():
            limits = sim.limits[segment]
            assert limits.least <= knobs.parallelism <= limits.most
            assert knobs.executor in limits.executors


@pytest.mark.parametrize(("name", "crowded"), [("among other programs", True), ("remembered, right", False)])
def test_it_says_where_other_programs_had_a_part(name, crowded):
    settled = [decision for _, decision in tuned(name, 0).decisions if decision.settled]
    assert settled[-1].crowded == crowded

"""analyse: runs a data set for some seconds and computes the cost of each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import said
from penstock.functions.shipping import why_not_shippable
from penstock.functions.uses import keeps_state, takes_lock
from penstock.options import Options
from penstock.plan import ops
from penstock.plan.inputs import Scan, Zip
from penstock.plan.node import Node
from penstock.plan.ops import Filter, Map, Shuffle
from penstock.profiler.analysis.alone import Alone, alone, has_lock
from penstock.profiler.analysis.changes import check_number
from penstock.profiler.analysis.figures import Analysis, Step
from penstock.profiler.analysis.lanes import Lanes
from penstock.profiler.analysis.meter import NOTHING, Cost, Costs, Meter, MeterKey
from penstock.profiler.analysis.places import Place, alike, kind_of, places, steps_of
from penstock.profiler.analysis.together import Together, together
from penstock.profiler.lint.natures import randomness
from penstock.rewrite.driver import optimise
from penstock.runtime.machine.granted import granted_cpus, granted_memory


def traits(step: Node) -> tuple[bool, str | None, bool]:
    """Return (differs between epochs, reason against worker processes, calls share outside state) of a step."""
    if isinstance(step, Shuffle):
        return step.reshuffle_each_iteration, None, False
    if not isinstance(step, (Map, Filter)):
        return "shuffle" in step.name or step.name in ("sample_from_datasets", "random"), None, False
    function = step.function if isinstance(step, Map) else step.predicate
    return randomness(function) is not None, why_not_shippable(function), keeps_state(function) or takes_lock(function)


_ONE_TO_ONE = (ops.Map, ops.Shuffle, ops.Repeat, ops.Prefetch, ops.Enumerate, ops.Take, Zip)


def with_ratios(found: list[Place], steps: list[Step]) -> list[Step]:
    """Return the steps with their ratios: from the definition of a step if possible, otherwise from counts."""
    by_name = {step.name: step for step in steps}
    for place in found:
        if "shuffle" in by_name[place.name].kind and place.inputs:
            by_name[place.name] = _per_input(by_name[place.name], by_name[place.inputs[0]])
    ratios = dict.fromkeys(by_name, 0.0)
    ratios[found[-1].name] = 1.0
    root = by_name[found[-1].name].elements
    read_by = Counter(below for place in found for below in place.inputs)
    for place in reversed(found):
        step = by_name[place.name]
        if read_by[place.name] > 1 and root:  # several readers: the elements for each cannot be distinguished
            ratios[place.name] = step.elements / root
        wanted = ratios[place.name]
        for below in place.inputs:
            ratios[below] += wanted * _need(place.step, step, by_name[below])
        above = None
        for name in reversed([name for name in by_name if name.startswith(f"{place.name}/")]):
            if above is not None and above.elements:
                wanted *= by_name[name].elements / above.elements
            ratios[name], above = wanted, by_name[name]
    return [replace(step, ratio=ratios[step.name]) for step in by_name.values()]


def _per_input(step: Step, below: Step) -> Step:
    """Divide the work of a shuffle by its input elements, because while it fills its buffer it yields few elements."""
    share = min(step.elements / below.elements, 1.0) if below.elements else 1.0
    costs = {name: share * getattr(step, name) for name in ("cpu", "waiting", "held", "wall")}
    return replace(step, **costs)


def _need(node: Node, step: Step, below: Step) -> float:
    """Return the number of input elements per element of a step; 0 while a cache serves."""
    if isinstance(node, _ONE_TO_ONE):
        return 1.0
    if isinstance(node, ops.Batch):
        return float(node.batch_size)
    return below.elements / step.elements if step.elements else 1.0


_NOISE = 0.15  # share of a call's time that may be lost without any waiting
_OPENERS = (ops.Interleave, ops.FlatMap)  # steps whose inner data sets are shown


def assembled(plan: Node, options: Options, alone: Alone, together: Together, consumer_seconds: float) -> Analysis:
    """Return the figures of an analysis."""
    begin, end = together.begin, together.end
    elapsed, taken, loop = together.elapsed, end.taken - begin.taken, max(end.loop - begin.loop, 0.0)
    found = places(plan)
    lanes = Lanes(found, plan, together)
    steps = _Steps(alone, together, lanes)
    shown = [step for place in found for step in (*steps.inner(place), steps.of(place))]
    waited = (elapsed - taken * consumer_seconds - loop) / elapsed
    epoch = plan.cardinality if together.epoch is None else together.epoch
    return Analysis(
        tuple(with_ratios(found, shown)),
        lanes.all(elapsed),
        float(options.autotune.cpu_budget or granted_cpus()),
        has_lock(),
        elapsed,
        taken,
        taken / elapsed,
        cpu_used=(end.cpu - begin.cpu) / elapsed,
        consumer_seconds=consumer_seconds,
        consumer_waited=min(max(waited, 0.0), 1.0),
        handing=loop / taken if taken else 0.0,
        slowed=alone.slowed,
        failures=end.failures,
        first_failure=None if together.first_failure is None else _one_line(together.first_failure),
        passes=together.passes,
        epoch_elements=epoch if epoch >= 0 else None,
        memory=granted_memory(),
        copy_speed=alone.copy_speed,
    )


def _one_line(error: Exception) -> str:
    text = said(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@dataclass(frozen=True, slots=True)
class _StepCosts:
    """Costs of one step in one run: calls of its function or stage, and the work of its node around them."""

    own: Cost = NOTHING
    around: Cost = NOTHING

    @property
    def whole(self) -> Cost:
        return self.own + self.around


def _seen(costs: Costs, meter: Meter, node: Node, index: int) -> _StepCosts:
    """Return the costs of step `index` of a node. Its last step includes the work around all of them."""
    parts = _parts(costs, meter, node)
    last = index == len(steps_of(node)) - 1
    own = parts.get(("step", index), NOTHING)
    around = sum((cost for (part, _), cost in parts.items() if part != "step"), NOTHING) if last else NOTHING
    if not own.calls:  # no transform, or one that ran in a worker process
        given = parts.get(("take", 0), parts.get(("next", 0), NOTHING))
        own = given._replace(inputs=0.0, wall=0.0, cpu=0.0, nbytes=given.nbytes if last else 0.0)
    return _StepCosts(own, around)


def _parts(costs: Costs, meter: Meter, node: Node) -> dict[tuple[str, int], Cost]:
    """Return the costs of a node by part, including nodes that it opened and that are not shown."""
    hidden: set[int] = set()
    if not isinstance(node, _OPENERS):
        for number, opener in list(meter.opened_by.items()):
            if opener == id(node) or opener in hidden:
                hidden.add(number)
    found: dict[tuple[str, int], Cost] = {}
    for key, cost in costs.items():
        part = (key.part, key.step) if key.node == id(node) else ("hidden", 0) if key.node in hidden else None
        if part is not None:
            found[part] = found.get(part, NOTHING) + cost
    return found


class _Steps:
    """Computes the figures of steps."""

    def __init__(self, alone: Alone, together: Together, lanes: Lanes) -> None:
        self._alone = alone
        self._together = together
        self._lanes = lanes

    def of(self, place: Place) -> Step:
        node = place.node
        index = [id(step) for step in steps_of(node)].index(id(place.step))
        lane, parallel = self._lanes.of(place)
        found = Step(place.name, place.label, kind_of(place.step), lane, parallel=parallel, inputs=place.inputs)
        return self._with_costs(
            found,
            place.step,
            (node, node, index),
            segment=id(node) in self._together.meter.segments,
            away=parallel and self._lanes.executor(place) == "process",
        )

    def inner(self, place: Place) -> Iterator[Step]:
        """Yield the steps of the data sets that a step opened, with sums over all of them."""
        if not isinstance(place.step, _OPENERS):
            return
        meter = self._together.meter
        lane, parallel = self._lanes.of_inputs(place)
        numbers: Counter[str] = Counter()
        inputs: tuple[str, ...] = ()
        for number, opener in list(meter.opened_by.items()):
            if opener != id(place.node):
                continue
            node = meter.nodes[number]
            for index, step in enumerate(steps_of(node)):
                kind = kind_of(step)
                numbers[kind] += 1
                name = f"{place.name}/{kind}" + (f"#{numbers[kind]}" if numbers[kind] > 1 else "")
                label = kind if isinstance(step, Scan) else step.label  # their labels differ in the file that they read
                found = Step(name, label, kind, lane, parallel=parallel, inputs=inputs)
                yield self._with_costs(found, step, (self._twin(node, place.node), node, index))
                inputs = (name,)

    def _twin(self, node: Node, opener: Node) -> Node | None:
        """Return the node of the single-threaded run for the same inner data sets, or None."""
        meter = self._alone.meter
        for number, opened_by in list(meter.opened_by.items()):
            if opened_by == id(opener) and alike(meter.nodes[number]) == alike(node):
                return meter.nodes[number]
        return None

    def _with_costs(
        self,
        found: Step,
        step: Node,
        where: tuple[Node | None, Node, int],
        *,
        segment: bool = False,
        away: bool = False,
    ) -> Step:
        """Return the step with its costs.

        Work comes from the parallel run, waiting and the GIL from the single thread.
        """
        twin, node, index = where
        alone, together = self._alone, self._together
        one = _StepCosts() if twin is None else _seen(alone.costs, alone.meter, twin, index)
        many = _seen(together.costs, together.meter, node, index)
        counted = self._counted(node, index, away=away)
        ones, manys = one.own.elements, counted if away else many.own.elements
        cpu_one, cpu_many = _each(one.whole.cpu, ones), _each(many.whole.cpu, many.own.elements)
        wall_one = _each(one.whole.wall, ones)
        cpu = cpu_one if away or not manys else cpu_many
        lost = wall_one - alone.slowed * cpu_one
        share = self._held(twin, index)
        # a waiting thread does not hold the GIL
        waiting = min(lost, (1 - share) * wall_one) if lost > _NOISE * wall_one else 0.0
        if not ones and not segment:
            waiting = _each(max(many.whole.wall - many.whole.cpu, 0.0), manys)
        random, process, changes_state = traits(step)
        best = many.own if many.own.elements else one.own
        return replace(
            found,
            where=step.where,
            cpu=cpu,
            waiting=waiting,
            held=min(share * wall_one, cpu),
            shipping=_each(many.around.cpu, manys) if away else 0.0,
            nbytes=_each(best.nbytes, best.elements),
            wall=_each((many.around if away else many.own).wall or many.whole.wall, manys) if manys else wall_one,
            elements=counted,
            per_second=counted / together.elapsed,
            failures=many.own.failures,
            per_call=_each(best.elements, best.calls) or 1.0,
            cycle=getattr(step, "cycle_length", 0),
            random=random,
            process=process,
            changes_state=changes_state,
        )

    def _counted(self, node: Node, index: int, *, away: bool) -> float:
        """Return the number of elements of a step between the marks."""
        if away and index < len(steps_of(node)) - 1:
            return self._together.flow(id(node), "inputs")  # worker processes do not report the elements of each step
        key = MeterKey(id(node), "step", index)
        if away or key not in self._together.end.costs:
            key = MeterKey(id(node), "take")
        if key not in self._together.end.costs:
            key = MeterKey(id(node), "next")
        return self._together.elements(key)

    def _held(self, node: Node | None, index: int) -> float:
        """Return the share of a step's time under the GIL."""
        if node is None:
            return self._alone.probe.rest()
        last = index == len(steps_of(node)) - 1
        keys = [
            key
            for key in self._alone.probe.asked
            if key.node == id(node) and ((key.part == "step" and key.step == index) or (last and key.part != "step"))
        ]
        share = self._alone.probe.share(keys)
        return self._alone.probe.rest() if share is None else share


def _each(amount: float, count: float) -> float:
    return amount / count if count else 0.0


_ALONE = 0.25  # share of the seconds, before the parallel run


def analyse(
    plan: Node,
    options: Options,
    seconds: float,
    consumer_seconds: float,
    dataset: Callable[[Node], Any],
    most_passes: int | None = None,
) -> Analysis:
    """Run a data set twice: in one thread, which measures costs, and as `iter(ds)` does, which measures the rate.

    In both cases, a data set that ends is run again until the time is over, at most `most_passes` times.
    """
    check_number("seconds", seconds, "seconds is the duration of the measurement.")
    check_number(
        "consumer_seconds", consumer_seconds, "consumer_seconds is the time of the loop per element (batch).", zero=True
    )
    found = optimise(plan, options)
    by_itself = alone(found, options, seconds * _ALONE, dataset, most_passes)
    beside = together(found, options, seconds, consumer_seconds, dataset, most_passes)
    return assembled(found, options, by_itself, beside, consumer_seconds)

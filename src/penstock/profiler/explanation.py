"""The result of `Dataset.explain`: the plan, the rewrites, the stages, and advice.

It is a text for people, and plain values for programs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from penstock.block.spec import LeafSpec, any_extent
from penstock.block.structure import Structure, flatten
from penstock.functions.libraries import recogniser
from penstock.functions.planning import why_plans_otherwise
from penstock.functions.shipping import why_not_shippable
from penstock.native.library import plain_versions
from penstock.options import Options
from penstock.physical.inner_plans import inside
from penstock.physical.joined import graph_of
from penstock.physical.parted import differs
from penstock.physical.tokenising import described
from penstock.physical.vectorise import optimised, what_came, why_not_equal
from penstock.plan.counted import count_text
from penstock.plan.distribution import Distribute, Remote, parted
from penstock.plan.fingerprint import fingerprint
from penstock.plan.fused import FusedMap, MapAndBatch, ShuffleAndRepeat, has_workers
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.node import AUTOTUNE, Node, below, short_location, tree
from penstock.plan.node_base import question
from penstock.plan.ops import Batch, Chosen, Filter, FlatMap, Interleave, Map, Prefetch, Shuffle
from penstock.plan.seeding import uses_generators, why_here
from penstock.plan.windows import window_below
from penstock.profiler.analysis.as_json import analysis_values
from penstock.profiler.analysis.figures import Analysis
from penstock.rewrite.driver import outcomes, rewrite
from penstock.rewrite.phases import RULES
from penstock.runtime.autotune.remembered import recall, tuning_digest
from penstock.runtime.machine.granted import at_most, autotuned_workers, granted_cpus
from penstock.trace.parts import REMEDY, broken_by, in_parts
from penstock.trace.traced import traced, traced_spec


class ExplanationText(str):
    """A string of several lines. Shells and notebooks show it as lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@question()
def explanation(plan: Node, options: Options, running: Node, placed: Sequence[str] = ()) -> str:
    """Return paragraphs: the plan as written, each rewrite with a sentence, the way every step runs, and advice.

    `running` is the plan with the caches of `Options.autocache`; `placed` are the lines about these caches.
    """
    from penstock.profiler.lint.driver import lint

    rewritten, record = rewrite(running, options)
    count = count_text(plan, options.seed, options.deterministic)
    called = "plan" if options.dataset_name is None else f"plan of {options.dataset_name}"
    parts = [f"{called} ({count} element{'' if count == '1' else 's'})", _indented(tree(plan))]
    if record:
        rows = []
        told = outcomes(record)
        for name in dict.fromkeys(step.rule for step in told):
            places = ", ".join(f"{s.before} → {s.after}" for s in told if s.rule == name)
            rows.append(f"{name}: {places}\n  {RULES[name].sentence}")
        parts += ["rewritten", _indented("\n".join(rows))]
    parts += ["runs as", _indented("\n".join(stages(rewritten, options)))]
    learnt = _learnt(rewritten, options)
    if learnt:
        parts += ["learned from earlier iterations on this machine", _indented("\n".join(learnt))]
    if placed:
        parts += ["autocache", _indented("\n".join(placed))]
    advice = lint(plan, options)
    if advice:
        parts += ["advice", _indented(str(advice))]
    return "\n".join(parts)


def _learnt(plan: Node, options: Options) -> list[str]:
    """Return the settings that an iteration would begin with, and the rates they achieved."""
    known = recall(tuning_digest(fingerprint(plan, options.seed, options.deterministic), options))
    rows = []
    for name, found in sorted(known.items()):
        label = name.partition(":")[2]
        rows.append(f"{label}: {found.reason}")
        rows.append(f"  {found.elements_per_second:,.0f} elements/s, {found.cpu_us:,.3g} µs of CPU time each")
    return rows


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def stages(plan: Node, options: Options) -> list[str]:
    """Return lines about the way each step runs."""
    rows = []
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        rows.append(f"{node.label}: {how(node, options)}")
        rows += [f"  {line}" for line in getattr(getattr(node, "source", None), "report", "").splitlines()]
        if isinstance(node, Distribute):
            rows.extend(_who_makes(node, options))
            continue
        waiting += reversed(node.inputs)
        steps = node.steps if isinstance(node, (FusedMap, MapAndBatch)) else (node,)
        if isinstance(node, (Map, FusedMap, MapAndBatch)):
            rows.extend(_who_calls(node))
        by_rule = options.experimental_optimization.window_in_place
        if type(node) is FlatMap and by_rule and window_below(node) is not None:
            why = why_plans_otherwise(node.function) or "it does more than batch elements"
            rows.append(f"  {node.label} opens every window separately: {why}")
        found = inside(node.function) if isinstance(node, (FlatMap, Interleave)) else None
        if found is not None:
            rows += ["  the first data set that its function made:", *(f"    {row}" for row in found.splitlines())]
        spec = node.inputs[0].spec if node.inputs else None
        for step in steps:
            if isinstance(step, (Map, Filter)):
                rows.append(f"  {step.label} {_verdict(step, spec, options)}")
                spec = _behind(step, spec)
        if len(steps) > 1 and (joined := _joined(node.inputs[0].spec, steps, options)) is not None:
            rows.append(f"  together they run by Block: {joined}")
    return rows


def _joined(spec: Any, steps: Sequence[Node], options: Options) -> str | None:
    """Describe the one graph of neighbouring maps, or return None if each map runs separately."""
    maps = [step for step in steps if isinstance(step, Map) and step.vectorise]
    by_block = options.experimental_optimization.map_vectorization
    if spec is None or len(maps) < len(steps) or not by_block:
        return None
    graph = graph_of([step.function for step in maps], *reversed(flatten(spec)))
    return None if graph is None else optimised(graph, copied=range(len(graph.outputs))).describe()


def _who_makes(node: Distribute, options: Options) -> list[str]:
    """Return lines about the steps that workers of a service run, and the steps of this process."""
    if node.parts is not None:
        share = node.in_turn.parts[0]
        rows = [f"  {node.parts} workers iterate separately, and their elements alternate; the first worker runs"]
        return rows + [f"    {row}" for row in stages(share, options)]
    plan, cut = parted(node)
    if not any(isinstance(each, Remote) for each in plan.walk()):
        return [f"  no step runs on workers: a step before {cut.base.label} writes files"]
    listed = ", ".join(step.label for step in cut.middle)
    rows = [f"  workers, per range of elements: {listed}"] if listed else []
    functions = [step for step in cut.middle if isinstance(step, (Map, Filter))]
    rows += [f"    {step.label} {_verdict(step, step.input.spec, options)}" for step in functions]
    rows.append(f"  every worker, over all elements: {', '.join(below.label for below in cut.base.walk())}")
    if cut.rest:
        rows.append(f"  this process: {', '.join(step.label for step in cut.rest)}; {cut.kept}")
    return rows


def _who_calls(node: Map | FusedMap | MapAndBatch) -> list[str]:
    """Return lines about the threads or processes that call a step's functions; none for the consumer's thread."""
    first = node.steps[0] if isinstance(node, MapAndBatch) else node
    if first.num_parallel_calls is None or node.executor == "inline":
        return []
    if uses_generators(node):
        why = why_here(node)
        return ["  worker processes seed generators for each element" if why is None else f"  no processes: {why}"]
    if node.executor != "auto":
        return [f"  {node.executor}: {'worker processes' if node.executor == 'process' else 'threads'}"]
    for step in (node,) if isinstance(node, Map) else node.steps:
        why = why_not_shippable(step.predicate if isinstance(step, Filter) else step.function)
        if why is not None:
            of = "" if isinstance(node, Map) else f"of {step.label} "
            line = getattr(why, "line", None)
            at = "" if line is None else f" (line {line})"
            return [f'  auto: threads; processes are not considered: {of}{why}{at}; executor="process" asks for them']
    return ["  auto: threads, or worker processes if measurements show that they are faster"]


def _behind(step: Map | Filter, spec: Any) -> Any:
    """Return the spec after a step."""
    if isinstance(step, Filter) or spec is None:
        return spec
    return traced_spec(step.function, spec)


def _seeded_for(node: Node, found: list[str | None]) -> str | None:
    """Return the label of the nearest step, from here to the source, that only the consumer may run, or None."""
    return node.label if why_here(node) else next(filter(None, found), None)


def how(node: Node, options: Options) -> str:
    """Describe how a step runs."""
    parallel = None
    if isinstance(node, (Map, FusedMap, Interleave, Batch, GlobalShuffle)):
        parallel = node.num_parallel_calls
    elif isinstance(node, MapAndBatch):
        parallel = node.steps[0].num_parallel_calls
    here = below(node, "_seeded_for", _seeded_for)
    if here is not None and (parallel is not None or isinstance(node, Prefetch)):
        return f"in the consumer's thread, where generators are seeded for {here}"
    if isinstance(node, Prefetch):
        if not node.buffer_size:
            return "in the thread that reads this step"
        if has_workers(node.input):
            return f"lets the workers of the step before it run ahead, by at least {node.buffer_size} if memory allows"
        return "ahead of the consumer, on a worker"
    shuffle = node.shuffle if isinstance(node, ShuffleAndRepeat) else node
    if isinstance(shuffle, Shuffle) and isinstance(shuffle.buffer_size, Chosen):
        return f"in the thread that reads this step; {shuffle.buffer_size.reason}"
    if isinstance(node, Distribute):
        return f"by workers of {node.service.name}"
    executor = getattr(node, "executor", "auto")
    if parallel is None and executor == "process":
        return "in a worker process, one call at a time"
    if parallel is None or executor == "inline":
        return "in the thread that reads this step"
    if parallel == AUTOTUNE:
        workers = f"; AUTOTUNE starts with {autotuned_workers(options, granted_cpus())} parallel calls"
    else:
        workers = f", up to {at_most(options, parallel)} parallel calls"
    return f"{'inputs read ahead' if isinstance(node, Interleave) else 'on workers'}{workers}"


def _verdict(step: Map | Filter, spec: Any, options: Options) -> str:
    if not (step.vectorise and options.experimental_optimization.map_vectorization):
        return "runs per element: vectorising is switched off"
    function = step.function if isinstance(step, Map) else step.predicate
    called, report = function, ""
    if (found := recogniser()) is not None:
        called, report = found.in_kernels(function)
    way = _way(step, function, spec) if called is function else "runs per element, with kernels for images:"
    return "\n    ".join([way, *report.splitlines()])


def _way(step: Map | Filter, function: Callable[..., Any], spec: Any) -> str:
    leaves: Sequence[Any]
    came = what_came(function)
    if spec is not None:
        leaves, structure = flatten(spec)
    if came is not None and (spec is None or _alike(came, (structure, leaves))):
        structure, leaves = came  # this also finds decisions made for the real elements
    elif spec is None:
        return "runs by Block if it can be traced: decided at the first element"
    found = traced(function, structure, leaves)
    if why := why_not_equal(found):
        return f"runs per element: {why}"
    if found.graph is None:
        if tokens := described(function):
            return f"runs per element: {tokens}"
        beginning = in_parts(function, structure, leaves)
        used = beginning is not None and (isinstance(step, Map) or beginning.gains)
        if beginning is not None and used and differs(beginning):
            return "runs per element: a part of it returned another result for a Block"
        if beginning is not None and used:
            return beginning.described(optimised, may_end=isinstance(step, Map))
        line = getattr(found.reason, "line", None)
        where = "" if line is None else f"line {line}: "
        return f"runs per element: {broken_by(function, structure, leaves) or where + found.reason}. {REMEDY}"
    return f"runs by Block: {optimised(found.graph, copied=range(len(found.graph.outputs))).describe()}"


def _alike(came: tuple[Structure, Sequence[LeafSpec]], known: tuple[Structure, Sequence[LeafSpec]]) -> bool:
    """Return True if elements differ at most in their extents."""
    return came[0] == known[0] and list(map(any_extent, came[1])) == list(map(any_extent, known[1]))


def explanation_json(
    plan: Node, options: Options, running: Node, analysis: Analysis | None, placed: Sequence[str] = ()
) -> str:
    """Return a JSON string. `json.loads` returns a dict with the keys documented in `Dataset.explain`."""
    from penstock.profiler.lint.driver import lint

    rewritten, record = rewrite(running, options)
    values: dict[str, Any] = {
        "dataset": options.dataset_name,
        "cardinality": count_text(plan, options.seed, options.deterministic),
        "plan": _tree(plan),
        "rewritten": [
            {"rule": step.rule, "before": step.before, "after": step.after, "because": RULES[step.rule].sentence}
            for step in outcomes(record)
        ],
        "runs_as": stages(rewritten, options),
        "advice": list(map(asdict, lint(plan, options))),
    }
    if placed:
        values["autocache"] = list(placed)
    if analysis is not None:
        values["plain_versions"] = plain_versions()
        values["analysis"] = analysis_values(analysis)
    return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)


def _tree(node: Node) -> dict[str, Any]:
    return {
        "step": node.label,
        "kind": node.name,
        "where": short_location(node.where) or None,
        "inputs": [_tree(below) for below in node.inputs],
    }

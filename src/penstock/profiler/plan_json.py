"""The facts of `Dataset.explain` as plain values, for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock.compiled import plain_versions
from penstock.options import Options
from penstock.plan.explain import short_location
from penstock.plan.in_files import count_text
from penstock.plan.node import Node
from penstock.profiler.analysis.as_json import analysis_values
from penstock.profiler.analysis.figures import Analysis
from penstock.profiler.explanation import stages
from penstock.rewrite.driver import outcomes, rewrite
from penstock.rewrite.phases import RULES


def explanation_json(
    plan: Node, options: Options, running: Node, analysis: Analysis | None, placed: Sequence[str] = ()
) -> str:
    """A JSON text; `json.loads` gives a dict with the keys that `Dataset.explain` lists."""
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
        "advice": [
            {
                "code": advice.code,
                "concern": advice.concern,
                "step": advice.step,
                "where": advice.where,
                "message": advice.message,
                "mended": advice.mended,
                "why": advice.why,
            }
            for advice in lint(plan, options)
        ],
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

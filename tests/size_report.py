"""Count the code lines of each package of src and check them against `tests/budget.json`, which can only fall.

    python -m tests.size_report           # the table; fails if a package differs from its budget (`make check`)
    python -m tests.size_report --lower   # write smaller packages into the budget; commit it with the change

Blank lines, comments and docstrings are no code lines. A package that grows needs an entry in `rises`, in the same
commit: `{"package": "io", "lines": 40, "reason": "read Zstandard"}`. Code that moves between packages is two entries,
one with negative lines.
"""

import argparse
import ast
import json
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "penstock"
BUDGET = Path(__file__).with_name("budget.json")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text):
    """Return the number of lines of a module that hold code.

    >>> code_lines("'''A module.'''\\n\\nx = 1  # one\\n# two\\ny = (\\n    2\\n)\\n")
    4
    """
    lines = {
        number for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")
    }
    nodes = list(ast.walk(ast.parse(text)))
    for node in nodes:
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno > node.lineno:
            lines.update(range(node.lineno, node.end_lineno + 1))  # a string keeps its blank lines
    for node in nodes:
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def measured(source=SOURCE):
    """Return the code lines of each package. Modules beside the packages count as `(top)`."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        inside = path.relative_to(source)
        package = inside.parts[0] if len(inside.parts) > 1 else "(top)"
        found[package] = found.get(package, 0) + code_lines(path.read_text(encoding="utf-8"))
    return found


def allowed(budget):
    """Return the code lines that each package may have: its lines and all its rises."""
    found = dict(budget["lines"])
    for rise in budget["rises"]:
        found[rise["package"]] = found.get(rise["package"], 0) + rise["lines"]
    return found


def lowered(budget, now):
    """Return the budget with smaller packages at their present size. Larger packages keep their budget."""
    room = {package: lines - now.get(package, 0) for package, lines in allowed(budget).items()}
    lines = {package: budget["lines"].get(package, 0) - max(0, room[package]) for package in sorted(room)}
    return {"lines": lines, "rises": budget["rises"]}


def problems(budget, now):
    """Return one sentence for each package whose size differs from its budget, and for each rise without a reason."""
    room = allowed(budget)
    found = [f"A rise of {rise['package']} has no reason." for rise in budget["rises"] if not rise.get("reason")]
    for package in sorted(now.keys() | room.keys()):
        more = now.get(package, 0) - room.get(package, 0)
        if more > 0:
            found.append(
                f"{package} has {more} code lines more than its budget. Remove code elsewhere in {package}, "
                "or add an entry with the reason to `rises` in tests/budget.json."
            )
        elif more < 0:
            found.append(f"{package} has {-more} code lines less than its budget. Run `make budget` and commit it.")
    return found


def table(budget, now):
    """Return the rows of the report: code lines, budget and difference of each package, then the sums."""
    room = allowed(budget)
    rows = [(package, now.get(package, 0), room.get(package, 0)) for package in sorted(now.keys() | room.keys())]
    rows.append(("all", sum(now.values()), sum(room.values())))
    head = f"{'code lines':14}{'now':>8}{'budget':>8}{'more':>6}"
    return [head, *(f"{name:14}{lines:>8}{most:>8}{lines - most:>+6}" for name, lines, most in rows)]


def main():
    """Print the table. Exit with 1 if a package differs from its budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lower", action="store_true", help="write smaller packages into the budget")
    chosen = parser.parse_args()
    budget, now = json.loads(BUDGET.read_text(encoding="utf-8")), measured()
    if chosen.lower:
        budget = lowered(budget, now)
        BUDGET.write_text(json.dumps(budget, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(budget, now)))
    found = problems(budget, now)
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

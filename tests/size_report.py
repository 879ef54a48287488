"""Lines, modules and public names of each package, beside those of the last release, so that growth is seen.

    python -m tests.size_report            # the table, which `make check` prints
    python -m tests.size_report --record   # when a release is made: today's numbers become those of the last one

A public name is a class, function or constant of a module whose name has no underscore in front.
"""

import argparse
import ast
import json
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "penstock"
LAST = Path(__file__).with_name("size_last_release.json")
KINDS = ("lines", "modules", "names")


def measured(source=SOURCE):
    """Of each package: [lines, modules, public names]. What lies beside the packages counts as `(top)`."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        inside = path.relative_to(source)
        package = inside.parts[0] if len(inside.parts) > 1 else "(top)"
        text = path.read_text(encoding="utf-8")
        for place, number in enumerate((text.count("\n"), 1, len(public_names(text)))):
            found.setdefault(package, [0, 0, 0])[place] += number
    return found


def public_names(text):
    """The names that a module defines at its top level, without those that begin with an underscore."""
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    return {name for name in names if not name.startswith("_")}


def table(now, last):
    """The rows of the report, the sums last."""
    rows = [f"{'':12}" + "".join(f"{kind:>16}" for kind in KINDS)]
    for package in sorted(now.keys() | last.keys()):
        rows.append(_row(package, now.get(package, [0, 0, 0]), last.get(package, [0, 0, 0])))
    sums = [[sum(column) for column in zip(*sizes.values(), strict=True)] for sizes in (now, last)]
    return [*rows, _row("all", *sums)]


def _row(name, now, last):
    return f"{name:12}" + "".join(f"{a:>9}{a - b:>+7}" for a, b in zip(now, last, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    chosen = parser.parse_args()
    now = measured()
    if chosen.record:
        LAST.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(now, json.loads(LAST.read_text(encoding="utf-8")))))


if __name__ == "__main__":
    main()

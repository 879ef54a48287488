"""Count habits that make the tree hard to read. The counts in `tests/ratchets.json` can only fall.

    python -m tests.ratchets           # fails if a count differs from its entry (`make check`)
    python -m tests.ratchets --list    # print each place that counts
    python -m tests.ratchets --lower   # write smaller counts; commit them with the change

The numbers are breaches per package: docstrings and comments that open with a clause, and words that a plainer word
replaces. The lists are names. A name can leave its list, but no name can join it, except `signatures`: functions that
have the parameters of tf.data, tfds or torch. Sources of kernels may have long functions with many parameters. The
length of a file does not include docstrings.
"""

import argparse
import ast
import json
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "penstock"
COUNTS = Path(__file__).with_name("ratchets.json")
MOST_LINES, MOST_PARAMETERS, LONGEST_FILE = 80, 6, 400
CLAUSE = re.compile(r"(What|Whether|How|Where|Which|Why|Who|Of|As|That|Those|So)\b")
WORDS = re.compile(
    r"\b(go(es)? on (behind|from)|anew|once more|whoever|nobody|somebody|who asks|is told|says so|share[sd]? out|"
    r"held (by|to)|dearer|dear|humble|stand-ins?|pictures?|behind|in front of)\b",
    re.IGNORECASE,
)
COMMENT = re.compile(r"(?:\s*|.*?  )# (?!noqa|type:)(.*)")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def prose_of_code(text, nodes):
    """Yield (kind, line, text) for each docstring, string and comment of a module.

    >>> text = "'''Add.'''\\nx = 1  # one\\n"
    >>> list(prose_of_code(text, list(ast.walk(ast.parse(text)))))
    [('docstring', 1, 'Add.'), ('comment', 2, 'one')]
    """
    documented = set()
    for node in nodes:
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node):
            value = node.body[0].value
            documented.add(id(value))
            yield "docstring", value.lineno, " ".join(re.sub(r"(?m)^\s*(>>>|\.\.\.).*$", "", value.value).split())
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield "message", node.lineno, " ".join(node.value.split())
    for number, line in enumerate(text.splitlines(), 1):
        if "#" in line and (comment := COMMENT.match(line)):
            yield "comment", number, comment[1]


def prose_of_page(text):
    """Yield (kind, line, text) for each line of a page outside its code blocks."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        inside ^= line.startswith("```")
        if not inside:
            yield "page", number, line


def breaches(path, prose):
    """Return the places where a docstring or comment opens with a clause, and the places of words to replace."""
    clauses, words = [], []
    for kind, line, sentence in prose:
        place = f"{path.relative_to(ROOT)}:{line}"
        if kind in {"docstring", "comment"} and CLAUSE.match(sentence):
            clauses.append(f"{place}: {sentence[:80]}")
        if kind != "message" or len(sentence.split()) > 5:
            words += [f"{place}: {found[0]}" for found in WORDS.finditer(sentence)]
    return clauses, words


def lines_of_docstring(node):
    """Return the number of lines of the docstring of a node."""
    if not isinstance(node, DOCUMENTED) or not ast.get_docstring(node, clean=False):
        return 0
    return node.body[0].end_lineno - node.body[0].lineno + 1


def package_of(path):
    """Return the name under which the sentences of a file count."""
    if SOURCE not in path.parents:
        return "docs"
    inside = path.relative_to(SOURCE).parts
    return inside[0] if len(inside) > 1 else "(top)"


def module_of(path):
    """Return the dotted name of a module of src."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def long_functions(name, nodes):
    """Yield (kind, function) for functions of too many lines, and of too many parameters that are not keyword-only."""
    if name.endswith("_native") or ".kernels." in name:
        return
    for node in nodes:
        if not isinstance(node, FUNCTION):
            continue
        if node.end_lineno - node.lineno + 1 > MOST_LINES:
            yield "long functions", f"{name}.{node.name}"
        parameters = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
        if len(parameters) - (parameters[:1] in (["self"], ["cls"])) > MOST_PARAMETERS:
            yield "many parameters", f"{name}.{node.name}"


def imported(name, nodes, modules):
    """Return the modules of src that a module imports when it runs, early or late."""
    package = name if modules[name].name == "__init__.py" else name.rpartition(".")[0]
    typed = [node for node in nodes if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    skipped = {id(inner) for node in typed for inner in node.body}
    found = set()
    for node in nodes:
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [base])])
            inner = [f"{base}.{alias.name}" for alias in node.names]
            found.update(module if module in modules else base for module in inner)
    return {module for module in found & modules.keys() if module != name}


def circles(graph):
    """Return the groups of nodes that reach each other, each as a sorted list.

    >>> circles({"a": {"b"}, "b": {"a", "c"}, "c": set()})
    [['a', 'b']]
    """
    reached = {node: reachable(graph, node) for node in graph}
    groups = {tuple(sorted(other for other in reached[node] if node in reached[other])) for node in graph}
    return [list(group) for group in sorted(groups) if len(group) > 1]


def reachable(graph, start):
    """Return the nodes that a walk from `start` meets after at least one step."""
    found, waiting = set(), [start]
    while waiting:
        for node in graph[waiting.pop()] - found:
            found.add(node)
            waiting.append(node)
    return found


def places():
    """Return what counts: for each kind of number the places by package, for each kind of list the names."""
    numbers = {"clauses": {}, "words": {}}
    names = {kind: set() for kind in ("double class names", "long functions", "many parameters", "long files")}
    modules = {module_of(path): path for path in sorted(SOURCE.rglob("*.py"))}
    graph, classes = {}, Counter()
    pages = sorted([*SOURCE.rglob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
    texts = [(path, prose_of_page(path.read_text(encoding="utf-8"))) for path in pages]
    for name, path in modules.items():
        text = path.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text)))
        graph[name] = imported(name, nodes, modules)
        classes.update(node.name for node in nodes if isinstance(node, ast.ClassDef))
        for kind, function in long_functions(name, nodes):
            names[kind].add(function)
        if text.count("\n") - sum(map(lines_of_docstring, nodes)) > LONGEST_FILE:
            names["long files"].add(name)
        texts.append((path, list(prose_of_code(text, nodes))))
    names["double class names"] = {name for name, times in classes.items() if times > 1}
    names["circles"] = {" ".join(group) for group in circles(graph)}
    for path, prose in texts:
        for kind, found in zip(numbers, breaches(path, prose), strict=True):
            numbers[kind].setdefault(package_of(path), []).extend(found)
    return numbers, names


def measured(numbers, names):
    """Return the counts in the form of `tests/ratchets.json`."""
    counts = {kind: {package: len(found) for package, found in by.items() if found} for kind, by in numbers.items()}
    return counts | {kind: sorted(found) for kind, found in names.items()}


def problems(allowed, now):
    """Return one sentence for each count or list that differs from its entry."""
    found = []
    exempt = set(allowed["signatures"])
    for kind, value in now.items():
        if isinstance(value, list):
            entry, listed = set(allowed[kind]), set(value) - exempt
            found += [f"{kind}: {name} is new." for name in sorted(listed - entry)]
            found += [f"{kind}: {name} is gone. Run `make budget`." for name in sorted(entry - listed)]
            continue
        for package in sorted(value.keys() | allowed[kind].keys()):
            have, may = value.get(package, 0), allowed[kind].get(package, 0)
            if have > may:
                found.append(f"{kind}: {package} has {have}, {may} are allowed. See `python -m tests.ratchets --list`.")
            elif have < may:
                found.append(f"{kind}: {package} has {have} of {may}. Run `make budget`.")
    return found


def lowered(allowed, now):
    """Return the entries with each smaller count and each shorter list. No count rises."""
    found = {"signatures": allowed["signatures"]}
    for kind, value in now.items():
        if isinstance(value, list):
            found[kind] = sorted(set(allowed[kind]) & set(value))
        else:
            found[kind] = {p: min(n, allowed[kind][p]) for p, n in sorted(value.items()) if allowed[kind].get(p)}
    return found


def main():
    """Print the counts. Exit with 1 if one differs from its entry."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lower", action="store_true", help="write smaller counts")
    parser.add_argument("--list", action="store_true", help="print each place that counts")
    chosen = parser.parse_args()
    numbers, names = places()
    now, allowed = measured(numbers, names), json.loads(COUNTS.read_text(encoding="utf-8"))
    if chosen.list:
        for kind, by in numbers.items():
            print("\n".join(f"{kind}: {place}" for found in by.values() for place in found))
    if chosen.lower:
        allowed = lowered(allowed, now)
        COUNTS.write_text(json.dumps(allowed, indent=1) + "\n", encoding="utf-8")
    for kind, value in now.items():
        print(f"{kind:20}{len(value) if isinstance(value, list) else sum(value.values()):>6}")
    found = problems(allowed, now)
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

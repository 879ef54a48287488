"""`make mutants`: code is changed in one place at a time, and the tests of its module have to notice.

cosmic-ray says which changes there are. Each is tried in a process of its own, forked from one that has loaded what
tests need and nothing of penstock, and lives in memory only: no file is touched, and child processes that a test starts
run the code as it is. Of the changes of one kind in one place (a `+` that becomes any other operator) one is tried.
Not tried are changes of annotations and decorators, which say what is declared.

A change that no test notices has to stand in `tests/mutants.txt` with the reason.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import importlib
import importlib.abc
import importlib.util
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
LISTED = Path(__file__).with_suffix(".txt")
CPU_SECONDS = 120  # for the tests of one change
TESTS = {  # by the group of modules and the module, those that hold it
    "heart": {
        "penstock.runtime.segment": ["tests/runtime/test_segment.py", "tests/runtime/test_bounds.py"],
        "penstock.runtime.scheduler": ["tests/runtime/test_scheduler.py"],
        "penstock.runtime.free_order": ["tests/dataset/test_free_order.py"],
        "penstock.runtime.results": ["tests/runtime/test_results.py"],
        "penstock.runtime.counts": ["tests/runtime/test_lane.py"],
        "penstock.runtime.gate": ["tests/runtime/test_lane.py"],
        "penstock.runtime.executors.choice": ["tests/runtime/test_lane.py", "tests/runtime/test_transform_runner.py"],
    },
    "states": {
        "penstock.physical.stage": ["tests/physical/test_stages.py", "tests/physical/test_every_stage.py"],
        "penstock.physical.stretch": ["tests/physical/test_every_stage.py"],
        "penstock.physical.past": ["tests/physical/test_past.py"],
        "penstock.physical.slot_states": ["tests/physical/test_slot_states.py"],
    },
    "sources": {
        "penstock.sources.indexed": ["tests/sources/test_indexed.py"],
        "penstock.sources.files": ["tests/sources/test_files.py", "tests/sources/test_text.py"],
        "penstock.sources.sliced": ["tests/sources/test_every_source.py"],
        "penstock.sources.generator": ["tests/sources/test_every_source.py"],
    },
    "caches": {
        "penstock.cache.recorder": ["tests/cache/test_recorder.py", "tests/dataset/test_cache.py"],
        "penstock.cache.column_buffer": ["tests/cache/test_column_buffer.py"],
        "penstock.cache.memory": ["tests/dataset/test_cache.py"],
        "penstock.cache.entry.entry": ["tests/cache/entry", "tests/dataset/test_entries.py"],
        "penstock.cache.entry.lock": ["tests/cache/entry", "tests/dataset/test_entries.py"],
    },
}


@dataclass(frozen=True)
class Mutant:
    module: str
    line: int
    kind: str
    before: str
    after: str
    source: str  # of the whole module

    @property
    def listed_as(self) -> str:
        return f"{self.module}: {self.before} -> {self.after}"


class _Without(ast.NodeTransformer):
    """A module as it runs: annotations say nothing then."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


def _runs(source: str) -> str:
    return ast.dump(_Without().visit(ast.parse(source)))


def path_of(module: str) -> Path:
    return ROOT / "src" / Path(*module.split(".")).with_suffix(".py")


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every change of a module that is to be tried."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    source = path_of(module).read_text()
    runs, nodes = _runs(source), list(ast_nodes(get_ast(source)))
    found: dict[tuple[str, object], list[tuple[str, int]]] = {}
    for name in operator_names():
        operator = get_operator(name)
        kind = name.split("/")[1].split("_")[0]
        if operator.arguments() or kind == "RemoveDecorator":
            continue
        places = [place for node in nodes for place in operator().mutation_positions(node)]
        for occurrence, place in enumerate(places):
            found.setdefault((kind, place), []).append((name, occurrence))
    lines = source.splitlines()
    for (kind, place), ways in sorted(found.items(), key=str):
        (line, _), _ = place  # type: ignore[misc]
        text = f"{module} {lines[line - 1]} {kind}"
        name, occurrence = ways[hashlib.sha256(text.encode()).digest()[0] % len(ways)]
        changed = mutate_code(source, get_operator(name)(), occurrence)
        if changed is None:
            continue
        try:
            if _runs(changed) == runs:
                continue
        except SyntaxError:
            continue
        now = changed.splitlines()
        at = next(i for i, pair in enumerate(zip(lines, now, strict=False)) if pair[0] != pair[1])
        yield Mutant(module, at + 1, kind, lines[at].strip(), now[at].strip(), changed)


class _Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name != self.mutant.module:
            return None
        return importlib.util.spec_from_file_location(name, path_of(name), loader=self)

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.source, str(path_of(self.mutant.module)), "exec"), vars(module))


def start(tests: list[str], mutant: Mutant | None, said: Path) -> int:
    """The tests of a module in a process of its own; its id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
        if mutant is not None:
            sys.meta_path.insert(0, _Instead(mutant))
        import pytest

        code = int(pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
    except BaseException:
        traceback.print_exc()
        code = 99
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Runs:
    """Changes that are being tried, a few at a time."""

    def __init__(self, jobs: int, folder: Path) -> None:
        self.jobs, self.folder, self.number = jobs, folder, count()
        self.at_work: dict[int, tuple[Mutant, float]] = {}

    def start(self, mutant: Mutant, tests: list[str], seconds: float) -> None:
        pid = start(tests, mutant, self.folder / f"{next(self.number)}")
        self.at_work[pid] = mutant, time.monotonic() + seconds

    def ended(self) -> Iterator[tuple[Mutant, bool]]:
        """What has come of those that have ended: whether it was noticed."""
        for pid, (mutant, until) in list(self.at_work.items()):
            over, status = os.waitpid(pid, os.WNOHANG)
            if not over and time.monotonic() < until:
                continue
            if not over:
                os.waitpid(_killed(pid), 0)
            _killed(pid)  # what it had started
            del self.at_work[pid]
            yield mutant, not over or status != 0


def _killed(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return pid


def reasons() -> dict[str, str]:
    """The changes that may stay unnoticed, each with the line of the reason below it."""
    lines = [line for line in LISTED.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {change: reason.strip() for change, reason in zip(lines[::2], lines[1::2], strict=True)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="1/1", help="i/n: every n-th change from the i-th on")
    parser.add_argument("modules", nargs="*", help="names of groups or modules; all")
    given = parser.parse_args()
    tests = {
        module: held
        for group, modules in TESTS.items()
        for module, held in modules.items()
        if not given.modules or {group, module} & set(given.modules)
    }
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        return run(tests, given, Path(folder))


def run(tests: dict[str, list[str]], given: argparse.Namespace, folder: Path) -> int:
    for name in ("numba", "numpy", "pyarrow"):  # loaded once for all that are forked
        importlib.import_module(name)
    os.chdir(ROOT)
    ends, known = time.monotonic() + 60 * given.minutes, reasons()
    seconds: dict[str, float] = {}
    for module, held in tests.items():
        began = time.monotonic()
        if os.waitpid(start(held, None, folder / "sound"), 0)[1]:
            print((folder / "sound").read_text()[-2000:], f"\n{module}: its tests fail as it is", sep="")
            return 2
        seconds[module] = 20 + 8 * (time.monotonic() - began)
    waiting = [mutant for module in tests for mutant in mutants_of(module)]
    random.Random(given.seed).shuffle(waiting)
    part, parts = map(int, given.part.split("/"))
    waiting = waiting[part - 1 :: parts]
    runs, noticed, unnoticed = Runs(given.jobs, folder), Counter[str](), []
    while (waiting and time.monotonic() < ends) or runs.at_work:
        while waiting and len(runs.at_work) < given.jobs and time.monotonic() < ends:
            mutant = waiting.pop()
            runs.start(mutant, tests[mutant.module], seconds[mutant.module])
        for mutant, found in runs.ended():
            noticed[mutant.module] += found
            if not found:
                unnoticed.append(mutant)
        time.sleep(0.02)
    return report(tests, noticed, unnoticed, waiting, known)


def report(
    tests: dict[str, list[str]], noticed: Counter[str], unnoticed: list[Mutant], waiting: list[Mutant], known: dict
) -> int:
    for mutant in sorted(unnoticed, key=lambda mutant: (mutant.module, mutant.line)):
        reason = known.get(mutant.listed_as)
        print(f"line {mutant.line}: {mutant.listed_as}\n    {reason or 'NOT LISTED'}")
    missed = Counter(mutant.module for mutant in unnoticed)
    for module in tests:
        tried = noticed[module] + missed[module]
        if tried:
            left = sum(mutant.module == module for mutant in waiting)
            share = f"{noticed[module]} of {tried} noticed, {noticed[module] / tried:.0%}"
            print(f"{module}: {share}{f' ({left} not tried)' if left else ''}")
    return int(any(mutant.listed_as not in known for mutant in unnoticed))


if __name__ == "__main__":
    sys.exit(main())

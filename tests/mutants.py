"""`make mutants`: code is changed in one place at a time, and the tests of its module have to notice.

cosmic-ray says which changes there are. Each is tried in a process of its own, forked from one that has loaded what
tests need and nothing of penstock, and lives in memory only: no file is touched, and child processes that a test starts
run the code as it is. Of the changes of one kind in one place (a `+` that becomes any other operator) one is tried.
Not tried are changes of annotations, decorators and `if TYPE_CHECKING`, which say what is declared.

The tests are run once as they are, followed line by line. A change is then tried by the tests that run its line only,
those first that noticed much in little time, until one fails. A line that no test runs is a change that none notices.

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
import json
import math
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
LISTED = Path(__file__).with_suffix(".txt")
LOADING = ""  # in the place of a test
OPTIONS = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib"]
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # what is loaded once for all that are forked
TESTS = {  # by the group of modules and the module, those that hold it
    "runtime": {
        "penstock.runtime.segment": ["tests/runtime/test_segment.py"],
        "penstock.runtime.scheduler": ["tests/runtime/test_scheduler.py"],
        "penstock.runtime.free_order": ["tests/runtime/test_log.py", "tests/dataset/test_free_order.py"],
        "penstock.runtime.results": ["tests/runtime/test_results.py"],
        "penstock.runtime.counts": ["tests/runtime/test_lane.py"],
        "penstock.runtime.lane": ["tests/runtime/test_lane.py", "tests/runtime/test_transform_runner.py"],
        "penstock.runtime.work": ["tests/runtime/test_segment.py", "tests/runtime/test_batch_work.py"],
        "penstock.runtime.task": ["tests/runtime/test_segment.py", "tests/runtime/test_results.py"],
        "penstock.runtime.block_sizer": ["tests/runtime/test_block_sizer.py"],
        "penstock.runtime.parking": ["tests/runtime/test_parking.py", "tests/runtime/test_scheduler.py"],
    },
    "states": {
        "penstock.physical.stage": ["tests/physical/test_stages.py", "tests/physical/test_every_stage.py"],
        "penstock.physical.stretch": [
            "tests/physical/test_stages.py",
            "tests/physical/test_every_stage.py",
            "tests/physical/test_past.py",
        ],
        "penstock.physical.chained": [
            "tests/physical/test_slot_states.py",
            "tests/runtime/test_edited_states.py",
            "tests/physical/test_chained.py",
            "tests/dataset/test_free_order.py",
        ],
        "penstock.runtime.sealed": ["tests/runtime/test_edited_states.py", "tests/physical/test_chained.py"],
    },
    "sources": {
        "penstock.sources.source": ["tests/sources/test_indexed.py", "tests/sources/test_every_source.py"],
        "penstock.sources.files": ["tests/sources/test_files.py", "tests/sources/test_text.py"],
        "penstock.sources.generator": [
            "tests/sources/test_indexed.py",
            "tests/sources/test_every_source.py",
            "tests/dataset/test_any_rank.py",
            "tests/dataset/test_bad_input.py",
            "tests/dataset/test_values.py",
            "tests/sources/test_generator.py",
        ],
        "penstock.sources.records": ["tests/sources/test_files.py", "tests/sources/test_every_source.py"],
        "penstock.sources.arrays": ["tests/sources/test_indexed.py", "tests/sources/test_every_source.py"],
        "penstock.sources.fixed": ["tests/sources/test_fixed.py"],
        "penstock.sources.csv": ["tests/sources/test_csv.py"],
        "penstock.sources.indexed_records": ["tests/sources/test_indexed_records.py"],
        "penstock.sources.shards": ["tests/sources/test_shards.py"],
    },
    "store": {
        "penstock.store.recorder": ["tests/store/test_recorder.py", "tests/dataset/test_cache.py"],
        "penstock.store.column_buffer": ["tests/store/test_column_buffer.py"],
        "penstock.store.memory": ["tests/dataset/test_cache.py"],
        "penstock.store.entry": ["tests/store", "tests/dataset/test_entries.py"],
        "penstock.store.lock": ["tests/store", "tests/dataset/test_entries.py"],
        "penstock.store.manifest": ["tests/store"],
        "penstock.store.journal": ["tests/store"],
        "penstock.store.chunk": ["tests/store"],
        "penstock.store.entry_writer": ["tests/store", "tests/dataset/test_entries.py"],
        "penstock.store.saved_source": ["tests/store"],
        "penstock.store.saved_writer": ["tests/store"],
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
    """A module without what is not tried: annotations, decorators, and what is for type checkers only."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        node.decorator_list = []
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            node.test = ast.Constant(None)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.decorator_list = []
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
        with warnings.catch_warnings(action="ignore"):  # a comparison with a literal by `is`
            code = compile(self.mutant.source, str(path_of(self.mutant.module)), "exec")
        exec(code, vars(module))


class Followed:
    """A plugin of the tests as they are: which lines of some files each runs, and how long it takes."""

    def __init__(self, files: dict[str, str], results: Path) -> None:
        self.files, self.results = files, results  # the module by its file
        self.seconds: dict[str, float] = {}
        self.now: dict[str, set[int]] = {}  # by the module
        self.lines = {LOADING: self.now}  # by the test

    def follow(self, frame: FrameType, event: str, _: object) -> Callable | None:
        module = self.files.get(frame.f_code.co_filename)
        return self.line if module else None

    def line(self, frame: FrameType, event: str, _: object) -> Callable:
        if event == "line":
            self.now.setdefault(self.files[frame.f_code.co_filename], set()).add(frame.f_lineno)
        return self.line

    def pytest_configure(self) -> None:
        threading.settrace(self.follow)
        sys.settrace(self.follow)

    def pytest_runtest_protocol(self, item: Any) -> None:
        sys.settrace(self.follow)  # again: a test may have taken it away
        self.now = self.lines[item.nodeid] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        sys.settrace(None)
        runs = {
            test: {module: sorted(lines) for module, lines in found.copy().items()}
            for test, found in self.lines.copy().items()
        }
        loaded = [name for name in sys.modules if name.split(".")[0] not in ("penstock", "tests")]
        self.results.write_text(json.dumps({"seconds": self.seconds, "lines": runs, "loaded": loaded}))


class Chosen:
    """A plugin that runs some of the tests, in a given order, and says which has failed."""

    def __init__(self, order: list[str], results: Path) -> None:
        self.order, self.results = order, results

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        # That a case fails is enough: nobody reads the smallest.
        settings.register_profile("mutants", settings(), phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in self.order if test in found]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.results.write_text(json.dumps(report.nodeid))


@dataclass
class Tests:
    """What is known of the tests of a module."""

    files: list[str]
    seconds: dict[str, float]
    lines: dict[str, set[int]]  # of the module, by the test
    loading: set[int]  # those that run when the tests are loaded
    noticed: Counter[str] = field(default_factory=Counter)  # changes, by the test

    def that_run(self, mutant: Mutant) -> list[str]:
        """Those that run the statement of a change, those first that noticed much in little time."""
        lines = _statement(mutant)
        if lines is not None and lines & self.loading:
            lines = None
        reach = [test for test in self.seconds if lines is None or lines & self.lines.get(test, set())]
        return sorted(reach, key=lambda test: (self.seconds[test] + 0.01) / (self.noticed[test] + 1))


def _statement(mutant: Mutant) -> set[int] | None:
    """The lines of the statement that is changed, without those of its body; None if it runs when the module loads."""
    lines, inside = None, ast.parse(path_of(mutant.module).read_text()).body
    at_load = True
    while inside:
        inner = [node for node in inside if _first_line(node) <= mutant.line <= (node.end_lineno or node.lineno)]
        if not inner:
            break
        [node] = inner
        bodies = [
            part for name in ("body", "orelse", "finalbody", "handlers", "cases") for part in getattr(node, name, [])
        ]
        lines = set(range(_first_line(node), 1 + (node.end_lineno or node.lineno)))
        for part in bodies:
            lines -= set(range(_first_line(part), 1 + (part.end_lineno or part.lineno)))
        if mutant.line in lines:
            break
        at_load = at_load and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        inside = bodies
    return None if at_load else lines


def _first_line(node: Any) -> int:
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def start(files: list[str], plugin: Followed | Chosen, mutant: Mutant | None, said: Path, cpu_seconds: float) -> int:
    """Tests in a process of their own; its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        os.setsid()
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        most = math.ceil(cpu_seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
        if mutant is not None:
            sys.meta_path.insert(0, _Instead(mutant))
        import pytest

        options = OPTIONS if mutant is None else [*OPTIONS, "--tb=no"]
        code = int(pytest.main([*options, *files], plugins=[plugin]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def followed(tests: dict[str, list[str]], folder: Path) -> dict[str, Tests] | None:
    """The tests of all modules, run as they are; None if one fails."""
    files = sorted({file for held in tests.values() for file in held})
    plugin = Followed({str(path_of(module)): module for module in tests}, folder / "sound.json")
    _, status = os.waitpid(start(files, plugin, None, folder / "sound", 3600), 0)
    if status:
        print((folder / "sound").read_text()[-4000:])
        return None
    found = json.loads(plugin.results.read_text())
    for name in found["loaded"]:  # once for all that will be forked
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    known = {}
    for module, held in tests.items():
        names = [test for test in found["seconds"] if any(test.startswith(file) for file in held)]
        seconds = {test: found["seconds"][test] for test in names}
        lines = {test: set(runs.get(module, ())) for test, runs in found["lines"].items()}
        known[module] = Tests(held, seconds, lines, lines[LOADING])
    return known


@dataclass
class Run:
    mutant: Mutant
    until: float
    chosen: Chosen


class Runs:
    """Changes that are being tried, a few at a time."""

    def __init__(self, jobs: int, folder: Path) -> None:
        self.jobs, self.folder, self.number = jobs, folder, count()
        self.at_work: dict[int, Run] = {}

    def start(self, mutant: Mutant, tests: Tests, order: list[str]) -> None:
        said = self.folder / f"{next(self.number)}"
        chosen, seconds = Chosen(order, said.with_suffix(".json")), sum(tests.seconds[test] for test in order)
        files = [file for file in tests.files if any(test.startswith(file) for test in order)]
        pid = start(files, chosen, mutant, said, 10 + 5 * seconds)
        self.at_work[pid] = Run(mutant, time.monotonic() + 60 + 8 * seconds, chosen)

    def ended(self) -> Iterator[tuple[Mutant, bool, str | None]]:
        """What has come of those that have ended: whether it was noticed, and by which test."""
        for pid, run in list(self.at_work.items()):
            over, status = os.waitpid(pid, os.WNOHANG)
            if not over and time.monotonic() < run.until:
                continue
            if not over:
                os.waitpid(_killed(pid), 0)
            _killed(pid)  # what it had started
            del self.at_work[pid]
            by = json.loads(run.chosen.results.read_text()) if run.chosen.results.exists() else None
            yield run.mutant, not over or status != 0, by

    def left(self) -> list[Mutant]:
        """Those for which no time is left."""
        for pid in self.at_work:
            os.waitpid(_killed(pid), 0)
        return [run.mutant for run in self.at_work.values()]


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
    parser.add_argument("--draw", type=int, help="try so many changes, selected by the seed; all")
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
    os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "_hypothesis_pytestplugin"}
    os.chdir(ROOT)
    ends = time.monotonic() + 60 * given.minutes
    known = followed(tests, folder)
    if known is None:
        print("the tests fail as they are")
        return 2
    waiting = [mutant for module in tests for mutant in mutants_of(module)]
    random.Random(given.seed).shuffle(waiting)
    waiting = waiting[-(given.draw or len(waiting)) :]  # a larger sample of one seed contains the smaller ones
    part, parts = map(int, given.part.split("/"))
    waiting = waiting[part - 1 :: parts]
    runs, noticed, unnoticed = Runs(given.jobs, folder), Counter[str](), list[Mutant]()
    idle = set[Mutant]()  # no test runs them
    while (waiting or runs.at_work) and time.monotonic() < ends:
        while waiting and len(runs.at_work) < given.jobs:
            mutant = waiting.pop()
            if order := known[mutant.module].that_run(mutant):
                runs.start(mutant, known[mutant.module], order)
            else:
                unnoticed.append(mutant)
                idle.add(mutant)
        for mutant, found, by in runs.ended():
            noticed[mutant.module] += found
            if by is not None:
                known[mutant.module].noticed[by] += 1
            if not found:
                unnoticed.append(mutant)
        time.sleep(0.02)
    waiting += runs.left()
    return report(noticed, unnoticed, idle, waiting)


def report(noticed: Counter[str], unnoticed: list[Mutant], idle: set[Mutant], waiting: list[Mutant]) -> int:
    known = reasons()
    for mutant in sorted(unnoticed, key=lambda mutant: (mutant.module, mutant.line)):
        reason = known.get(mutant.listed_as) or ("NOT LISTED, and no test runs it" if mutant in idle else "NOT LISTED")
        print(f"line {mutant.line}: {mutant.listed_as}\n    {reason}")
    missed, listed = (
        Counter(mutant.module for mutant in some)
        for some in (unnoticed, [mutant for mutant in unnoticed if mutant.listed_as in known])
    )
    left = Counter(mutant.module for mutant in waiting)

    def say(name: str, modules: list[str]) -> None:
        found, tried, excused, still = (
            sum(counts[module] for module in modules) for counts in (noticed, noticed + missed, listed, left)
        )
        if tried:
            share = f"{found} of {tried} noticed, {found / tried:.0%}, {excused} of the rest listed"
            print(f"{name}: {share}{f' ({still} not tried)' if still else ''}")

    for group, modules in TESTS.items():
        for module in modules:
            say(module, [module])
        say(group, list(modules))
    say("all", [module for modules in TESTS.values() for module in modules])
    return int(any(mutant.listed_as not in known for mutant in unnoticed))


if __name__ == "__main__":
    sys.exit(main())

"""The child processes that compile: how many there are, and what is said about each module."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zlib

import pytest
from tests.compiled.written import writer

from penstock.compiled.child import LOCK, NICER, at_work
from penstock.compiled.compiler import Compiler
from penstock.compiled.kernel_files import note_of
from penstock.errors import DeadlineExceededError

PID = """
import os, pathlib
written = pathlib.Path(__file__).with_suffix(".pid_")
written.write_text(str(os.getpid()))
written.rename(pathlib.Path(__file__).with_suffix(".pid"))  # it is there once it is written
"""
UNTIL = """
import pathlib, time
end = time.monotonic() + 60
while not pathlib.Path(__file__).with_name("go").exists() and time.monotonic() < end:
    time.sleep(0.01)
"""


def until(condition):
    """Look again and again, for a minute: what is waited for are other processes, which cannot say so."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "a minute has passed"
        time.sleep(0.005)


RIGHTS = """
import os, pathlib
with pathlib.Path(__file__).with_suffix(".rights").open("a") as file:
    print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), file=file)
"""
PATIENT = "from penstock.compiled import child\nchild._STARVED = 3600.0  # however busy the machine is\n"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no rights of their own")


def is_locked(name):
    """Look whether a process compiles a module, which one has to do all the time."""
    import fcntl

    note = note_of(name)
    with note.with_name(LOCK).open("w") as file, pytest.raises((BlockingIOError, PermissionError)):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, zlib.crc32(note.name.encode()))
    return True


def rights(folder, name):
    """How each time the scheduler saw the thread that compiled it: the policy and the niceness."""
    lines = (folder / f"{name}.rights").read_text().splitlines()
    return [tuple(map(int, line.split())) for line in lines]


@pytest.fixture
def modules(tmp_path, monkeypatch):
    written = writer(tmp_path, monkeypatch)
    return lambda **sources: written(**{name: PID + source for name, source in sources.items()})


def test_what_is_asked_for_while_a_child_compiles_is_compiled_by_it_too(modules):
    folder = modules(asked_first=UNTIL, asked_second="", asked_third="")
    compiler = Compiler(most=1)
    asked = [compiler.ask(name) for name in ("asked_first", "asked_second", "asked_third")]
    assert not any(one.finished.is_set() for one in asked)
    assert compiler.busy
    (folder / "go").touch()
    compiler.settle()
    assert not compiler.busy
    assert [one.reason for one in asked] == ["", "", ""]
    first, second, third = ((folder / f"{one.name}.pid").read_text() for one in asked)
    assert first == second == third != str(os.getpid())


def test_what_was_asked_for_most_often_is_compiled_first(modules):
    noted = "import pathlib\npathlib.Path(__file__).with_name('order').open('a').write(__name__ + ' ')"
    folder = modules(comes_first=UNTIL, once=noted, again=noted, too=noted, most_of_all=noted)
    compiler = Compiler(most=1)
    compiler.ask("comes_first")
    until((folder / "comes_first.pid").exists)
    _, again, too, most_of_all = (compiler.ask(name) for name in ("once", "again", "too", "most_of_all"))
    for asked in (again, too):
        compiler.ask_again(asked)
    compiler.ask_again(most_of_all, most=True)
    (folder / "go").touch()
    compiler.settle()
    assert (folder / "order").read_text().split() == ["most_of_all", "again", "too", "once"]


@LINUX
def test_what_takes_most_of_a_pipeline_has_its_rights_and_all_else_gets_what_nobody_wants(modules):
    noted = PATIENT + RIGHTS
    folder = modules(at_first=noted + UNTIL, decoder=noted, trial=noted, serves=noted, decoder_too=noted)
    compiler = Compiler(most=1)
    asked = {"at_first": compiler.ask("at_first")}
    until((folder / "at_first.pid").exists)
    asked |= {name: compiler.ask(name) for name in ("trial", "serves", "decoder", "decoder_too")}
    compiler.ask_again(asked["serves"])
    for name in ("decoder", "decoder_too"):
        compiler.ask_again(asked[name], most=True)
    own = (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))
    for name in ("decoder", "decoder_too"):  # before `at_first` is done, which is begun once more
        assert asked[name].finished.wait(60)
        assert rights(folder, name) == [own]
    (folder / "go").touch()
    compiler.settle()
    assert {each[0] for name in ("at_first", "trial", "serves") for each in rights(folder, name)} == {os.SCHED_IDLE}
    assert len({(folder / f"{name}.pid").read_text() for name in asked}) == 1


@LINUX
def test_where_nobody_leaves_a_processor_a_compiler_begins_anew_and_is_only_nicer(modules):
    """It keeps its place and its module: no other compiler begins meanwhile."""
    waits_while_idle = """
if os.sched_getscheduler(0) == os.SCHED_IDLE:
    import time
    from penstock.compiled import child
    child._STARVED = 0.2
    time.sleep(60)
"""
    folder = modules(starved=RIGHTS + waits_while_idle + UNTIL, behind=RIGHTS, of_another="")
    code = f"{PATIENT}child.compile_in_background('starved', 'behind')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
    ) as starved:
        until((folder / "starved.rights").exists)
        compiler = Compiler(most=1)
        other = compiler.ask("of_another")
        until(lambda: is_locked("starved") and len(rights(folder, "starved")) == 2)
        assert not other.finished.wait(0.5)
        (folder / "go").touch()
        said, complaints = starved.communicate(timeout=120)
    compiler.settle()
    assert (starved.returncode, complaints) == (0, "")
    nicer = (os.sched_getscheduler(0), min(os.getpriority(os.PRIO_PROCESS, 0) + NICER, 19))
    assert [each[0] for each in rights(folder, "starved")] == [os.SCHED_IDLE, nicer[0]]
    assert rights(folder, "starved")[1] == rights(folder, "behind")[0] == nicer
    assert said.splitlines()[-1] == "compiled\tbehind\t"


def test_who_needs_the_processors_is_told_while_the_compiler_wants_one_for_itself(modules):
    folder = modules(serves="", decodes=UNTIL, found_elsewhere="")
    compiler, told = Compiler(most=1), []
    compiler.watch(lambda: told.append(compiler.wants_processor))
    serves, decodes, elsewhere = compiler.ask_all(["serves", "decodes", "found_elsewhere"])
    compiler.ask_again(serves)
    assert not compiler.wants_processor
    compiler.ask_again(elsewhere, most=True)
    assert True in told
    compiler.found(elsewhere)
    assert not compiler.wants_processor
    told.clear()
    compiler.ask_again(decodes, most=True)
    assert True in told
    assert compiler.wants_processor
    (folder / "go").touch()
    compiler.settle()
    until(lambda: not told[-1])


def test_what_does_not_get_compiled_is_named_and_not_waited_for_without_end(modules):
    folder = modules(goes_fast="", stands_still=UNTIL, behind_that="")
    compiler = Compiler(most=1)
    asked = compiler.ask_all(["goes_fast", "stands_still", "behind_that"])
    assert asked[0].finished.wait(60)
    until((folder / "stands_still.pid").exists)
    with pytest.raises(DeadlineExceededError) as found:
        compiler.settle(0.01)
    pid = (folder / "stands_still.pid").read_text()
    assert str(found.value).startswith(
        "No kernels were compiled for 0.01 s, and there are some still to be compiled: "
        f"stands_still, behind_that (process {pid} compiles stands_still)."
    )
    (folder / "go").touch()
    compiler.settle()
    assert [one.reason for one in asked] == ["", "", ""]


def test_as_many_children_as_there_may_be_compile_side_by_side(modules):
    """The first ends only when the second has begun."""
    folder = modules(side_first=UNTIL, side_second="pathlib.Path(__file__).with_name('go').touch()\n")
    compiler = Compiler(most=2, background=False)  # in the background they would need four processors each
    asked = [compiler.ask(name) for name in ("side_first", "side_second")]
    assert all(one.finished.wait(60) for one in asked)
    assert (folder / "side_first.pid").read_text() != (folder / "side_second.pid").read_text()


def test_what_somebody_waits_for_does_not_queue(modules):
    folder = modules(long_one=UNTIL, queued="", needed="")
    compiler = Compiler(most=1)
    asked = [compiler.ask(name) for name in ("long_one", "queued", "needed")]
    compiler.hurry(asked[2])
    assert asked[2].finished.wait(60)
    assert not asked[0].finished.is_set()
    assert not asked[1].finished.is_set()
    compiler.hurry(asked[0])  # it has a child already
    (folder / "go").touch()
    compiler.settle()
    assert [one.reason for one in asked] == ["", "", ""]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise OSError('no compiler here')", "OSError: no compiler here"),
        ("raise ValueError", "ValueError"),
        ("os._exit(3)", "exit status 3"),
        ("print('out of memory', flush=True); os._exit(3)", "out of memory"),
    ],
)
def test_a_module_that_fails_is_named_and_the_others_are_compiled(modules, source, reason):
    folder = modules(before_it=UNTIL, fails_so=source, behind_it="")
    compiler = Compiler(most=1)
    asked = [compiler.ask(name) for name in ("before_it", "fails_so", "behind_it")]
    (folder / "go").touch()
    compiler.settle()
    assert [one.reason for one in asked] == ["", reason, ""]


@pytest.mark.skipif(sys.platform == "win32", reason="needs fcntl")
def test_what_another_process_compiles_is_not_compiled_twice_and_comes_last(modules):
    """The first is done when the other has compiled what is free, before it waits."""
    folder = modules(taken=UNTIL, free="pathlib.Path(__file__).with_name('go').touch()\n")
    compiler = Compiler(most=1)
    asked = compiler.ask("taken")
    until((folder / "taken.pid").exists)
    assert not asked.finished.is_set()
    first = (folder / "taken.pid").read_text()
    script = "from penstock.compiled import compile_kernels; compile_kernels('taken', 'free')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines() == ["compiling\tfree", "compiled\tfree\t", "compiling\ttaken", "compiled\ttaken\t"]
    compiler.settle()
    assert asked.reason == ""
    assert (folder / "taken.pid").read_text() == first


def test_where_files_cannot_be_locked_modules_are_compiled_all_the_same(modules):
    folder = modules(unlocked="")
    (folder / "cache").mkdir()
    (folder / "cache" / "compiling.lock").mkdir()  # no file
    compiler = Compiler(most=1)
    asked = compiler.ask("unlocked")
    compiler.settle()
    assert asked.reason == ""
    assert (folder / "unlocked.pid").exists()


def test_without_an_interpreter_nothing_is_promised(modules, monkeypatch):
    modules(never_asked="")
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    compiler = Compiler(most=1)
    assert compiler.ask("never_asked") is None
    compiler.settle()


FORKED = """
import os, pathlib
from penstock.compiled import Compiled, wait_for_kernels
kernels = Compiled("held_up")
assert kernels.ready() is None
pid = os.fork()
if not pid:
    wait_for_kernels()
    assert kernels.ready() is None
    pathlib.Path({go!r}).touch()
    wait_for_kernels()
    os._exit(0 if kernels.ready() is not None else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print(kernels.get().__name__)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_forked_child_waits_for_nothing_of_its_parents_and_asks_anew(modules):
    folder = modules(held_up=UNTIL)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}
    script = FORKED.format(go=str(folder / "go"))
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "held_up\n"), done.stderr


SHORT = """
import pathlib, sys, time
from penstock.compiled import Compiled
Compiled("goes_on").ready()
Compiled("goes_on_too").ready()
end = time.monotonic() + 60
pid = pathlib.Path(sys.argv[1])
while not pid.exists() and time.monotonic() < end:
    time.sleep(0.01)
"""


@pytest.mark.skipif(os.name != "posix", reason="looks at processes")
def test_what_a_short_process_asked_for_is_compiled_once_it_has_ended(modules):
    folder = modules(goes_on=UNTIL, goes_on_too="", waits="")
    pid = folder / "goes_on.pid"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}
    command = [sys.executable, "-W", "error", "-c", SHORT, str(pid)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    told = at_work()
    assert told is not None
    assert (told["pid"], told["modules"][0]) == (int(pid.read_text()), "goes_on")
    assert told["modules"][1:] in ([], ["goes_on_too"])  # which may have come since
    compiler = Compiler(most=1)
    next_one, other = compiler.ask_all(["goes_on", "waits"])
    assert not next_one.finished.wait(0.5)  # one compiler on the machine
    (folder / "go").touch()
    assert next_one.finished.wait(60)
    assert other.finished.wait(60)
    assert next_one.reason == other.reason == ""
    compiler.ask("goes_on_too").finished.wait(60)
    assert {int((folder / f"{name}.pid").read_text()) for name in ("goes_on", "goes_on_too")} == {told["pid"]}  # once
    compiler.settle()
    until(lambda: at_work() is None)  # gone when done


@pytest.mark.skipif(os.name != "posix", reason="looks at processes")
def test_a_compiler_that_has_compiled_a_module_is_still_the_only_one(modules):
    """Who closes a file, as that of the modules' locks, loses all its locks of it."""
    folder = modules(done="", stays=UNTIL, of_another="")
    one, another = Compiler(most=1), Compiler(most=1)
    done, _ = one.ask_all(["done", "stays"])
    assert done.finished.wait(60)
    until((folder / "stays.pid").exists)
    waits = another.ask("of_another")
    assert not waits.finished.wait(1)
    (folder / "go").touch()
    one.settle()
    another.settle()
    assert waits.reason == ""


@pytest.mark.skipif(os.name != "posix", reason="looks at processes")
def test_what_takes_most_of_a_pipeline_does_not_wait_for_the_compiler_of_another_process(modules):
    folder = modules(of_another=UNTIL, decoder="", later="")
    other, own = Compiler(most=1), Compiler(most=1)
    other.ask("of_another")
    until((folder / "of_another.pid").exists)
    same, decoder, later = own.ask_all(["of_another", "decoder", "later"])
    for asked in (same, decoder):
        own.ask_again(asked, most=True)
    assert decoder.finished.wait(60)
    assert not same.finished.is_set()  # which is not compiled twice
    assert not later.finished.wait(0.5)
    (folder / "go").touch()
    other.settle()
    own.settle()
    assert same.reason == decoder.reason == later.reason == ""


@pytest.mark.skipif(os.name != "posix", reason="looks at processes")
def test_what_somebody_waits_for_does_not_wait_for_the_compiler_of_another_process(modules):
    folder = modules(of_another=UNTIL, at_once="")
    other, own = Compiler(most=1), Compiler(most=1)
    other.ask("of_another")
    until((folder / "of_another.pid").exists)
    asked = own.ask("at_once")
    own.hurry(asked)
    assert asked.finished.wait(60)
    (folder / "go").touch()
    other.settle()
    own.settle()


@pytest.mark.skipif(os.name != "posix", reason="looks at processes")
def test_what_is_to_be_compiled_ahead_ends_with_its_process(modules):
    folder = modules(still_going=UNTIL)
    script = """
import pathlib, sys, time
from penstock.compiled.child import NICER, at_work
from penstock.compiled.compiler import Compiler
Compiler(most=1, background=False).ask("still_going")
end = time.monotonic() + 60
pid = pathlib.Path(sys.argv[1])
while not pid.exists() and time.monotonic() < end:
    time.sleep(0.01)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}
    pid = folder / "still_going.pid"
    subprocess.run([sys.executable, "-c", script, str(pid)], env=environment, check=True, timeout=120)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)

"""The lock of an entry: one holder, released with its process, and recreated with its folder."""

import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress

import pytest

from penstock.io import storage
from penstock.store.durable import write_whole
from penstock.store.lock import NAME, Unlockable, hold, holder, last_used, take, take_lease, unused, use, writer_of

HOLD = """
import sys
from penstock.store.lock import take
assert take(sys.argv[1]) is not None
print("held", flush=True)
sys.stdin.read()
"""


def raises(error):
    def call(*_):
        raise error

    return call


URL = "memory://lease-test"


def test_a_lease_is_of_one_until_it_is_released():
    lease = take_lease(URL)
    assert lease.ours and lease.lasts  # noqa: PT018 - both at once
    assert writer_of(URL)["pid"] == os.getpid()
    assert take_lease(URL) is None
    lease.release()
    lease.release()
    assert writer_of(URL) is None


HERE = socket.gethostname()


@pytest.mark.parametrize(
    ("age", "host", "pid", "alive"),
    [
        (0, "elsewhere", 1, True),
        (59, "elsewhere", 1, True),
        (61, "elsewhere", 1, False),
        (-61, "elsewhere", 1, False),
        (None, "elsewhere", 1, False),
        (0, HERE, "own", True),
        (0, HERE, 1 << 30, False),
        (0, HERE, 1 << 80, False),
        (0, HERE, "1", True),
    ],
)
def test_a_lease_lasts_for_a_minute_and_not_longer_than_its_process(age, host, pid, alive, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1e9)
    pid = os.getpid() if pid == "own" else pid  # the ids of tests must not differ between processes
    found = {"at": age if age is None else 1e9 - age, "host": host, "pid": pid}
    write_whole(f"{URL}/{NAME}", json.dumps(found).encode())
    assert writer_of(URL) == (found if alive else None)
    storage.remove(f"{URL}/{NAME}")


def test_one_at_a_time_holds_it(tmp_path):
    lock = take(str(tmp_path))
    assert take(str(tmp_path)) is None
    assert holder(str(tmp_path))["pid"] == os.getpid()
    lock.release()
    lock.release()
    assert holder(str(tmp_path)) is None
    take(str(tmp_path)).release()


def test_nobody_holds_what_is_not_there(tmp_path):
    assert holder(str(tmp_path / "nothing")) is None
    with pytest.raises(FileNotFoundError):
        take(str(tmp_path / "nothing"))


def test_a_killed_process_holds_nothing(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout.readline() == "held\n"
        assert take(str(tmp_path)) is None
        assert holder(str(tmp_path))["pid"] == child.pid
        child.send_signal(signal.SIGKILL)
    take(str(tmp_path)).release()


@pytest.mark.parametrize("released", [True, False])
def test_a_forked_child_does_not_keep_it(released, tmp_path):
    lock = take(str(tmp_path))
    done, end = os.pipe()
    ready, begun = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(end)
        os.write(begun, b"x")
        os.read(done, 1)
        os._exit(0)
    try:
        assert os.read(ready, 1) == b"x"
        assert take(str(tmp_path)) is None  # the first holder has not released it
        if released:
            lock.release()
        else:
            lock.forget()  # the state after a process was killed
        take(str(tmp_path)).release()
    finally:
        os.close(end)
        for pipe in (done, ready, begun):
            os.close(pipe)
        os.waitpid(pid, 0)


def test_a_folder_that_was_made_anew_has_a_lock_of_its_own(tmp_path):
    folder = tmp_path / "entry"
    folder.mkdir()
    old = take(str(folder))
    shutil.rmtree(folder)
    folder.mkdir()
    new = take(str(folder))
    assert new is not None
    old.release()
    assert take(str(folder)) is None
    new.release()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(number, tmp_path, monkeypatch):
    monkeypatch.setattr("fcntl.flock", raises(OSError(number, os.strerror(number))))
    with pytest.raises(Unlockable):
        take(str(tmp_path))
    assert holder(str(tmp_path)) is None


@pytest.mark.parametrize("ask", [take, use, hold, unused])
def test_what_is_let_go_of_is_closed_once(ask, tmp_path, monkeypatch):
    """A closed file number may belong to another file immediately."""
    use(str(tmp_path)).release()
    closed, close = [], os.close
    monkeypatch.setattr(os, "close", lambda handle: closed.append(handle) or close(handle))
    lock = ask(str(tmp_path))
    for _ in range(3):
        lock.release()
        lock.forget()
    assert len(closed) == 1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(closed[0])


@pytest.mark.parametrize(("ask", "number"), [(take, 3), (use, 2), (hold, 3), (unused, 3)])
def test_what_cannot_be_locked_is_left_closed(ask, number, tmp_path, monkeypatch):
    """No file stays open without an owner after any error."""
    use(str(tmp_path)).release()
    opened, open_file = [], os.open
    monkeypatch.setattr(os, "open", lambda *given: opened.append(open_file(*given)) or opened[-1])
    for error in (KeyboardInterrupt(), OSError(errno.EIO, "broken"), BlockingIOError())[:number]:
        with monkeypatch.context() as patched:
            patched.setattr("fcntl.flock", raises(error))
            with suppress(type(error)):
                assert ask(str(tmp_path)) is None
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(opened[-1])


def once(function, before):
    """Return the function; before its first call another function is called."""
    waiting = [before]

    def call(*arguments, **named):
        while waiting:
            waiting.pop()()
        return function(*arguments, **named)

    return call


@pytest.mark.parametrize("ask", [take, use])
def test_who_gets_the_lock_of_an_entry_that_was_removed_meanwhile_asks_again(ask, tmp_path, monkeypatch):
    folder = tmp_path / "entry"
    folder.mkdir()

    def made_anew():
        shutil.rmtree(folder)
        folder.mkdir()

    monkeypatch.setattr("fcntl.flock", once(fcntl.flock, made_anew))
    lock = ask(str(folder))
    assert take(str(folder)) is None if ask is take else unused(str(folder)) is None
    lock.release()


def test_an_entry_that_is_wanted_while_it_is_removed_has_a_folder_again(tmp_path, monkeypatch):
    folder = tmp_path / "a" / "b"
    monkeypatch.setattr(os, "open", once(os.open, lambda: shutil.rmtree(folder)))
    use(str(folder)).release()
    assert last_used(str(folder)) > 0


def test_who_wants_an_entry_that_is_looked_at_waits(tmp_path, monkeypatch):
    use(str(tmp_path)).release()
    looking, flock = unused(str(tmp_path)), fcntl.flock

    def waits(handle, how):
        if how == fcntl.LOCK_SH:
            looking.release()
        return flock(handle, how)

    monkeypatch.setattr("fcntl.flock", waits)
    lock = use(str(tmp_path))
    looking.release()
    assert unused(str(tmp_path)) is None
    lock.release()
    unused(str(tmp_path)).release()


def test_a_folder_is_held_without_a_file_in_it(tmp_path):
    lock = hold(str(tmp_path))
    assert hold(str(tmp_path)) is None
    assert list(tmp_path.iterdir()) == []
    lock.release()
    hold(str(tmp_path)).release()


def test_a_system_without_locks_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(Unlockable, match="no flock"):
        take(str(tmp_path))


def test_who_holds_it_may_not_have_said_so_yet(tmp_path):
    lock = take(str(tmp_path))
    for content in (b"", b'{"host": "a', b"[1]"):
        (tmp_path / "writer.lock").write_bytes(content)
        assert holder(str(tmp_path)) == {}
    lock.release()

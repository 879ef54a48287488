"""The lock of an entry: one holder, gone with its process, and made anew with its folder."""

import errno
import os
import shutil
import signal
import subprocess
import sys

import pytest

from penstock.cache.entry.lock import Unlockable, holder, take

HOLD = """
import sys
from penstock.cache.entry.lock import take
assert take(sys.argv[1]) is not None
print("held", flush=True)
sys.stdin.read()
"""


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
        assert take(str(tmp_path)) is None  # it did not let go of ours
        if released:
            lock.release()
        else:
            lock.forget()  # all that is left of a process that was killed
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
    def refuses(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuses)
    with pytest.raises(Unlockable):
        take(str(tmp_path))
    assert holder(str(tmp_path)) is None

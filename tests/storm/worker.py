"""Worker: a process that calls functions by name, one after the other, and is killed if one takes too long.

`python -m tests.storm.worker FOLDER` answers a line of JSON for each line that it reads: {"call": "module:name",
"args": [...]}. With "fork" the call runs in a fork, a process that has only imported penstock; its id is sent first.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from tests.generated import FOLDER

ROOT = Path(__file__).parents[2]
GROUP, SESSION = 2, 3  # fields of /proc/PID/stat after the name
_DUMPED = 2.0  # seconds for the stack dumps of a hanging process


class Wrong(Exception):
    """The fault that a case found."""


class Skipped(Exception):
    """A case that cannot run: its numbers make no pipeline."""


def members(number: int, of: int) -> list[int]:
    """Return the processes of a session or of a process group, if the system lists them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if fields[0] != "Z" and int(fields[of]) == number:
                found.append(int(path.parent.name))
    return found


class Worker:
    """A process with its own folder for files of generated sources. A request after `kill` starts a new one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._leads = FOLDER not in os.environ  # otherwise a worker calls another one, which is killed with it
        self._process: subprocess.Popen[bytes] | None = None
        self._forks = False  # True during the last call, which ends with its last line

    def ask(self, call: str, *args: Any, seconds: float, fork: bool = False) -> Any:
        """Return the result of the function. Raises Wrong for its exceptions, for a death, and for silence."""
        self.begin(call, *args, fork=fork)
        return self.answer(seconds)

    def begin(self, call: str, *args: Any, fork: bool = False) -> int:
        """Start a function. Return the id of the process that runs it."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._forks = fork
        request = {"call": call, "args": args, "fork": fork}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._line(60.0)["pid"]) if fork else self._process.pid

    def answer(self, seconds: float) -> Any:
        found = self._line(seconds)
        if self._forks and "ended" not in found:
            self._line(seconds)  # the line of its end
        if "ended" in found:
            raise Wrong(f"the fork ended with {found['ended']}")
        if "wrong" in found:
            raise Wrong(found["wrong"])
        if "skipped" in found:
            raise Skipped(found["skipped"])
        return found.get("value")

    def said(self) -> str:
        """Return the end of its standard error."""
        return self._errors.read_text(errors="replace")[-3000:]

    def kill(self) -> None:
        """Kill the process and all its child processes."""
        if self._process is None:
            return
        for pid in {self._process.pid, *members(self._process.pid, SESSION if self._leads else GROUP)}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process = None

    def _start(self) -> None:
        self.kill()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._errors = self.folder / "stderr"
        self._left = b""
        paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PENSTOCK_REMEMBER": "0",
            "PENSTOCK_DATA_DIR": str(self.folder / "data"),
            "TMPDIR": str(self.folder),
            FOLDER: os.environ.get(FOLDER, str(self.folder / "generated")),
        }
        (self.folder / "generated").mkdir(exist_ok=True)
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.storm.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **environment},
                cwd=ROOT,
                start_new_session=self._leads,
                process_group=None if self._leads else 0,
            )

    def _line(self, seconds: float) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._left:
            ready, _, _ = select.select([self._process.stdout], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGUSR1)
                time.sleep(_DUMPED)
                said = self.said()
                self.kill()
                raise Wrong(f"no answer in {seconds:.0f} seconds; it was at:\n{said}")
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            if not part:
                code, said = self._process.wait(), self.said()
                self.kill()
                raise Wrong(f"the process died with {code}:\n{said}")
            self._left += part
        line, self._left = self._left.split(b"\n", 1)
        found: dict[str, Any] = json.loads(line)
        return found


def _called(request: dict[str, Any]) -> dict[str, Any]:
    module, name = request["call"].split(":")
    try:
        return {"value": getattr(importlib.import_module(module), name)(*request["args"])}
    except Skipped as raised:
        return {"skipped": str(raised)}
    except Wrong as raised:
        return {"wrong": str(raised)}
    except Exception:
        return {"wrong": traceback.format_exc()[-6000:]}


def _forked(request: dict[str, Any], out: Any) -> bool:
    """Call in a fork of this process and send the result. Return True in the fork, which then ends."""
    told, tell = os.pipe()
    pid = os.fork()
    # one of the two comes first: the group of a fork identifies processes that it leaves
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)
    if pid == 0:
        os.close(tell)
        os.read(told, 1)  # its id is sent before its answer
        os.close(told)
        _say(out, _called(request))
        return True
    _say(out, {"pid": pid})
    os.close(told)
    os.close(tell)
    _say(out, {"ended": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])})
    return False


def _say(out: Any, answer: dict[str, Any]) -> None:
    out.write(json.dumps(answer).encode() + b"\n")
    out.flush()


def main() -> None:
    import tests.strategies  # noqa: F401 - what every fork needs

    faulthandler.register(signal.SIGUSR1)
    warnings.simplefilter("ignore")
    tempfile.tempdir = None
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of a pipeline is no answer
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if not request["fork"]:
            _say(out, _called(request))
        elif _forked(request, out):
            return


if __name__ == "__main__":
    from tests.storm import worker  # by its own name, so that cases use the same Wrong and Skipped

    worker.main()

"""Run a script in its own process, with a limit for every wait."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

SECONDS = 60  # until a child counts as hanging
SOURCES = Path(__file__).parents[2] / "src"

# If tests run in the background, Ctrl-C is ignored, and child processes inherit that.
FIRST = """\
import faulthandler, signal, sys
faulthandler.dump_traceback_later(50, exit=True)
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
NOISE = ("Exception ignored", "Fatal Python error", "Exception in thread", "cannot schedule", "ResourceWarning")


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    def assert_quiet(self):
        """Check that no thread and no exiting interpreter printed anything."""
        assert [word for word in NOISE if word in self.err] == [], self.err


def start(script, *args):
    """Start the script in a new interpreter that prints a stack dump when it hangs. Its first lines import penstock."""
    lines = FIRST + textwrap.dedent(script)
    environment = dict(os.environ, PYTHONPATH=str(SOURCES), PYTHONUNBUFFERED="1")
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", lines, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def finish(process):
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"the process hangs\n{out}\n{err}") from None
    return Finished(process.returncode, out, err)


def run(script, *args):
    return finish(start(script, *args))


def interrupt_when(process, line):
    """Send SIGINT once the child has printed this line. `finish` handles the rest."""
    while (said := process.stdout.readline().strip()) != line:
        assert said or process.poll() is None, finish(process).err
    process.send_signal(signal.SIGINT)

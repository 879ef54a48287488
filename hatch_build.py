"""What a wheel of penstock, or an editable installation, has built first: its kernels."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):
    """Builds kernels for this machine, or for PENSTOCK_LEVELS, words that `tools/build_kernels.py` knows."""

    def dependencies(self) -> list[str]:
        """The linker of ziglang where the system has none."""
        return [] if shutil.which("cc") else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build them; without them penstock runs its plain versions, and says so."""
        tool = Path(self.root, "tools", "build_kernels.py")
        levels = os.environ.get("PENSTOCK_LEVELS", "").split()
        command = [sys.executable, str(tool), *(["--levels", *levels] if levels else [])]
        if subprocess.run(command, check=False).returncode:
            self.app.display_warning("penstock's kernels could not be built: plain versions, which are slower, serve.")
        elif version == "standard":
            build_data["tag"] = f"py3-none-{_platform()}"
            build_data["pure_python"] = False


def _platform() -> str:
    """The wheel's platform: libraries need of Linux nothing that glibc 2.17 has not."""
    machine = platform.machine()
    name = f"manylinux_2_17_{machine}" if sys.platform == "linux" else sysconfig.get_platform()
    return name.replace("-", "_").replace(".", "_")

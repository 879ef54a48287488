"""Hooks of the build: compile the kernels of a wheel, and give the package index a README whose links work there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# The tag of a wheel by the system that its kernels are for. Of Linux they need nothing that glibc 2.17 has not.
TAGS = {
    "linux-x86_64": "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "linux-aarch64": "manylinux_2_17_aarch64.manylinux2014_aarch64",
    "windows-amd64": "win_amd64",
    "darwin-arm64": "macosx_11_0_arm64",
    "darwin-x86_64": "macosx_11_0_x86_64",
}


class KernelsHook(BuildHookInterface):
    """Builds kernels for this machine, or for all machines of PENSTOCK_SYSTEM, which `tools/build_kernels.py` knows."""

    def dependencies(self) -> list[str]:
        """The linker of ziglang where the system has none."""
        return [] if shutil.which("cc") else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build them; without them penstock runs its plain versions, and says so."""
        sys.path.insert(0, str(Path(self.root, "tools")))
        from build_kernels import BUILT, HERE

        chosen = os.environ.get("PENSTOCK_SYSTEM", "")
        folder = Path(self.root, "build", "kernels", chosen) if chosen else BUILT
        command = [sys.executable, str(Path(self.root, "tools", "build_kernels.py")), "--into", str(folder)]
        if subprocess.run([*command, *(["--system", chosen] if chosen else [])], check=False).returncode:
            if chosen:
                message = f"penstock's kernels could not be built for {chosen}."
                raise RuntimeError(message)
            self.app.display_warning("penstock's kernels could not be built: plain versions, which are slower, serve.")
        elif version == "standard":
            build_data["force_include"][str(folder)] = "penstock/native/built"
            build_data["tag"] = f"py3-none-{TAGS[chosen or HERE]}"
            build_data["pure_python"] = False


class ReadmeHook(MetadataHookInterface):
    """Gives the package index the README, with links to the repository of `[project.urls]`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme`, which pyproject.toml declares as dynamic."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = absolute(text, metadata["urls"]["Repository"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(text: str, repository: str) -> str:
    """Return a page whose relative links lead to files of the repository, and whose images are loaded from there."""

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}[{found[2]}]({repository}/{kind}/main/{found[3]})"

    return re.sub(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)", link, text)

"""The import contracts of pyproject.toml hold, and a breach of it would be seen."""

import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINT_IMPORTS = Path(sysconfig.get_path("scripts")) / "lint-imports"


def lint_imports(root):
    return subprocess.run(
        [LINT_IMPORTS, "--no-logo", "--no-cache"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(root / "src"), "PATH": str(Path(sys.executable).parent)},
    )


def test_imports_go_downwards_only():
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_upward_import_is_caught(tmp_path):
    package = tmp_path / "src" / "penstock"
    (package / "block").mkdir(parents=True)
    (package / "plan").mkdir()
    (package / "__init__.py").touch()
    (package / "errors.py").touch()
    (package / "plan" / "__init__.py").touch()
    (package / "block" / "__init__.py").write_text("import penstock.plan\n")
    begin = "[[tool.importlinter.contracts]]"  # the first contract is that of the packages
    (tmp_path / "pyproject.toml").write_text(begin.join((ROOT / "pyproject.toml").read_text().split(begin)[:2]))
    done = lint_imports(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "penstock.block -> penstock.plan" in done.stdout

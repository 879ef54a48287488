"""What holds for every test: property tests repeat themselves exactly, documentation examples leave no files behind."""

import gc
import importlib.util
import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

gc.disable()  # until all tests are collected: what they are made of stays, and each collection would look at all of it
MOST = 5  # generated cases of a property in `make quick`
# No deadline: on a busy machine it fails tests for being run beside others.
settings.register_profile(
    "default", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("default"), derandomize=False, max_examples=2000)
settings.register_profile("quick", settings.get_profile("default"), max_examples=MOST)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
settings.load_profile(PROFILE)
for backend in ("jax", "torch"):  # of those Keras may have, the quickest to load come first
    if importlib.util.find_spec(backend):
        os.environ.setdefault("KERAS_BACKEND", backend)
os.environ["PENSTOCK_REMEMBER"] = "0"  # what one test's pipeline was tuned to is nothing to another, or to its user

FRAMEWORKS = {
    "to_torch(": "torch",
    "to_jax(": "jax",
    "to_keras(": "keras",
    "import torch": "torch",
    ", torch\n": "torch",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples that call a framework run where it is installed; in `make quick` few cases are generated."""
    for item in items:
        function = getattr(item, "obj", None)
        if PROFILE == "quick" and hasattr(function, "is_hypothesis_test"):
            function = getattr(function, "__func__", function)
            own = function._hypothesis_internal_use_settings
            function._hypothesis_internal_use_settings = settings(own, max_examples=min(own.max_examples, MOST))
        if isinstance(item, pytest.DoctestItem):
            code = "".join(example.source for example in item.dtest.examples)
            for call, module in FRAMEWORKS.items():
                if call in code and importlib.util.find_spec(module) is None:
                    item.add_marker(pytest.mark.skip(reason=f"{module} is not installed"))


def pytest_collection_finish() -> None:
    """What thousands of tests are made of stays to the end: each `gc.collect()` of a test looks at it no more."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _files_of_a_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Prepared data of the person who runs the tests is neither read nor written.

    What examples make with `tempfile` is removed with the other folders of the run.
    """
    folder = tmp_path_factory.getbasetemp() / "tempfile"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_DATA_DIR", str(tmp_path_factory.getbasetemp() / "penstock_datasets"))
        patch.setattr(tempfile, "tempdir", str(folder))
        patch.setenv("TMPDIR", str(folder))
        yield

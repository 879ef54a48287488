"""Functions that keep state or handle exceptions do what is written, also where most of them runs by Block."""

from __future__ import annotations

import linecache
import re
from textwrap import indent
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.trace import parts as cutting

FILES = [ps.io.encode_jpeg(np.full((8, 8, 3), shade, np.uint8)) for shade in range(0, 240, 6)]
BROKEN = [b"no image" if number % 16 == 13 else file for number, file in enumerate(FILES)]


def compiled(body: str) -> dict[str, Any]:
    """The names of a file of its own that holds `function`, and `LOG`, `N` and `WORDS` that it may write into."""
    text = "import contextlib\nLOG, N, WORDS, TOTAL = [], [0], {}, 0\n" + body
    file = f"<{body}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": __name__, "np": np, "ps": ps}
    exec(compile(text, file, "exec"), names)
    return names


def outcome(body: str, source: Any, *, by_block: bool) -> Any:
    """The elements, or the error with its lines in the function; and what the function has written."""
    names = compiled(body)
    options = ps.Options(seed=3)
    options.experimental_optimization.map_vectorization.enabled = by_block
    ds = ps.Dataset.from_tensor_slices(source).map(names["function"]).with_options(options)
    found: list[Any] = []
    try:
        for element in ds:
            found.append([(np.asarray(leaf).dtype, np.asarray(leaf).tolist()) for leaf in element])
    except Exception as error:
        found.append(lines_of(error))
    return found, names["LOG"], names["N"], names["WORDS"], names["TOTAL"], ds


def lines_of(error: BaseException | None) -> Any:
    found = []
    while error is not None:
        trace, lines = error.__traceback__, []
        while trace is not None:
            if trace.tb_frame.f_code.co_filename.startswith("<"):
                lines.append((trace.tb_frame.f_code.co_name, trace.tb_lineno))
            trace = trace.tb_next
        found.append((type(error), str(error), lines))
        error = error.__cause__
    return found


DECODES = "image = ps.image.resize(ps.image.decode_jpeg(content, channels=3), (4, 4)) / 255.0"
HANDLERS = {
    "zeros": f"try:\n    {DECODES}\nexcept ValueError:\n    image = np.zeros((4, 4, 3), np.float32)\nreturn image, 1",
    "logged": f"try:\n    {DECODES}\nexcept ValueError as error:\n    LOG.append(str(error)[:9])\n"
    "    image = np.zeros((4, 4, 3), np.float32)\nreturn image, 1",
    "returns": f"try:\n    {DECODES}\n    return image, 1\nexcept ValueError:\n"
    "    return np.zeros((4, 4, 3), np.float32), 2",
    "returns, and goes on": f"try:\n    {DECODES}\n    return image, int(image[0, 0, 0] * 9)\nexcept ValueError:\n"
    "    LOG.append(3)\nreturn np.zeros((4, 4, 3), np.float32), 2",
    "another error": f"try:\n    {DECODES}\nexcept ValueError as error:\n    raise RuntimeError('bad') from error\n"
    "return image, 1",
    "again": f"try:\n    {DECODES}\nexcept ValueError:\n    LOG.append(len(LOG))\n    raise\nreturn image, 1",
    "finally": f"image = np.zeros((4, 4, 3), np.float32)\ntry:\n    {DECODES}\nexcept ValueError:\n    LOG.append(1)\n"
    "finally:\n    image = image + np.float32(1)\nreturn image, 1",
    "suppressed": "image = np.zeros((4, 4, 3), np.float32)\nwith contextlib.suppress(ValueError):\n"
    f"    {DECODES}\nreturn image, 1",
    "an int": f"try:\n    {DECODES}\n    number = 9 // int(image[0, 0, 0] * 9)\n"
    "except (ValueError, ZeroDivisionError):\n    LOG.append(1)\n"
    "    image, number = np.zeros((4, 4, 3), np.float32), -1\nreturn image, number",
    "an int, returned": f"try:\n    {DECODES}\n    return image, 9 // int(image[0, 0, 0] * 9)\n"
    "except ZeroDivisionError as error:\n    raise RuntimeError(len(LOG)) from error\nfinally:\n    LOG.append(2)",
    "an int and a counter": f"try:\n    {DECODES}\n    N[0] += 1\n    number = 9 // int(image[0, 0, 0] * 9)\n"
    "except (ValueError, ZeroDivisionError):\n    image, number = np.zeros((4, 4, 3), np.float32), N[0]\n"
    "return image, number",
    "and a counter": f"try:\n    {DECODES}\nexcept ValueError:\n    image = np.zeros((4, 4, 3), np.float32)\n"
    "N[0] = N[0] + 1\nreturn image, N[0]",
}


def handling(name: str) -> str:
    return f"def function(content):\n{indent(HANDLERS[name], '    ')}\n"


@pytest.mark.parametrize("files", [FILES, BROKEN], ids=["sound", "broken"])
@pytest.mark.parametrize("name", HANDLERS)
def test_a_handler_runs_for_the_elements_that_raise(name: str, files: list[bytes]) -> None:
    *found, ds = outcome(handling(name), files, by_block=True)
    *plain, _ = outcome(handling(name), files, by_block=False)
    assert found == plain
    if files is FILES and name not in ("an int, returned", "an int and a counter"):  # whose lines cannot run twice
        assert re.search("runs by Block: .*image.decode_resize", ds.explain())


def test_code_after_a_handler_keeps_no_operation_from_whole_blocks() -> None:
    *_, ds = outcome(handling("returns, and goes on"), FILES, by_block=True)
    assert "int(image[0, 0, 0] * 9): it converts a value to a Python number" in ds.explain()
    assert "what follows from it" not in ds.explain()


@pytest.mark.parametrize("modes", ['all="ignore"', 'divide="ignore", invalid="ignore"'])
def test_numpy_warns_where_it_does_as_written(modes: str, recwarn: pytest.WarningsRecorder) -> None:
    lines = f"with np.errstate({modes}):\n    ratio = image / (image - image[0, 0])\nreturn ratio, 1"
    source = np.random.default_rng(0).random((300, 4, 4, 3))
    for body in (lines, lines.replace("return", "image = image / (image - image)\nreturn")):
        recwarn.clear()
        text = f"def function(image):\n{indent(body, '    ')}\n"
        *found, ds = outcome(text, source, by_block=True)
        warned = {str(warning.message) for warning in recwarn}
        recwarn.clear()
        *plain, _ = outcome(text, source, by_block=False)
        np.testing.assert_equal(found, plain)
        assert warned == {str(warning.message) for warning in recwarn}
        assert bool(warned) == (body != lines)
        assert "runs by Block: " in ds.explain()
        assert "called per element" not in ds.explain()


def test_numpy_raises_where_it_is_asked_to() -> None:
    body = "def function(x):\n    with np.errstate(all='raise'):\n        return x / (x - 30), 1\n"
    *found, _ = outcome(body, np.arange(50.0), by_block=True)
    *plain, _ = outcome(body, np.arange(50.0), by_block=False)
    assert found == plain
    assert found[0][-1][0][0] is FloatingPointError


def test_a_helper_may_handle_exceptions() -> None:
    body = (
        f"def load(content):\n{indent(HANDLERS['logged'], '    ')}\ndef function(content):\n    return load(content)\n"
    )
    *found, ds = outcome(body, BROKEN, by_block=True)
    *plain, _ = outcome(body, BROKEN, by_block=False)
    assert found == plain
    assert len(found[1]) == 2
    assert "runs by Block: image.decode_resize" in ds.explain()


COUNTS = {
    "helper and counter": "N[0] = N[0] + 1\nreturn flipped(image), label",
    "counter afterwards": "image = flipped(image)\nN[0] = N[0] + 1\nreturn image, label",
    "counter is read": "N[0] = N[0] + 1\nreturn flipped(image), label + N[0]",
    "vocabulary": "return flipped(image), WORDS.setdefault(int(label) % 5, len(WORDS))",
    "list that grows": "LOG.append(int(label))\nreturn flipped(image), len(LOG)",
    "global": "global TOTAL\nTOTAL = TOTAL + 1\nreturn flipped(image), label + TOTAL",
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_function_that_keeps_state_is_cut_a_few_times_only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cuts: list[Any] = []
    parts = cutting.parts

    def counted(*arguments: Any) -> Any:
        cuts.append(arguments)
        return parts(*arguments)

    monkeypatch.setattr(cutting, "parts", counted)
    text = "def flipped(image):\n    return ps.image.flip_up_down(ps.image.random_hue(image, 0.1)) / 255.0\n"
    body = f"{text}def function(image, label):\n{indent(COUNTS[name], '    ')}\n"
    source = np.random.default_rng(0).integers(0, 256, (60, 6, 6, 3), np.uint8), np.arange(60)
    *found, _ = outcome(body, source, by_block=True)
    assert 1 <= len(cuts) <= 3
    *plain, _ = outcome(body, source, by_block=False)
    assert found == plain


def test_what_costs_little_is_called_as_it_is_written() -> None:
    body = "def function(x):\n    q = x * 2 + 1\n    LOG.append(int(x))\n    return q, q\n"
    *found, ds = outcome(body, np.arange(50), by_block=True)
    *plain, _ = outcome(body, np.arange(50), by_block=False)
    assert found == plain
    assert "runs per element" in ds.explain()


def test_explain_says_that_a_graph_is_not_run_if_its_results_were_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.physical.vectorise.equal_blocks", lambda fast, plain: False)
    ds = ps.Dataset.range(20).map(lambda x: x * 2)
    assert "runs by Block: multiply" in ds.explain()
    assert list(ds) == list(range(0, 40, 2))
    assert "runs per element: as a Block its result was another" in ds.explain()


def test_explain_says_that_a_part_is_not_run_by_block_if_its_results_were_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.physical.parted.same_in_all", lambda fast, plain: False)
    text = "def flipped(image):\n    return ps.image.flip_up_down(ps.image.random_hue(image, 0.1)) / 255.0\n"
    body = f"{text}def function(image, label):\n{indent(COUNTS['list that grows'], '    ')}\n"
    source = np.zeros((20, 6, 6, 3), np.uint8), np.arange(20)
    *_, ds = outcome(body, source, by_block=True)
    assert "runs per element: a part of it returned another result for a Block" in ds.explain()


class Loads:
    """Its method handles exceptions."""

    def load(self, x: Any) -> Any:
        try:
            return x * 2
        except TypeError:
            return x


def test_a_handler_that_stays_is_not_run_on_stand_ins() -> None:
    """A function found in a module or an object is called as it is there: what calls it is not traced."""
    load = compiled("def load(x):\n    try:\n        return x * 2\n    except TypeError:\n        return x\n")["load"]
    module = ModuleType("a_module")
    vars(module)["load"] = load
    for place, call in ((load, "place(x)"), (module, "place.load(x)"), (Loads(), "place.load(x)")):
        names = compiled(f"def function(x):\n    return {call}\n")
        names["place"] = place
        ds = ps.Dataset.from_tensor_slices(np.arange(20)).map(names["function"])
        assert ("runs by Block" in ds.explain()) == (place is load)
        assert list(ds) == list(range(0, 40, 2))


def test_a_method_that_is_mapped_may_handle_exceptions() -> None:
    ds = ps.Dataset.from_tensor_slices(np.arange(20)).map(Loads().load)
    assert "runs by Block: multiply" in ds.explain()
    assert list(ds) == list(range(0, 40, 2))

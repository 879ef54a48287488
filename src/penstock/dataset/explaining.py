"""Methods of `Dataset` that tell about it: a look at it in a shell and in a notebook, its plan, and what it costs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.dataset.base import Base, inner
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.plan.node import check_int
from penstock.plan.ops import Take

if TYPE_CHECKING:
    from penstock.profiler.analysis.figures import Analysis
    from penstock.profiler.analysis.prediction import Prediction
    from penstock.profiler.live.notebook import Notebook
    from penstock.profiler.placement.placing import Placing
    from penstock.profiler.views.plan import Plot
    from penstock.viz import Grid, Rows

_FORMATS = ("text", "json")
_SECONDS = 5.0  # that an analysis runs


class Explaining(Base):
    """Mixed into `Dataset`."""

    _analysis: Analysis | None = None  # the latest

    if TYPE_CHECKING:  # of the classes beside this one

        def _placed(self) -> Placing: ...

    def explain(
        self,
        *,
        analyze: bool = False,
        seconds: float = _SECONDS,
        consumer_seconds: float = 0.0,
        format: str = "text",  # noqa: A002 - what others call it
    ) -> str:
        """The plan, what was rewritten and why it is equal, how each stage runs, and advice where there is any.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(8).map(lambda x: x + 1).skip(0)
        >>> print(ds.explain())  # doctest: +ELLIPSIS
        plan (8 elements)
          skip(0) ...

        With `analyze` it also runs: first in one thread, a quarter as long, then as `iter(ds)` does, for some
        `seconds`, in a loop that takes `consumer_seconds` for each element. A data set that ends before is run again,
        its caches empty again; a call that is under way (of a function, of a generator) is not cut short. Added is,
        for each step, who runs it, elements a second, CPU and wall time of an element, how much of the time its
        threads wait for elements and for room, and the bytes they hold; then the bottleneck, and what would help, by
        how much. The figures stay with this object for `what_if`. These passes are no epochs: they fill no cache of
        the data set, and count for no other.

        >>> print(ds.explain(analyze=True, seconds=0.1))  # doctest: +ELLIPSIS
        plan (8 elements)
        ...
        bottleneck
        ...

        `format="json"` gives the same as a JSON text, a dict with

        - `dataset` (its name), `cardinality`, `plan` (`step`, `kind`, `where`, `inputs`), `rewritten` (`rule`,
          `before`, `after`, `because`), `runs_as`, `advice` (`code`, `concern`, `step`, `where`, `message`, `mended`,
          `why`), and `autocache`, lines of text, if `Options.autocache` is set;
        - `plain_versions`, with the analysis: in place of which kernels slower versions served, and why;
        - `analysis`, if asked for: what it was (`seconds`, `elements`, `elements_per_second`, `failed`, `passes`,
          `cpus`, `cpu_used`, `consumer_waited`, …), `steps` (`name`, `label`, `where`, `lane`, `executor`,
          `parallelism`, `elements_per_second`, `cpu_us`, `wall_us`, `waiting_us`, `lock_us`, `cpu_share`, `bytes`, …),
          `lanes` (threads that do the same: `name`, `consumer`, `workers`, `executor`, `starved`, `full`, `busy`,
          `held_bytes`, …), `bounds`, `bottleneck` (`kind`, `step`, `sentence`), `second_epoch` (`step`: the cache that
          was filled meanwhile, `ratio`, `bottleneck`; or None) and `advice` (`sentence`, `ratio`, and `what_if`: its
          arguments).

        >>> import json
        >>> sorted(json.loads(ds.explain(format="json")))
        ['advice', 'cardinality', 'dataset', 'plan', 'rewritten', 'runs_as']

        With `Options.autocache` it also says where a cache was put, or why none was, what that saves by estimate, and
        whether the cache is full.

        Raises InvalidArgumentError for another format, for seconds that are not above 0, and for either number of
        seconds without `analyze`.
        """
        if format not in _FORMATS:
            message = f"format must be one of {', '.join(map(repr, _FORMATS))}, got format={format!r}."
            raise InvalidArgumentError(message)
        _check_analyze(analyze, seconds, consumer_seconds)
        analysis = self._analysed(seconds, consumer_seconds) if analyze else None
        placing = None if self._options.autocache is None else self._placed()
        running, placed = (self._plan, ()) if placing is None else (placing.shown(), placing.told())
        if format == "json":
            from penstock.profiler.explanation import explanation_json

            return explanation_json(self._plan, self._options, running, analysis, placed)
        from penstock.profiler.explanation import Text, explanation

        text = explanation(self._plan, self._options, running, placed)
        if analysis is None:
            return Text(text)
        from penstock.native.library import plain_versions
        from penstock.profiler.analysis.report import report

        parts, plain = [text, report(analysis)], plain_versions()
        if plain:
            parts += ["plain versions, which are slower, served in place of kernels", *(f"  {each}" for each in plain)]
        return Text("\n".join(parts))

    def what_if(
        self,
        *,
        cores: float | None = None,
        cached_after: str | None = None,
        faster: Mapping[str, float] | None = None,
        without: str | Sequence[str] = (),
        consumer_seconds: float | None = None,
        executor: Mapping[str, str] | None = None,
        parallelism: Mapping[str, int] | None = None,
        prefetch: bool = False,
        analysis: Analysis | None = None,
    ) -> Prediction:
        """How many elements a second there would be, as far as can be told from what the steps cost now.

        Steps go by their kind and number, counted from the source, as `explain(analyze=True)` prints them.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(500).map(lambda x: sum(i * int(x) for i in range(500))).batch(10)
        >>> text = ds.explain(analyze=True, seconds=0.2)
        >>> ds.what_if(faster={"map#1": 2.0}).ratio > 1
        True

        - `cores`: on so many; AUTOTUNE goes with them, a number that you gave stays.
        - `cached_after="map#2"`: with a memory cache behind that step, from the second epoch on.
        - `faster={"map#1": 2.0}`: with a step twice as fast.
        - `without="map#2"`: without the cost of a step, or of several.
        - `consumer_seconds`: with a loop that takes as long for an element (a batch).
        - `executor={"map#1": "process"}`: with a function in worker processes, in threads, or "inline".
        - `parallelism={"map#1": 4}`: with as many calls at once, or as AUTOTUNE would choose.
        - `prefetch=True`: with `prefetch(AUTOTUNE)` at the end, so that the loop's thread makes nothing itself.

        The answer has `elements_per_second`, `before`, their `ratio`, the `bottleneck` then, and `sentences` on what
        was taken for granted. It follows from a model: the rate is the least that any part of the machine allows.
        These are the loop's thread; the thread that pulls for the workers of a parallel step, one element after the
        other; those workers; all cores; Python's lock. Each allows as many elements a second as fit into one. Time
        that the model does not account for now (locks of your own, memory, other programs) is taken to grow and shrink
        with the rest.

        Measured is once, by `explain(analyze=True)`, or now for five seconds; or give the `analysis` of an earlier
        answer.

        Raises InvalidArgumentError for a step that is not there, with the names of those that are, and for changes
        that exclude each other; FailedPreconditionError if no element came while measuring.
        """
        from penstock.profiler.analysis.changes import Changes
        from penstock.profiler.analysis.prediction import predicted

        change = Changes(
            cores=cores,
            cached_after=cached_after,
            faster={} if faster is None else faster,
            without=without,
            consumer_seconds=consumer_seconds,
            executor={} if executor is None else executor,
            parallelism={} if parallelism is None else parallelism,
            prefetch=prefetch,
        )
        if analysis is None:
            analysis = self._analysis or self._analysed(_SECONDS, 0.0)
        return predicted(analysis, change)

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        analyze: bool = False,
        seconds: float = _SECONDS,
        consumer_seconds: float = 0.0,
    ) -> Plot:
        """The plan as a picture: its steps as written and as they run, what was rewritten, and what was measured.

        A notebook shows it. `path="plan.svg"` writes it too, as does `save` of what is returned; a name that ends in
        .png gives a PNG, which needs OpenCV. The SVG has colours for a light and for a dark page.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(8).map(lambda x: x + 1).batch(2)
        >>> ds.plot()
        <Plot of 3 steps, ...>

        With `analyze` it also runs the data set, as `explain(analyze=True)` does and for as long, and draws what each
        step gives a second, its share of the work, and which one holds the others back. Without, it draws the figures
        of the latest such run of this object, if there was one; else nothing is run.

        Raises InvalidArgumentError for a path that ends otherwise, and where `explain` does.
        """
        from penstock.profiler.views.plan import plot

        _check_analyze(analyze, seconds, consumer_seconds, "plot")
        made = plot(self._plan, self._options, self._analysed(seconds, consumer_seconds) if analyze else self._analysis)
        if path is not None:
            made.save(path)
        return made

    def profile(self, logs: str | os.PathLike[str] = "logs", *, steps: int | None = None) -> str:
        """Record one pass, or its first `steps` elements (batches), and return the verdict in words.

        The report is in a folder of its own in `logs`; see `penstock.profiler.Profiler`.

        >>> import tempfile
        >>> import penstock as ps
        >>> ds = ps.Dataset.range(1000).map(lambda x: x + 1).batch(10)
        >>> with tempfile.TemporaryDirectory() as logs:
        ...     text = ds.profile(logs, steps=50)
        >>> "bound" in text
        True
        """
        from itertools import islice

        from penstock.profiler.recording.profiler import Profiler
        from penstock.profiler.recording.store import Recorded
        from penstock.profiler.views.write import summary

        if steps is not None:
            check_int("steps", steps, least=1, hint="How many elements (batches) to take.")
        with Profiler(logs) as profiler, iter(self) as elements:  # type: ignore[call-overload]
            for _ in islice(elements, steps):
                pass
        told = summary(Recorded(profiler.folder))
        return "\n".join(each["verdict"]["text"] for each in told["pipelines"])

    def monitor(self, *, seconds: float = 1.0) -> Notebook:
        """Show, in a notebook, what the passes over this data set are at, as a table that is refreshed.

        What is shown is what `penstock top` shows of a process: the steps with their rates, waiting, CPU, what their
        buffers hold, the step that holds the others back, and the verdict. Passes that begin from now on are seen.
        `seconds` lie between two looks; `stop()` of what is returned ends them, and so does the end of a `with` block.

            table = ds.monitor()
            for batch in ds: ...
            table.stop()

        Raises FailedPreconditionError outside of a notebook, and InvalidArgumentError for `seconds` out of 0.1 to 3600.
        """
        from penstock.profiler.live.notebook import Notebook

        return Notebook(self._plan, seconds)

    def _analysed(self, seconds: float, consumer_seconds: float) -> Analysis:
        from penstock.profiler.analysis.analyse import analyse

        self._analysis = analyse(self._plan, self._options, seconds, consumer_seconds, inner)
        return self._analysis


def _check_analyze(analyze: Any, seconds: Any, consumer_seconds: Any, method: str = "explain") -> None:
    if not isinstance(analyze, bool):
        message = f"analyze must be True or False, got analyze={analyze!r} ({type(analyze).__name__})."
        raise InvalidTypeError(message, hint=f"{method}(analyze=True) runs the data set for some seconds.")
    for name, value, left_out in (("seconds", seconds, _SECONDS), ("consumer_seconds", consumer_seconds, 0.0)):
        if not analyze and value != left_out:
            message = f"{name} is for a data set that is run and measured, got {name}={value!r} without analyze=True."
            raise InvalidArgumentError(message, hint=f"Write {method}(analyze=True, {name}={value!r}).")


class Showing(Base):
    """Mixed into `Dataset`."""

    def head(self, n: int = 5) -> list[Any]:
        """The first `n` elements as a list, or all if there are fewer.

        >>> import penstock as ps
        >>> ps.Dataset.range(10).batch(4).head(2)
        [array([0, 1, 2, 3]), array([4, 5, 6, 7])]

        It is a pass of its own over `take(n)`: shuffles make the order of the first epoch, and the next pass of the
        data set is the epoch that it would have been.

        Raises InvalidArgumentError for an `n` below 0.
        """
        return list(self._then(Take, count=check_int("n", n, least=0, hint="The number of elements to look at.")))

    def show(self, n: int = 9, **settings: Any) -> Grid | Rows:
        """Show `n` examples: pictures as a grid with their labels, anything else as a table.

        These are the first `n` examples. An `ImageFolderDataset` is sorted by class: its classes are shown in turn,
        unless a step such as `shuffle` or `take` chooses elements.

        In a notebook the result shows itself; in a shell a table does too. A grid is a PNG: `path="pets.png"` writes
        it, as does `save` of what is returned. Batches of pictures are taken apart. Further settings are those of
        `penstock.viz.grid`: `label_names`, `image`, `label`, `columns`, `size`.

        >>> import penstock as ps
        >>> ps.Dataset.from_tensor_slices({"name": ["Rex", "Tom"], "age": [7, 2]}).show()
        name  age
        Rex     7
        Tom     2

        It is a pass of its own, as that of `head`. Raises InvalidArgumentError for an `n` below 1, and
        where a picture is asked for and there is none; MissingDependencyError for pictures without OpenCV.
        """
        from penstock import viz
        from penstock.viz.parts import classes_in_turn

        n = check_int("n", n, least=1, hint="The number of examples to look at.")
        return viz.show(self._with(classes_in_turn(self._plan))._then(Take, count=n), n, **settings)

    def _repr_html_(self) -> str:
        """What a notebook shows: what an element is, and the plan. Nothing is run."""
        import html

        from penstock.plan.node import tree
        from penstock.viz.parts import leaves

        spec, head, rows = self._plan.spec, repr(self), ""
        if spec is not None:
            head = head.replace(f": {spec!r},", ":")  # it stands below, a line for each value
            cell = '<td style="text-align: left"><code>{}</code></td>'
            for name, leaf in leaves(spec):
                rows += f"<tr>{cell.format(html.escape(name or 'element'))}{cell.format(html.escape(repr(leaf)))}</tr>"
        parts = (
            f"<code>{html.escape(head)}</code>",
            f"<table>{rows}</table>" if rows else "",
            html.escape(tree(self._plan)),
        )
        return "<div>{}{}<pre>{}</pre></div>".format(*parts)

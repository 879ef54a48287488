"""Methods of `Dataset` that show it: elements in a shell or notebook, the plan, and its cost."""

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
_SECONDS = 5.0  # duration of a measurement


class Explaining(Base):
    """Methods for explanations and measurements."""

    _analysis: Analysis | None = None  # the result of the latest measurement

    if TYPE_CHECKING:  # defined by other base classes of Dataset

        def _placed(self) -> Placing: ...

    def explain(
        self,
        *,
        analyze: bool = False,
        seconds: float = _SECONDS,
        consumer_seconds: float = 0.0,
        format: str = "text",  # noqa: A002 - what others call it
    ) -> str:
        """Explain the plan: its steps, the rewrites and their reasons, the way each stage runs, and advice.

        With `analyze=True`, penstock also runs the data set: first in one thread for a quarter of the time, then as
        `iter(ds)` does. The report then has, for each step, its threads or processes, elements per second, CPU and wall
        time per element, waiting times and memory; the bottleneck; and the changes that would help. A data set that
        ends earlier is run again, with empty caches. These iterations are not epochs and fill no cache. The figures
        stay with this object for `what_if`.

        Args:
            analyze: If True, run and measure the data set. Default: False.
            seconds: Duration of the measurement in seconds, larger than 0. A function call that has started is not
                interrupted.
            consumer_seconds: Seconds that the consumer takes for each element, as your training step does. Default: 0.
            format: `"text"`, or `"json"` for a string with a JSON object. Its keys are `dataset`, `cardinality`,
                `plan`, `rewritten`, `runs_as` and `advice`; `autocache` with `Options.autocache`; and `analysis` and
                `plain_versions` with `analyze=True`.

        Returns:
            The explanation. A string that a notebook shows as text.

        Raises:
            InvalidArgumentError: If `format` is another string, if `seconds` is not larger than 0, or if a number of
                seconds is passed without `analyze=True`.

        Example:
            >>> import json, penstock as ps
            >>> ds = ps.Dataset.range(8).map(lambda x: x + 1).skip(0)
            >>> print(ds.explain())  # doctest: +ELLIPSIS
            plan (8 elements)
              skip(0) ...
            >>> print(ds.explain(analyze=True, seconds=0.1))  # doctest: +ELLIPSIS
            plan (8 elements)
            ...
            bottleneck
            ...
            >>> sorted(json.loads(ds.explain(format="json")))
            ['advice', 'cardinality', 'dataset', 'plan', 'rewritten', 'runs_as']
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
        from penstock.profiler.explanation import ExplanationText, explanation

        text = explanation(self._plan, self._options, running, placed)
        if analysis is None:
            return ExplanationText(text)
        from penstock.native.library import plain_versions
        from penstock.profiler.analysis.report import report

        parts, plain = [text, report(analysis)], plain_versions()
        if plain:
            parts += ["plain versions, which are slower, served in place of kernels", *(f"  {each}" for each in plain)]
        return ExplanationText("\n".join(parts))

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
        """Predict the elements per second after a change.

        The prediction is a model of measured figures: those of the last `explain(analyze=True)` of this object, or of a
        measurement of five seconds. The rate is the smallest rate that any resource allows: the thread of the consumer,
        the thread that feeds the workers of a parallel step, these workers, all cores, and the GIL. Steps are named by
        their kind and number, counted from the source, as `explain(analyze=True)` prints them.

        Args:
            cores: Number of cores. `ps.AUTOTUNE` uses them; a number of calls that you have set stays the same.
            cached_after: Step after which a cache in memory is added, such as `"map#2"`. The prediction is for the
                second epoch.
            faster: Speed-up of steps: `{"map#1": 2.0}` makes one step twice as fast.
            without: Step or steps that cost nothing.
            consumer_seconds: Seconds that the consumer takes for each element.
            executor: Executor of steps: `{"map#1": "process"}`, or `"thread"` or `"inline"`.
            parallelism: Number of calls of steps at the same time: `{"map#1": 4}`. `ps.AUTOTUNE` is possible.
            prefetch: If True, `prefetch(ps.AUTOTUNE)` is added at the end.
            analysis: The `analysis` of an earlier prediction, instead of the last measurement.

        Returns:
            A prediction with `elements_per_second`, `before`, their `ratio`, the new `bottleneck`, and `sentences`
            about its assumptions.

        Raises:
            InvalidArgumentError: If there is no step of a given name, or if changes exclude each other.
            FailedPreconditionError: If the measurement yields no element.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(500).map(lambda x: sum(i * int(x) for i in range(500))).batch(10)
            >>> text = ds.explain(analyze=True, seconds=0.2)
            >>> ds.what_if(faster={"map#1": 2.0}).ratio > 1
            True
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
        """Draw the plan: its steps as written and as they run, the rewrites, and measured figures.

        The SVG has colours for light and for dark pages.

        Args:
            path: File to write. The name ends in `.svg`, or in `.png`, which needs OpenCV. By default, no file is
                written.
            analyze: If True, run the data set as `explain(analyze=True)` does, and draw the elements per second and the
                share of each step, and the bottleneck. If False, draw the figures of the last such run of this object,
                if there was one.
            seconds: As in `explain`.
            consumer_seconds: As in `explain`.

        Returns:
            A figure that a notebook shows. Its method `save` writes it to a file.

        Raises:
            InvalidArgumentError: If `path` has another ending, or as in `explain`.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(8).map(lambda x: x + 1).batch(2)
            >>> ds.plot()
            <Plot of 3 steps, ...>
        """
        from penstock.profiler.views.plan import plot

        _check_analyze(analyze, seconds, consumer_seconds, "plot")
        made = plot(self._plan, self._options, self._analysed(seconds, consumer_seconds) if analyze else self._analysis)
        if path is not None:
            made.save(path)
        return made

    def profile(self, logs: str | os.PathLike[str] = "logs", *, steps: int | None = None) -> str:
        """Record one epoch, and return the verdict: which step is the bottleneck.

        Args:
            logs: Folder in which the recording gets a folder of its own, with a report. See
                `penstock.profiler.Profiler`.
            steps: Number of elements (batches) to record. Default: the whole epoch.

        Returns:
            The verdict as text.

        Raises:
            InvalidArgumentError: If `steps` is smaller than 1.

        Example:
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
        """Show the progress of iterations over this data set in a notebook, as a table that is updated.

        The table has what `penstock top` shows: the rate, waiting time, CPU time and memory of each step, the
        bottleneck and the verdict. It shows iterations that start after this call.

        Args:
            seconds: Seconds between two updates, from 0.1 to 3600. Default: 1.

        Returns:
            A context manager. Its end, or its method `stop`, stops the updates.

        Raises:
            FailedPreconditionError: If the program is not a notebook.
            InvalidArgumentError: If `seconds` is out of range.

        Example:
            >>> table = ds.monitor()  # doctest: +SKIP
            >>> for batch in ds: ...  # doctest: +SKIP
            >>> table.stop()  # doctest: +SKIP
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
    """Methods that show elements."""

    def head(self, n: int = 5) -> list[Any]:
        """Return the first elements as a list.

        The call is an iteration of its own: it uses the order of the first epoch, and the next iteration over this data
        set is the epoch that it would have been without the call.

        Args:
            n: Largest number of elements. Default: 5.

        Returns:
            A list of elements.

        Raises:
            InvalidArgumentError: If `n` is negative.

        Example:
            >>> import penstock as ps
            >>> ps.Dataset.range(10).batch(4).head(2)
            [array([0, 1, 2, 3]), array([4, 5, 6, 7])]
        """
        return list(self._then(Take, count=check_int("n", n, least=0, hint="The number of elements to look at.")))

    def show(self, n: int = 9, **settings: Any) -> Grid | Rows:
        """Show examples: images as a grid with their labels, other elements as a table.

        The call shows the first `n` examples. An `ImageFolderDataset` is sorted by class: it shows its classes in turn,
        unless a step such as `shuffle` or `take` chooses elements. Batches of images are split into their images.

        Args:
            n: Largest number of examples. Default: 9.
            **settings: Keyword arguments of `penstock.viz.grid`: `label_names`, `image`, `label`, `columns`, `size` and
                `path`.

        Returns:
            A grid or a table, which a notebook shows. A grid is a PNG; its method `save` writes it to a file.

        Raises:
            InvalidArgumentError: If `n` is smaller than 1, or if the elements have no image of the given name.
            MissingDependencyError: If the elements have images and OpenCV is not installed.

        Example:
            >>> import penstock as ps
            >>> ps.Dataset.from_tensor_slices({"name": ["Rex", "Tom"], "age": [7, 2]}).show()
            name  age
            Rex     7
            Tom     2
        """
        from penstock import viz
        from penstock.viz.parts import classes_in_turn

        n = check_int("n", n, least=1, hint="The number of examples to look at.")
        return viz.show(self._with(classes_in_turn(self._plan))._then(Take, count=n), n, **settings)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: the spec and the plan. No element is computed."""
        import html

        from penstock.plan.node import tree
        from penstock.viz.parts import leaves

        spec, head, rows = self._plan.spec, repr(self), ""
        if spec is not None:
            head = head.replace(f": {spec!r},", ":")  # the spec is shown below, one line per leaf
            cell = '<td style="text-align: left"><code>{}</code></td>'
            for name, leaf in leaves(spec):
                rows += f"<tr>{cell.format(html.escape(name or 'element'))}{cell.format(html.escape(repr(leaf)))}</tr>"
        parts = (
            f"<code>{html.escape(head)}</code>",
            f"<table>{rows}</table>" if rows else "",
            html.escape(tree(self._plan)),
        )
        return "<div>{}{}<pre>{}</pre></div>".format(*parts)

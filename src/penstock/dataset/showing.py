"""Methods of `Dataset`: a look at it, in a shell and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.dataset.base import Base
from penstock.plan.node import check_int
from penstock.plan.ops import Take

if TYPE_CHECKING:
    from penstock.viz import Grid, Rows


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
        """The first `n` examples to look at: pictures as a grid with their labels, anything else as a table.

        In a notebook the result shows itself; in a shell a table does too. A grid is a PNG: `path="pets.png"` writes
        it, as does `save` of what is returned. Batches of pictures are taken apart. Further settings are those of
        `penstock.viz.grid`: `label_names`, `image`, `label`, `columns`, `size`.

        >>> import penstock as ps
        >>> ps.Dataset.from_tensor_slices({"name": ["Rex", "Tom"], "age": [7, 2]}).show()
        name  age
        Rex     7
        Tom     2

        It is a pass of its own over `take(n)`, as that of `head`. Raises InvalidArgumentError for an `n` below 1, and
        where a picture is asked for and there is none; MissingDependencyError for pictures without OpenCV.
        """
        from penstock import viz

        first = self._then(Take, count=check_int("n", n, least=1, hint="The number of examples to look at."))
        return viz.show(first, n, **settings)

    def _repr_html_(self) -> str:
        """What a notebook shows: what an element is, and the plan. Nothing is run."""
        import html

        from penstock.plan.explain import tree
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

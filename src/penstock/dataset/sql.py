"""experimental.SqlDataset: the rows of a query."""

from __future__ import annotations

import os
from typing import Any

from penstock.block.spec import as_dtype, dtype_name
from penstock.block.structure import flatten
from penstock.dataset.dataset import Dataset
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io.storage import as_path
from penstock.plan.scan import Scan
from penstock.sources.sql import SqlSource

_KINDS = "biuf"


def SqlDataset(driver_name: str, data_source_name: str | os.PathLike[str], query: str, output_types: Any) -> Dataset:
    """The rows that a query gives, as tuples of scalars; `driver_name` is "sqlite".

    `data_source_name` is the path of a database file, or a URI as SQLite has them; it is opened for reading only.
    `output_types` is a tuple with a dtype for every column, or the dtype of the only one:
    integers, floats, bool or bytes. A number takes the type
    that is asked for if that holds its value; bool is whether it is not 0; an integer may become text. Anything else is
    an error, where tf.data has 0 for a NULL, the leading digits of a text, and what is left of a number that does not
    fit.

    >>> import pathlib, sqlite3, tempfile, numpy as np, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.db"
    >>> database = sqlite3.connect(path)
    >>> _ = database.execute("CREATE TABLE pets (name TEXT, age INTEGER)")
    >>> _ = database.execute("INSERT INTO pets VALUES ('Rex', 7), ('Tom', 2)")
    >>> database.commit(), database.close()
    (None, None)
    >>> query = "SELECT name, age FROM pets ORDER BY name"
    >>> list(ps.experimental.SqlDataset("sqlite", path, query, (bytes, np.int32)))
    [(b'Rex', np.int32(7)), (b'Tom', np.int32(2))]

    Each pass runs the query, and so does going on from a checkpoint, which passes over the rows already given: only
    ORDER BY by a unique key makes their order certain. A row that cannot be converted is one element that failed, with
    InvalidTypeError or InvalidArgumentError. Raises NotFoundError, when the pass begins, for a missing database,
    InvalidArgumentError for a query that SQLite refuses or with another number of columns, DataLossError for a damaged
    database; nothing follows these.
    """
    if driver_name != "sqlite":
        message = f'driver_name is "sqlite", got driver_name={driver_name!r}.'
        raise InvalidArgumentError(message, hint="For other databases use from_generator, with the driver's cursor.")
    if not isinstance(query, str):
        message = f"query is a text of SQL, got query={query!r:.60}."
        raise InvalidTypeError(message)
    leaves, structure = flatten(output_types)
    types = tuple(as_dtype(leaf) for leaf in leaves)
    for dtype in types:
        if dtype is not bytes and dtype.kind not in _KINDS:
            message = f"The columns of a query are integers, floats, bool or bytes, got {dtype_name(dtype)}."
            raise InvalidTypeError(message, hint="For example output_types=(bytes, np.int64).")
    if not types:
        message = f"output_types is a tuple with a dtype for each column, got output_types={output_types!r:.60}."
        raise InvalidTypeError(message, hint="A tuple of one has a comma: (np.int64,).")
    source = SqlSource(as_path(data_source_name), query, types, structure)
    return Dataset._of(Scan(source=source))

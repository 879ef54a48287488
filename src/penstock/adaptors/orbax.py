"""An item handler of Orbax for the state of a loader, which writes one file for each process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from penstock.errors import NotFoundError, optional_package


class OrbaxTypes(NamedTuple):
    """The classes, which are derived from classes of Orbax on first use."""

    handler: type
    save: type
    restore: type


@cache
def orbax_types() -> OrbaxTypes:
    """Return the handler, and the arguments that it saves and restores.

    Raises:
        MissingDependencyError: If Orbax is not installed.
    """
    ocp = optional_package("orbax.checkpoint", "penstock.jax", "jax")
    jax = optional_package("jax", "penstock.jax", "jax")

    class CheckpointHandler(ocp.CheckpointHandler):  # type: ignore[misc, name-defined]
        """Handler of Orbax that writes and reads the state of a loader or of an iterator.

        Example:
            >>> handler = penstock.jax.CheckpointHandler()  # doctest: +SKIP
        """

        def save(self, directory: Any, args: Any) -> None:
            _file(jax, directory).write_text(json.dumps(args.item.state_dict()))

        def restore(self, directory: Any, args: Any) -> Any:
            file = _file(jax, directory)
            if not file.exists():
                message = f"The checkpoint has no data set state of process {jax.process_index()}: {file.name}."
                hint = "It is of another number of processes: each part of the data is continued by one of its own."
                raise NotFoundError(message, hint=hint, file=str(file))
            args.item.load_state_dict(json.loads(file.read_text()))
            return args.item

    @ocp.args.register_with_handler(CheckpointHandler, for_save=True)
    @dataclass
    class CheckpointSave(ocp.args.CheckpointArgs):  # type: ignore[misc, name-defined]
        item: Any

    @ocp.args.register_with_handler(CheckpointHandler, for_restore=True)
    @dataclass
    class CheckpointRestore(ocp.args.CheckpointArgs):  # type: ignore[misc, name-defined]
        item: Any

    return OrbaxTypes(CheckpointHandler, CheckpointSave, CheckpointRestore)


def _file(jax: Any, directory: Any) -> Any:
    return directory / f"process_{jax.process_index()}-of-{jax.process_count()}.json"

"""Registration of data sets with a service, under an id."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from penstock.block.structure import flatten
from penstock.dataset.dataset import Dataset
from penstock.delivery.handle import Handle, folder_of
from penstock.delivery.ray_service import PREFIX, RayHandle, named
from penstock.errors import FailedPreconditionError, InvalidTypeError, said
from penstock.plan.fingerprint import fingerprint


def register_dataset(service: str | Handle | RayHandle, dataset: Dataset, dataset_id: str | None = None) -> str:
    """Register a data set with a service, for programs that do not have its code.

    The service keeps the data set as long as its folder exists, also if its dispatcher is restarted.

    Args:
        service: A handle or an address.
        dataset: The data set.
        dataset_id: An id. By default, it depends on the plan, as `Dataset.fingerprint` does: equal data sets have equal
            ids in every process.

    Returns:
        The id.

    Raises:
        InvalidArgumentError: If the id is invalid, or if another process cannot run the data set, such as one with an
            open file.
        FailedPreconditionError: If another data set has the id, or if no service answers.

    Example:
        >>> import penstock as ps
        >>> with ps.service.start(workers=1) as service:
        ...     squares = ps.service.register_dataset(service, ps.Dataset.range(4).map(lambda x: x * x))
        ...     [int(x) for x in ps.service.from_dataset_id(service, squares)]
        [0, 1, 4, 9]
    """
    if not isinstance(dataset, Dataset):
        message = f"register_dataset takes a Dataset, got {type(dataset).__name__}."
        raise InvalidTypeError(message, hint="register_dataset(service, dataset) gives an id for from_dataset_id.")
    options = dataset._options
    digest = fingerprint(dataset._plan, options.seed, options.deterministic)
    name = digest if dataset_id is None else dataset_id
    _ask(service, "register", str(name), digest, pickle.dumps(dataset, protocol=5))
    return str(name)


def from_dataset_id(
    service: str | Handle | RayHandle,
    dataset_id: str,
    job_name: str | None = None,
    *,
    element_spec: Any = None,
    **how: Any,
) -> Dataset:
    """Create a data set of the elements of a registered data set, which the workers of the service compute.

    Args:
        service: A handle or an address.
        dataset_id: The id that `register_dataset` returned.
        job_name: As in `Dataset.distribute`.
        element_spec: Spec of an element. It is compared with the spec of the data set.
        **how: Further arguments of `Dataset.distribute`: `num_consumers`, `consumer_index`, `sharding`, `workers` and
            `max_outstanding`.

    Returns:
        A data set.

    Raises:
        NotFoundError: If no data set has the id.
        InvalidTypeError: If `element_spec` differs.
        FailedPreconditionError: If no service answers, or if a module that the data set needs is missing.

    Example:
        >>> import penstock as ps
        >>> with ps.service.start(workers=1) as service:
        ...     name = ps.service.register_dataset(service, ps.Dataset.range(6).batch(2))
        ...     ds = ps.service.from_dataset_id(service, name, element_spec=ps.TensorSpec((None,), "int64"))
        ...     [batch.tolist() for batch in ds]
        [[0, 1], [2, 3], [4, 5]]
    """
    content, _ = _ask(service, "dataset", str(dataset_id))
    try:
        dataset: Dataset = pickle.loads(content)
    except Exception as error:
        message = f"The data set {dataset_id!r} cannot be set up here: {type(error).__name__}: {said(error)}."
        hint = "Put the modules that its functions import on the sys.path of this process."
        raise FailedPreconditionError(message, hint=hint) from error
    if element_spec is not None:
        _check_spec(element_spec, dataset.element_spec)
    return dataset.distribute(service, job_name, **how)


def _ask(service: str | Handle | RayHandle, *question: Any) -> Any:
    """Return the answer of a service. Raises its last value if that is an error."""
    if isinstance(service, str):
        service = named(service) if service.startswith(PREFIX) else Handle(folder_of(service))
    answer = service.ask(*question)
    error = answer[-1] if isinstance(answer, Sequence) else answer
    if error is not None:
        raise error
    return answer


def _check_spec(wanted: Any, found: Any) -> None:
    if found is None:
        return
    leaves, structure = flatten(wanted)
    other = flatten(found)[1]
    others = structure.flatten(found) if structure.same_as(other) else []
    if len(others) != len(leaves) or any(leaf.relax(its) != leaf for leaf, its in zip(leaves, others, strict=True)):
        message = f"element_spec is {wanted}, and the elements of the registered data set are {found}."
        raise InvalidTypeError(message, hint="Leave it out: the data set knows.")

"""Data sets that a service knows by an id."""

from __future__ import annotations

import pickle
from typing import Any

from penstock.block.structure import flatten
from penstock.dataset.dataset import Dataset
from penstock.delivery.dispatcher import Line
from penstock.delivery.handle import Handle, folder_of
from penstock.delivery.ray_service import PREFIX, RayHandle, named
from penstock.errors import FailedPreconditionError, InvalidTypeError, said
from penstock.plan.fingerprint import fingerprint


def register_dataset(service: str | Handle | RayHandle, dataset: Dataset, dataset_id: str | None = None) -> str:
    """Have a service know a data set, for programs that have no code of it, and return its id.

    The id follows from what the data set does (see `Dataset.fingerprint`), unless you give one: the same data set has
    the same id each time and in every process. The service keeps it as long as its folder is there, also when the
    dispatcher is started again.

    >>> import penstock as ps
    >>> with ps.service.start(workers=1) as service:
    ...     squares = ps.service.register_dataset(service, ps.Dataset.range(4).map(lambda x: x * x))
    ...     [int(x) for x in ps.service.from_dataset_id(service, squares)]
    [0, 1, 4, 9]

    Raises InvalidArgumentError for a data set that holds what belongs to one process, such as an open file, or an id
    that is no name; FailedPreconditionError where another data set has the id, or no service answers.
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
    """The data set that was registered with this id, made by the service's workers.

    `job_name` and what else is given (`num_consumers`, `consumer_index`, `sharding`, `workers`, `max_outstanding`) are
    as in `Dataset.distribute`. The elements' structure is known from the data set; where `element_spec` is given it is
    compared with that.

    >>> import penstock as ps
    >>> with ps.service.start(workers=1) as service:
    ...     name = ps.service.register_dataset(service, ps.Dataset.range(6).batch(2))
    ...     ds = ps.service.from_dataset_id(service, name, element_spec=ps.TensorSpec((None,), "int64"))
    ...     [batch.tolist() for batch in ds]
    [[0, 1], [2, 3], [4, 5]]

    Raises NotFoundError for an id that nobody has registered, InvalidTypeError for another `element_spec`,
    FailedPreconditionError where no service answers, or a module that the data set's functions need is not here.
    """
    content, _ = _ask(service, "dataset", str(dataset_id))
    try:
        dataset: Dataset = pickle.loads(content)
    except Exception as error:
        message = f"The data set {dataset_id!r} cannot be set up here: {type(error).__name__}: {said(error)}."
        hint = "What its functions import must be there for this process, too: a module on sys.path."
        raise FailedPreconditionError(message, hint=hint) from error
    if element_spec is not None:
        _check_spec(element_spec, dataset.element_spec)
    return dataset.distribute(service, job_name, **how)


def _ask(service: str | Handle | RayHandle, *question: Any) -> tuple[Any, ...]:
    if isinstance(service, str) and service.startswith(PREFIX):
        service = named(service)
    if isinstance(service, RayHandle):
        answered = service.ask(*question)
        answer = list(answered) if isinstance(answered, tuple) else [answered]
        if answer[-1] is not None:
            raise answer[-1]
        return tuple(answer)
    folder = service.folder if isinstance(service, Handle) else folder_of(service)
    line = Line(folder)
    try:
        _, *answer = line.ask(*question)
    except (EOFError, OSError) as error:
        message = f"No service answers in {folder!r}: {said(error)}."
        raise FailedPreconditionError(message, hint="`penstock service start` starts one.") from error
    finally:
        line.close()
    if answer[-1] is not None:
        raise answer[-1]
    return tuple(answer)


def _check_spec(wanted: Any, found: Any) -> None:
    if found is None:
        return
    leaves, structure = flatten(wanted)
    other = flatten(found)[1]
    others = structure.flatten(found) if structure.same_as(other) else []
    if len(others) != len(leaves) or any(leaf.relax(its) != leaf for leaf, its in zip(leaves, others, strict=True)):
        message = f"element_spec is {wanted}, and the elements of the registered data set are {found}."
        raise InvalidTypeError(message, hint="Leave it out: the data set knows.")

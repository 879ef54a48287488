"""`tf.errors`: penstock's classes, which have TensorFlow's names."""

from __future__ import annotations

from penstock import errors as _errors
from penstock.compat.teaching import missing_in
from penstock.errors import (
    AlreadyExistsError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
)

__all__ = [
    "AlreadyExistsError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OpError",
    "OutOfRangeError",
    "ResourceExhaustedError",
    "UnimplementedError",
]

OpError = _errors.PenstockError

__getattr__ = missing_in("tf.errors", globals())

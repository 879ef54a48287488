"""`tf.errors`: the classes of penstock that have TensorFlow's names."""

from __future__ import annotations

from penstock import errors as _errors
from penstock.compat.teaching import missing_in

OpError = _errors.PenstockError
for _name in (
    *("AlreadyExistsError", "DataLossError", "DeadlineExceededError", "FailedPreconditionError", "InternalError"),
    *("InvalidArgumentError", "NotFoundError", "OutOfRangeError", "ResourceExhaustedError", "UnimplementedError"),
):
    globals()[_name] = getattr(_errors, _name)

__getattr__ = missing_in("tf.errors", globals())

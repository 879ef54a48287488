"""`tf.config`: functions for the start of a script. The training framework manages the devices."""

from __future__ import annotations

from typing import Any

from penstock.compat.teaching import Namespace, missing_in


def list_physical_devices(device_type: str | None = None) -> list[Any]:
    """Return an empty list, because the training framework knows the devices."""
    return []


list_logical_devices = list_physical_devices


def run_functions_eagerly(run_eagerly: Any) -> None:
    """Do nothing, because functions are Python functions."""


def set_visible_devices(devices: Any, device_type: Any = None) -> None:
    """Do nothing, because penstock uses no devices."""


set_soft_device_placement = run_functions_eagerly
experimental = Namespace(
    "tf.config.experimental",
    list_physical_devices=list_physical_devices,
    set_memory_growth=set_visible_devices,
    set_visible_devices=set_visible_devices,
)
optimizer = Namespace("tf.config.optimizer", set_jit=run_functions_eagerly)
threading = Namespace(
    "tf.config.threading",
    set_inter_op_parallelism_threads=run_functions_eagerly,
    set_intra_op_parallelism_threads=run_functions_eagerly,
)

__getattr__ = missing_in("tf.config", globals())

"""`tf.config`: what the start of a script asks. Devices are those of the framework that trains."""

from __future__ import annotations

from typing import Any

from penstock.compat.teaching import missing_in


def list_physical_devices(device_type: str | None = None) -> list[Any]:
    """None: the framework that trains knows the devices."""
    return []


list_logical_devices = list_physical_devices


def run_functions_eagerly(run_eagerly: Any) -> None:
    """Nothing to do: functions are Python."""


__getattr__ = missing_in("tf.config", globals())

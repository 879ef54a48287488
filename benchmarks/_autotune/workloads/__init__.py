"""The ten workloads, each in its own file."""

from _autotune.workloads.augment import AUGMENT
from _autotune.workloads.jpeg import JPEG
from _autotune.workloads.memory import MEMORY
from _autotune.workloads.parse import PARSE
from _autotune.workloads.python_function import PYTHON_FUNCTION
from _autotune.workloads.skew import SKEW
from _autotune.workloads.sleep import SLEEP
from _autotune.workloads.slow_consumer import SLOW_CONSUMER
from _autotune.workloads.store import STORE
from _autotune.workloads.tiny import TINY

WORKLOADS = (JPEG, AUGMENT, TINY, PARSE, MEMORY, PYTHON_FUNCTION, SLEEP, STORE, SKEW, SLOW_CONSUMER)

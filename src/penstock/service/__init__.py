"""A service of worker processes that several programs of one user share: `Dataset.distribute(service=...)`.

>>> import penstock as ps
>>> with ps.service.start(workers=1) as service:
...     ds = ps.Dataset.range(4).map(lambda x: x * x).distribute(service, job_name="squares")
...     [int(x) for x in ds]
[0, 1, 4, 9]
"""

from penstock.service.registering import from_dataset_id, register_dataset
from penstock.service.saving import distributed_save
from penstock.service.start import Handle, RayHandle, connect, start

__all__ = ["Handle", "RayHandle", "connect", "distributed_save", "from_dataset_id", "register_dataset", "start"]


def __dir__() -> list[str]:
    return sorted(__all__)

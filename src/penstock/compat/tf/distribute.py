"""`tf.distribute`: a strategy with one replica, for code that asks how its data is sharded."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.compat.teaching import Namespace, missing_in
from penstock.compat.tf.scopes import name_scope


@dataclass(frozen=True)
class InputContext:
    """The shard of a process: by default all data."""

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Return the part of a batch that each replica gets."""
        return global_batch_size // self.num_replicas_in_sync


_OTHERS = "Training on several devices is the framework's. Each process reads its part: ds.shard(num_shards, index)."
_strategy = Namespace(
    "tf.distribute.Strategy",
    num_replicas_in_sync=1,
    scope=name_scope,
    experimental_distribute_dataset=lambda dataset, options=None: dataset,
    distribute_datasets_from_function=lambda dataset_fn, options=None: dataset_fn(InputContext()),
)


def get_strategy() -> Namespace:
    """Return the strategy of a single replica."""
    return _strategy


_NAMES = "MirroredStrategy MultiWorkerMirroredStrategy ParameterServerStrategy TPUStrategy OneDeviceStrategy Strategy"
__getattr__ = missing_in("tf.distribute", globals(), dict.fromkeys(_NAMES.split(), _OTHERS))

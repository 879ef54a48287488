"""Dataset: a feature that is a data set of its own."""

from __future__ import annotations

from penstock.catalog.features.sequence import Sequence


class Dataset(Sequence):
    """A series of examples in an example, such as the steps of an episode. It comes back as a `Sequence` does: stacked.

    With tfds it is a `tf.data.Dataset`: `penstock.Dataset.from_tensor_slices` makes one of what comes back here.

    >>> import numpy as np
    >>> steps = Dataset({"reward": np.float32}).encode_example([{"reward": 0.5}], "steps")
    >>> [float(reward) for reward in steps["reward"]]
    [0.5]
    """

    tfds_class = "tensorflow_datasets.core.features.dataset_feature.Dataset"

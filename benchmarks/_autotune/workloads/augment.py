"""Images rotated, blurred, recoloured and converted by OpenCV and numpy, which release the interpreter lock."""

from __future__ import annotations

from typing import Any

from _autotune.setting import Setting, processes, threads
from _autotune.workload import Workload

SIDE, IMAGES, BATCH = 512, 8, 8


def images() -> Any:
    import numpy as np

    return np.random.default_rng(0).integers(0, 256, (IMAGES, SIDE, SIDE, 3), np.uint8)


def augmented(image: Any) -> Any:
    """Augment an image, which takes some milliseconds."""
    import cv2
    import numpy as np

    cv2.setNumThreads(0)
    turn = cv2.getRotationMatrix2D((SIDE / 2, SIDE / 2), float(image[0, 0, 0]) / 8, 1.1)
    turned = cv2.warpAffine(image, turn, (SIDE, SIDE), borderMode=cv2.BORDER_REFLECT_101)
    colours = cv2.cvtColor(cv2.GaussianBlur(turned, (9, 9), 1.5), cv2.COLOR_RGB2HSV)
    colours[..., 1] = cv2.convertScaleAbs(colours[..., 1], alpha=1.2)
    return (cv2.cvtColor(colours, cv2.COLOR_HSV2RGB).astype(np.float32) - 127) / 58


def penstock(setting: Setting) -> Any:
    import penstock as ps

    ds = ps.Dataset.from_tensor_slices(images()).repeat()
    return setting.on(ds.map(augmented, **setting.calls).batch(BATCH))


def tf_data() -> Any:
    import tensorflow as tf

    def augment(image: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(augmented, [image], tf.float32), (SIDE, SIDE, 3))

    ds = tf.data.Dataset.from_tensor_slices(images()).repeat()
    return ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)


AUGMENT = Workload("heavy augment", penstock, tf_data, threads(1, 2, 4, 8) + processes(2), each=BATCH)

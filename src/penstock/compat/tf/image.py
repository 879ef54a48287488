"""`tf.image`: the functions of `penstock.image`, on tensors, with TensorFlow 1's names beside."""

from __future__ import annotations

from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.op import known, op, through
from penstock.compat.teaching import missing_in
from penstock.compat.values import whole

ResizeMethod = ps.image.ResizeMethod

for _name in dir(ps.image):
    if _name not in ("ResizeMethod", "cast", "cutmix", "mixup", "pad"):
        globals()[_name] = through(getattr(ps.image, _name))


def _resized(
    images: Any,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: Any = None,
) -> Any:
    wanted = tuple(int(part) for part in whole(size).reshape(-1).tolist())
    return _resize(images, wanted, method, preserve_aspect_ratio, antialias)


_resize = through(ps.image.resize)
_resized.__name__ = "resize"
known(_resized)
_resized.__doc__ = ps.image.resize.__doc__
resize = resize_images = _resized
resize_image_with_crop_or_pad = resize_with_crop_or_pad = through(ps.image.resize_with_crop_or_pad)
resize_image_with_pad = resize_with_pad = through(ps.image.resize_with_pad)
transpose_image = through(ps.image.transpose)


def resize_bilinear(images: Any, size: Any, align_corners: bool = False, name: Any = None) -> Any:
    """TensorFlow 1's name for `resize`."""
    return resize(images, size)


known(resize_bilinear)


def _overlap(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    top, left = np.maximum(one[:2], others[:, :2]).T
    bottom, right = np.minimum(one[2:], others[:, 2:]).T
    shared = np.maximum(bottom - top, 0) * np.maximum(right - left, 0)
    area = (one[2] - one[0]) * (one[3] - one[1])
    areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    found: np.ndarray = shared / (area + areas - shared)
    return found


@op("image.non_max_suppression", rule=lambda *args, **kwargs: ps.TensorSpec((None,), np.int32))
def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
) -> Any:
    """The numbers of the boxes that are kept: the best ones, none of which overlaps a better one too much."""
    corners = whole(boxes, np.float32)
    corners = np.concatenate(
        [np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])], 1
    )
    marks = whole(scores)
    kept: list[int] = []
    for i in np.argsort(-marks, kind="stable").tolist():
        if len(kept) == int(max_output_size) or marks[i] <= score_threshold:
            break
        if not kept or _overlap(corners[i], corners[kept]).max() <= iou_threshold:
            kept.append(i)
    return np.asarray(kept, np.int32)


@op("image.total_variation")
def total_variation(images: Any) -> Any:
    array = whole(images)
    down = np.abs(array[..., 1:, :, :] - array[..., :-1, :, :]).sum((-3, -2, -1), dtype=array.dtype)
    return down + np.abs(array[..., :, 1:, :] - array[..., :, :-1, :]).sum((-3, -2, -1), dtype=array.dtype)


@op("image.image_gradients")
def image_gradients(image: Any) -> Any:
    array = whole(image)
    down, right = np.zeros_like(array), np.zeros_like(array)
    down[:, :-1] = array[:, 1:] - array[:, :-1]
    right[:, :, :-1] = array[:, :, 1:] - array[:, :, :-1]
    return down, right


MISSING = {
    "ssim": "Use skimage.metrics.structural_similarity, or torchmetrics.",
    "ssim_multiscale": "Use torchmetrics.",
    "sobel_edges": "Use cv2.Sobel in a function of yours.",
    "extract_patches": "Write np.lib.stride_tricks.sliding_window_view(image, (h, w), (0, 1)).",
    "extract_glimpse": "Write tf.image.crop_to_bounding_box.",
    "generate_bounding_box_proposals": "It belongs to a model.",
    "combined_non_max_suppression": "Call tf.image.non_max_suppression for each class.",
    "non_max_suppression_with_scores": "Write tf.image.non_max_suppression, and tf.gather(scores, kept).",
    "non_max_suppression_padded": "Write tf.image.non_max_suppression, and tf.pad.",
    "non_max_suppression_overlaps": "Write tf.image.non_max_suppression.",
    "encode_png": "It is in tf.io.",
    "rgb_to_yiq": "Write tf.tensordot(images, matrix, [[-1], [0]]) with the matrix of the colour space.",
    "yiq_to_rgb": "Write tf.tensordot(images, matrix, [[-1], [0]]) with the matrix of the colour space.",
    "rgb_to_yuv": "Write tf.tensordot(images, matrix, [[-1], [0]]) with the matrix of the colour space.",
    "yuv_to_rgb": "Write tf.tensordot(images, matrix, [[-1], [0]]) with the matrix of the colour space.",
}
__getattr__ = missing_in("tf.image", globals(), MISSING)

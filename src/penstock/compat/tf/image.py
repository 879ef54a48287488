"""`tf.image`: the functions of `penstock.image` for tensors, including TensorFlow 1's names."""

from __future__ import annotations

from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.op import known, named, op, through
from penstock.compat.teaching import missing_in
from penstock.compat.tf import io
from penstock.compat.values import whole

ResizeMethod = ps.image.ResizeMethod

for _name in dir(ps.image):
    if _name not in ("ResizeMethod", "cast", "cutmix", "mixup", "pad"):
        globals()[_name] = getattr(io, _name) if hasattr(ps.io, _name) else through(getattr(ps.image, _name))


@known
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
_described = (ps.image.resize.__doc__ or "").partition("    Example:")[0]  # its example uses an array
resize = resize_images = named(_resized, "resize", _described)
resize_image_with_crop_or_pad = resize_with_crop_or_pad = through(ps.image.resize_with_crop_or_pad)
resize_image_with_pad = resize_with_pad = through(ps.image.resize_with_pad)
transpose_image = through(ps.image.transpose)


@known
def resize_bilinear(images: Any, size: Any, align_corners: bool = False, name: Any = None) -> Any:
    """Call `resize`, under TensorFlow 1's name."""
    return resize(images, size)


def _overlap(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    top, left = np.maximum(one[:2], others[:, :2]).T
    bottom, right = np.minimum(one[2:], others[:, 2:]).T
    shared = np.maximum(bottom - top, 0) * np.maximum(right - left, 0)
    area = (one[2] - one[0]) * (one[3] - one[1])
    areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    return shared / (area + areas - shared)


@op("image.non_max_suppression", rule=lambda *args, **kwargs: ps.TensorSpec((None,), np.int32))
def non_max_suppression(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = float("-inf")
) -> Any:
    """Return the indices of the best boxes, without boxes that overlap a better one too much."""
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


_YIQ = np.array([[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]])
_YUV = np.array([[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]])
_FROM_YIQ = np.array([[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]])
_FROM_YUV = np.array([[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]])


def _recoloured(name: str, matrix: np.ndarray) -> Any:
    def coloured(images: Any) -> Any:
        array = whole(images)
        return np.tensordot(array, matrix.astype(array.dtype), 1)

    call = op(f"image.{name}")(coloured)
    return named(call, name, f"`{name}` of images of three channels, of floats.")


rgb_to_yiq, yiq_to_rgb = _recoloured("rgb_to_yiq", _YIQ), _recoloured("yiq_to_rgb", _FROM_YIQ)
rgb_to_yuv, yuv_to_rgb = _recoloured("rgb_to_yuv", _YUV), _recoloured("yuv_to_rgb", _FROM_YUV)


@op("image.sobel_edges")
def sobel_edges(image: Any) -> Any:
    """Return the vertical and horizontal gradients of images (batch, height, width, channels) along a new last axis."""
    array = np.pad(whole(image), [(0, 0), (1, 1), (1, 1), (0, 0)], "reflect")
    down = array[:, :, :-2] + 2 * array[:, :, 1:-1] + array[:, :, 2:]
    across = array[:, :-2] + 2 * array[:, 1:-1] + array[:, 2:]
    return np.stack([down[:, 2:] - down[:, :-2], across[:, :, 2:] - across[:, :, :-2]], -1)


def _spread(extent: int, size: int, stride: int, rate: int, padding: str) -> tuple[int, int, int]:
    """Return the number of patches along an axis, and the rows of zeros before and after it."""
    reach = (size - 1) * rate + 1
    if padding == "VALID":
        return max(-(-(extent - reach + 1) // stride), 0), 0, 0
    count = -(-extent // stride)
    missing = max((count - 1) * stride + reach - extent, 0)
    return count, missing // 2, missing - missing // 2


@op("image.extract_patches")
def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: Any) -> Any:
    """Return patches of images (batch, height, width, channels), each as one row of numbers along the last axis."""
    array = whole(images)
    (_, height, width, _), (_, down, right, _), (_, tall, wide, _) = sizes, strides, rates
    rows, above, below = _spread(array.shape[1], height, down, tall, padding.upper())
    columns, left, beside = _spread(array.shape[2], width, right, wide, padding.upper())
    padded = np.pad(array, [(0, 0), (above, below), (left, beside), (0, 0)])
    top = np.arange(rows)[:, None] * down + np.arange(height) * tall
    side = np.arange(columns)[:, None] * right + np.arange(width) * wide
    found = padded[:, top[:, None, :, None], side[None, :, None, :]]
    return found.reshape(array.shape[0], rows, columns, height * width * array.shape[3])


MISSING = {
    "ssim": "Use skimage.metrics.structural_similarity, or torchmetrics.",
    "ssim_multiscale": "Use torchmetrics.",
    "extract_glimpse": "Write tf.image.crop_to_bounding_box.",
    "generate_bounding_box_proposals": "It belongs to a model.",
    "combined_non_max_suppression": "Call tf.image.non_max_suppression for each class.",
    "non_max_suppression_with_scores": "Write tf.image.non_max_suppression, and tf.gather(scores, kept).",
    "non_max_suppression_padded": "Write tf.image.non_max_suppression, and tf.pad.",
    "non_max_suppression_overlaps": "Write tf.image.non_max_suppression.",
    "encode_png": "It is in tf.io.",
    "quantize": "Write tf.cast, or tf.image.convert_image_dtype; TensorFlow has it as tf.quantization.quantize.",
}
__getattr__ = missing_in("tf.image", globals(), MISSING)

"""The names of `penstock.image`. This module is imported when one of them is first used."""

from penstock.image.augment import covering, drawing, mixing, policies, random_parts
from penstock.image.augment.covering import *  # noqa: F403 - its `__all__`
from penstock.image.augment.drawing import *  # noqa: F403 - its `__all__`
from penstock.image.augment.mixing import *  # noqa: F403 - its `__all__`
from penstock.image.augment.policies import *  # noqa: F403 - its `__all__`
from penstock.image.augment.random_parts import *  # noqa: F403 - its `__all__`
from penstock.image.colour import adjust, levels, spaces
from penstock.image.colour.adjust import *  # noqa: F403 - its `__all__`
from penstock.image.colour.levels import *  # noqa: F403 - its `__all__`
from penstock.image.colour.spaces import *  # noqa: F403 - its `__all__`
from penstock.image.decode import decode_bmp, decode_image, decode_webp
from penstock.image.dtypes import cast, convert_image_dtype
from penstock.image.geometry import affine, crops, flips, projective
from penstock.image.geometry.affine import *  # noqa: F403 - its `__all__`
from penstock.image.geometry.crops import *  # noqa: F403 - its `__all__`
from penstock.image.geometry.flips import *  # noqa: F403 - its `__all__`
from penstock.image.geometry.projective import *  # noqa: F403 - its `__all__`
from penstock.image.gif import decode_gif
from penstock.image.jpeg.decode import decode_and_crop_jpeg, decode_jpeg
from penstock.image.jpeg.encode import (
    adjust_jpeg_quality,
    encode_jpeg,
    random_jpeg_quality,
    stateless_random_jpeg_quality,
)
from penstock.image.jpeg.libjpeg import extract_jpeg_shape, is_jpeg
from penstock.image.measures import psnr
from penstock.image.png.decode import decode_png
from penstock.image.png.encode import encode_png
from penstock.image.resizing import ResizeMethod, crop_and_resize, resize, resize_with_pad

__all__ = [
    "ResizeMethod",
    "adjust_jpeg_quality",
    "cast",
    "convert_image_dtype",
    "crop_and_resize",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "is_jpeg",
    "psnr",
    "random_jpeg_quality",
    "resize",
    "resize_with_pad",
    "stateless_random_jpeg_quality",
]
__all__ += covering.__all__
__all__ += drawing.__all__
__all__ += mixing.__all__
__all__ += policies.__all__
__all__ += random_parts.__all__
__all__ += adjust.__all__
__all__ += levels.__all__
__all__ += spaces.__all__
__all__ += affine.__all__
__all__ += crops.__all__
__all__ += flips.__all__
__all__ += projective.__all__

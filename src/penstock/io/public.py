"""The names of `penstock.io`. This module is imported when one of them is first used."""

from penstock.image.decode import decode_bmp, decode_image, decode_webp
from penstock.image.gif import decode_gif
from penstock.image.jpeg.decode import decode_jpeg
from penstock.image.jpeg.encode import encode_jpeg
from penstock.image.jpeg.libjpeg import extract_jpeg_shape, is_jpeg
from penstock.image.png.decode import decode_png
from penstock.image.png.encode import encode_png
from penstock.io.batch import parse_columns, parse_example, parse_single_example
from penstock.io.columns import BytesValues, DenseValues, FlatValues, ParsedColumn, PartitionedValues
from penstock.io.compression import TFRecordOptions
from penstock.io.example import (
    Example,
    SequenceExample,
    decode_example,
    decode_sequence_example,
    encode_example,
    encode_sequence_example,
)
from penstock.io.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from penstock.io.plain import parse_single_sequence_example
from penstock.io.tfrecord.writer import TFRecordWriter

__all__ = [
    "BytesValues",
    "DenseValues",
    "Example",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "FlatValues",
    "ParsedColumn",
    "PartitionedValues",
    "RaggedFeature",
    "SequenceExample",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_bmp",
    "decode_example",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_sequence_example",
    "decode_webp",
    "encode_example",
    "encode_jpeg",
    "encode_png",
    "encode_sequence_example",
    "extract_jpeg_shape",
    "is_jpeg",
    "parse_columns",
    "parse_example",
    "parse_single_example",
    "parse_single_sequence_example",
]

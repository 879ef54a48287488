"""Serialized examples: tf.train.Example and SequenceExample, written and parsed without protobuf.

Names and meaning are those of `tf.io` and `tf.train`. Nothing here needs the compiled parser until a batch is parsed.
"""

from penstock.io.batch import parse_example
from penstock.io.blocks import parse_columns
from penstock.io.columns import BytesValues, DenseValues, FlatValues, ParsedColumn, PartitionedValues
from penstock.io.example import Example, decode_example, encode_example
from penstock.io.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from penstock.io.sequence import parse_single_sequence_example
from penstock.io.sequence_example import SequenceExample, decode_sequence_example, encode_sequence_example
from penstock.io.single import parse_single_example

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
    "VarLenFeature",
    "decode_example",
    "decode_sequence_example",
    "encode_example",
    "encode_sequence_example",
    "parse_columns",
    "parse_example",
    "parse_single_example",
    "parse_single_sequence_example",
]

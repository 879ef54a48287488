"""TFRecord files: writing, reading in chunks, an index for random access."""

from penstock.io.tfrecord.chunk import RecordChunk
from penstock.io.tfrecord.index import build_index, read_at
from penstock.io.tfrecord.options import TFRecordOptions
from penstock.io.tfrecord.reader import RecordReader
from penstock.io.tfrecord.writer import TFRecordWriter

__all__ = ["RecordChunk", "RecordReader", "TFRecordOptions", "TFRecordWriter", "build_index", "read_at"]

"""TFRecord files: writing, reading in chunks, an index for random access."""

from penstock.sources.tfrecord.chunk import RecordChunk
from penstock.sources.tfrecord.index import build_index, read_at
from penstock.sources.tfrecord.options import TFRecordOptions
from penstock.sources.tfrecord.reader import RecordReader
from penstock.sources.tfrecord.writer import TFRecordWriter

__all__ = ["RecordChunk", "RecordReader", "TFRecordOptions", "TFRecordWriter", "build_index", "read_at"]

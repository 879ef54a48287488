"""Chunks for tests, of content that is known."""

from penstock.store.chunk import Chunk, checksums


def chunk_of(file, shard, elements, rows, content):
    """The chunk that has this content."""
    return Chunk(file, shard, elements, rows, len(content), tuple(checksums(memoryview(content))))

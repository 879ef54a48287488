"""Chunks with known content, for tests."""

from penstock.store.chunk import Chunk, checksums


def chunk_of(file, shard, elements, rows, content):
    """Return the chunk with this content."""
    return Chunk(file, shard, elements, rows, len(content), tuple(checksums(memoryview(content))))

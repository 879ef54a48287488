"""A byte of a file that is changed for a while."""

from contextlib import contextmanager


@contextmanager
def flipped(path, at, bits):
    """Flip bits of byte number `at` of a file in place. To rewrite the file is slow on some disks."""
    before = path.read_bytes()[at]
    _put(path, at, before ^ bits)
    yield
    _put(path, at, before)


def _put(path, at, byte):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([byte]))

"""A byte of a file that is another for a while."""

from contextlib import contextmanager


@contextmanager
def flipped(path, at, bits):
    """Byte number `at` of a file has these bits changed; the file is not written anew, which some disks are slow at."""
    before = path.read_bytes()[at]
    _put(path, at, before ^ bits)
    yield
    _put(path, at, before)


def _put(path, at, byte):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([byte]))

"""Numbers of bytes, for people."""


def size_text(count: float) -> str:
    """`602 MB` in the units that disks and memory are sold in.

    >>> size_text(512), size_text(1.5e6)
    ('512 bytes', '1.5 MB')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{round(count)} bytes"

"""Numbers of bytes, for people."""


def size_text(count: int) -> str:
    """`602 MB` in the units that disks and memory are sold in."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"

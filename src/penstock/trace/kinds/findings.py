"""What a function does that is surely not meant, given the kind of its elements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A text compared with, or looked up among, `str`: never equal, and nothing says so.

    `compared` is the `str`, or the first of those it is looked up among; `how` the operation as it is written.
    """

    where: str
    how: str
    compared: str

    @property
    def encoded(self) -> bytes:
        return self.compared.encode(errors="replace")

    @property
    def message(self) -> str:
        said = {
            "==": f"compares text with {self.compared!r}, which is never equal",
            "!=": f"compares text with {self.compared!r}, which is always unequal",
            "in": f"looks text up among str ({self.compared!r}), where it is never found",
            "get": f"looks text up in a dict whose keys are str ({self.compared!r}), where it is never found",
            "count": f"counts text in what holds str ({self.compared!r}), where it is never found",
            "[]": f"looks text up in a dict whose keys are str ({self.compared!r}), where it is never found",
            "byte": f"compares one byte of a text, which is a number, with {self.compared!r}",
        }
        return said[self.how]

    @property
    def mended(self) -> str:
        wanted, instead = repr(self.encoded), repr(self.compared)
        if self.how == "byte":
            return f"text[:1] == {wanted}"
        if self.how in ("==", "!="):
            return f"text {self.how} {wanted}, or text.decode() {self.how} {instead}"
        return f"{wanted} in place of {instead}, or text.decode() in place of the text"


@dataclass(frozen=True, slots=True)
class SpelledText:
    """A text in an f-string, in `str()` or in `format()`: it is written as `b'…'`."""

    where: str

    message: str = "writes text into a str, which gives \"b'…'\" with the b and the quotes"
    mended: str = 'f"{text.decode()}"'

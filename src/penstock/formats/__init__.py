"""Files of any format: recognised, opened as a Dataset, converted to another format."""

from penstock.formats.convert import convert
from penstock.formats.opened import Opened, open_dataset
from penstock.formats.recognise import FORMATS, Found, recognise

__all__ = ["FORMATS", "Found", "Opened", "convert", "open_dataset", "recognise"]


def __dir__() -> list[str]:
    return sorted(__all__)

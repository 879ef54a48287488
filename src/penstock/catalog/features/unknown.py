"""UnknownFeature: an entry of `features.json` that nothing here knows."""

from __future__ import annotations

from typing import Any, NoReturn

from penstock.catalog.features.feature import Feature, StoredNest
from penstock.errors import UnimplementedError


class UnknownFeature(Feature):
    """Stands for a feature of a kind that is not known here, until somebody asks for its value."""

    def __init__(self, name: str, entry: dict[str, Any]) -> None:
        self.name, self.tfds_class, self._entry = name, str(entry.get("pythonClassName") or entry.get("type")), entry

    def _refuse(self) -> NoReturn:
        message = f"feature {self.name!r} is a {self.tfds_class}, which is not known here."
        hint = (
            "Read the other features with decoders=PartialDecoding([…]), or whole records, as bytes, with "
            "decoders=SkipDecoding(); or name the class that knows it with features.register(…)."
        )
        raise UnimplementedError(message, hint=hint)

    def encode_example(self, value: Any, name: str) -> Any:
        self._refuse()

    def stored(self) -> StoredNest:
        self._refuse()

    def decode_example(self, stored: Any) -> Any:
        self._refuse()

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in self._entry.items() if key != "pythonClassName"}

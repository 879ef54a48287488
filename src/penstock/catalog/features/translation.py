"""Translation: one text in several languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from typing import Sequence as Listed  # noqa: UP035 - `Sequence` is the feature here

from penstock.catalog.features.feature import Doc
from penstock.catalog.features.features_dict import FeaturesDict
from penstock.catalog.features.sequence import Sequence
from penstock.catalog.features.tensor import Text
from penstock.errors import InvalidArgumentError


class Translation(FeaturesDict):
    """Feature for a text in several languages: a dict from language to text.

    Args:
        languages: The languages.
        doc: A `Documentation`, or a string.

    Example:
        >>> Translation(languages=["en", "fr"]).languages
        ['en', 'fr']
    """

    tfds_class = "tensorflow_datasets.core.features.translation_feature.Translation"

    def __init__(self, languages: Listed[str], *, doc: Doc = None) -> None:
        super().__init__({language: Text() for language in languages}, doc=doc)

    @property
    def languages(self) -> list[str]:
        return sorted(self)

    def to_json(self) -> dict[str, Any]:
        return {"translation": {"languages": self.languages}}


class TranslationVariableLanguages(Sequence):
    """Feature for texts in some of several languages: a dict from language to a text or a list of texts.

    It is read as two sorted vectors, `language` and `translation`.

    Args:
        languages: The languages.
        doc: A `Documentation`, or a string.

    Example:
        >>> feature = TranslationVariableLanguages(languages=["en", "fr"])
        >>> feature.encode_example({"fr": ["une", "un"], "en": "one"}, "words")
        {'language': [b'en', b'fr', b'fr'], 'translation': [b'one', b'un', b'une']}
    """

    tfds_class = "tensorflow_datasets.core.features.translation_feature.TranslationVariableLanguages"

    def __init__(self, languages: Listed[str] | None = None, *, doc: Doc = None) -> None:
        super().__init__({"language": Text(), "translation": Text()}, doc=doc)
        self._languages = sorted(set(languages)) if languages else None

    @property
    def languages(self) -> list[str] | None:
        return self._languages

    def encode_example(self, value: Any, name: str) -> Any:
        if not isinstance(value, Mapping):
            return super().encode_example(value, name)
        strange = set(value) - set(self._languages or value)
        if strange:
            message = f"feature {name!r} has texts in languages that are not its own: {', '.join(sorted(strange))}."
            raise InvalidArgumentError(message, hint=f"Its languages are {', '.join(self._languages or ())}.")
        pairs = [
            (language, text)
            for language, texts in value.items()
            for text in ([texts] if isinstance(texts, str) else texts)
        ]
        return super().encode_example([{"language": a, "translation": b} for a, b in sorted(pairs)], name)

    def to_json(self) -> dict[str, Any]:
        languages = {"languages": self._languages} if self._languages else {}
        return {"translation": {**languages, "variableLanguagesPerExample": True}}

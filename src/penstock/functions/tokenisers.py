"""Tokenisers of libraries, and their batch calls, whose results equal those of calls for single texts.

No library is imported: a program that has a tokeniser has imported its library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from penstock.forked import new_rlock
from penstock.functions.code import words

ATTRIBUTES = words(  # attributes of results that only return stored data
    """ids type_ids tokens words word_ids sequence_ids offsets attention_mask special_tokens_mask overflowing input_ids
    token_type_ids offset_mapping data encodings"""
)
LIBRARIES = frozenset(("sentencepiece", "tiktoken", "tokenizers", "transformers"))
LOCK = new_rlock()  # fast tokenisers of transformers change their state in each call


class SingleCalls(Exception):
    """A batch may have other results than single calls. The text is the reason."""


Many = Callable[[Any, str, list[Any], Mapping[str, Any]], Sequence[Any]]


class Tokeniser(NamedTuple):
    """A class of tokenisers, and its methods that take one text.

    `many(tokeniser, method, texts, options)` returns the results for many texts, or raises SingleCalls.
    """

    name: str
    methods: tuple[str, ...]
    many: Many


def tokeniser_of(value: Any) -> Tokeniser | None:
    """Return the entry of a tokeniser, or None for any other value."""
    kind = type(value)
    library = str(kind.__module__).partition(".")[0]
    if library == "transformers":
        own = [base for base in kind.__mro__ if base.__name__ in ("PreTrainedTokenizerFast", "TokenizersBackend")]
        alike = own and all(getattr(kind, name) is getattr(own[-1], name) for name in ("__call__", "encode"))
        return _TRANSFORMERS if alike else None
    found = _KNOWN.get(f"{library}.{kind.__name__}")
    return found if getattr(sys.modules.get(library), kind.__name__, None) is kind else None


def _threads() -> int:
    if os.environ.get("TOKENIZERS_PARALLELISM", "").lower() in ("false", "0", "off"):  # worker processes set it
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check(tokeniser: Any, *, pads: bool, otherwise: str = "") -> None:
    model = tokeniser.model
    if pads:
        otherwise = "it pads to the longest text of a batch"
    elif getattr(model, "dropout", None) or getattr(model, "alpha", None):
        otherwise = "its model draws random numbers"
    try:
        for part in (tokeniser.normalizer, tokeniser.pre_tokenizer, tokeniser.post_processor):
            part.__reduce_ex__(2)
    except Exception:
        otherwise = "a part of it is written in Python"
    if otherwise:
        raise SingleCalls(otherwise)


def _tokenizers(tokeniser: Any, method: str, texts: list[Any], options: Mapping[str, Any]) -> Any:
    padding = tokeniser.padding
    _check(tokeniser, pads=padding is not None and padding["length"] is None)
    return tokeniser.encode_batch(texts, **options)


def _tiktoken(tokeniser: Any, method: str, texts: list[Any], options: Mapping[str, Any]) -> Any:
    return getattr(tokeniser, f"{method}_batch")(texts, num_threads=_threads(), **options)


def _sentencepiece(tokeniser: Any, method: str, texts: list[Any], options: Mapping[str, Any]) -> Any:
    if options.get("enable_sampling", getattr(tokeniser, "_enable_sampling", False)):
        raise SingleCalls("it samples")
    return getattr(tokeniser, method)(texts, **{"num_threads": _threads(), **options})


def _transformers(tokeniser: Any, method: str, texts: list[Any], options: Mapping[str, Any]) -> Any:
    padding = options.get("padding", False)
    single = {"return_tensors", "return_overflowing_tokens", "sanitize_control_tokens"} & options.keys()
    _check(
        tokeniser.backend_tokenizer,
        pads=padding not in (False, "do_not_pad", "max_length"),
        otherwise=f"it is called with {min(single)}" if single else "",
    )
    batch = tokeniser(texts, **options)
    if method == "encode":
        return batch["input_ids"]
    names, columns = list(batch), zip(*batch.values(), strict=True)
    rows = zip(columns, batch.encodings, strict=True)
    return [type(batch)(dict(zip(names, row, strict=True)), [encoding]) for row, encoding in rows]


_KNOWN = {
    found.name: found
    for found in (
        Tokeniser("tokenizers.Tokenizer", ("encode",), _tokenizers),
        Tokeniser("tiktoken.Encoding", ("encode", "encode_ordinary"), _tiktoken),
        Tokeniser("sentencepiece.SentencePieceProcessor", ("encode", "Encode", "EncodeAsIds"), _sentencepiece),
    )
}
_TRANSFORMERS = Tokeniser("a fast tokeniser of transformers", ("__call__", "encode"), _transformers)

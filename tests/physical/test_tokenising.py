"""Tokenisers called for one text get those of a Block in one call, with the results of single calls."""

from __future__ import annotations

import copy
import functools
import io
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.physical import tokenising

tokenizers = pytest.importorskip("tokenizers")
CORPUS = ["the quick brown fox jumps over the lazy dog", "pack my box with five dozen liquor jugs é 😀"] * 20
TEXTS = ["", " ", "the quick dog", "😀👍🏽 emoji", "[CLS] special [SEP]", "é\x00ü\ufffd", "fox " * 300, *CORPUS[:5]]


def trained(*, template: bool = False) -> Any:
    found = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="[UNK]"))
    found.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[PAD]"], show_progress=False
    )
    found.train_from_iterator(CORPUS, trainer)
    if template:
        found.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
    return found


TOKENISER = trained(template=True)


def parts(encoding: Any) -> dict[str, Any]:
    return {
        "ids": np.array(encoding.ids, np.int32),
        "mask": np.array(encoding.attention_mask, np.int8),
        "offsets": np.array(encoding.offsets, np.int64).reshape(-1, 2),
        "tokens": np.array(encoding.tokens, object).reshape(-1),
    }


def encode(text: bytes) -> dict[str, Any]:
    return parts(TOKENISER.encode(text.decode()))


def strict(text: bytes) -> Any:
    return np.array(TOKENISER.encode(text.decode(errors="surrogateescape")).ids, np.int32)


def pair(text: bytes) -> Any:
    words = text.decode()
    first = TOKENISER.encode(words[:9], words[9:], add_special_tokens=len(words) % 2 == 0)
    return len(first), np.array(first.type_ids, np.int32), np.array(TOKENISER.encode(words).ids, np.int32)


class Holder:
    """A function that keeps its tokeniser."""

    def __init__(self, tokeniser: Any) -> None:
        self.tokeniser = tokeniser

    def __call__(self, text: bytes) -> Any:
        return np.array(self.tokeniser.encode(text.decode()).ids, np.int32)


def with_argument(text: bytes, tokeniser: Any) -> Any:
    return np.array(tokeniser.encode(text.decode()).ids, np.int32)


def helped(text: bytes) -> Any:
    return encode(text)["ids"] + 1


FUNCTIONS = [encode, pair, helped, Holder(TOKENISER), functools.partial(with_argument, tokeniser=TOKENISER)]


def outcomes(ds: Any) -> list[Any]:
    """What a data set gives, an error as its type."""
    found: list[Any] = []
    elements = iter(ds)
    while True:
        try:
            element = next(elements)
        except StopIteration:
            return found
        except Exception as error:
            found.append(type(error).__name__)
        else:
            found.append(plain(element))


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return (value.dtype, value.shape, value.tolist()) if isinstance(value, (np.ndarray, np.generic)) else value


def by_hand(function: Any, texts: list[bytes]) -> list[Any]:
    """The elements of a data set of one text each, which has nothing to put together."""
    return [one for text in texts for one in outcomes(ps.Dataset.from_tensor_slices([text]).map(function))]


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of texts that libraries got in one call."""
    found: list[int] = []
    init = tokenising.TokeniserCalls.__init__

    def counted(self, *given):
        init(self, *given)
        found.append(len(self._answers))

    monkeypatch.setattr(tokenising.TokeniserCalls, "__init__", counted)
    return found


@pytest.mark.parametrize("function", FUNCTIONS, ids=["global", "pair", "helper", "object", "partial"])
def test_results_are_those_of_single_calls(function: Any, batches: list[int]) -> None:
    texts = [text.encode() for text in TEXTS * 5]
    expected = by_hand(function, texts)
    ds = ps.Dataset.from_tensor_slices(texts)
    assert outcomes(ds.map(function)) == expected
    assert outcomes(ds.map(function, num_parallel_calls=ps.AUTOTUNE)) == expected
    assert outcomes(ds.map(function, num_parallel_calls=3)) == expected
    assert max(batches) > 1


def test_processes_give_the_same() -> None:
    texts = [text.encode() for text in TEXTS * 3]
    ds = ps.Dataset.from_tensor_slices(texts)
    assert outcomes(ds.map(encode, num_parallel_calls=2, executor="process")) == by_hand(encode, texts)


@settings(max_examples=30)
@given(
    st.lists(st.one_of(st.text(max_size=40).map(lambda text: text.encode("utf-8", "ignore")), st.binary(max_size=20)),
             min_size=1, max_size=20),
    st.sampled_from([None, 0, 1, 5]),
    st.booleans(),
)  # fmt: skip
def test_generated_texts(texts: list[bytes], length: int | None, fixed: bool) -> None:
    tokeniser = copy.deepcopy(TOKENISER)
    if length is not None:
        tokeniser.enable_truncation(max(length, 2), stride=1 if length > 4 else 0)
    if fixed:
        tokeniser.enable_padding(length=12, pad_id=3)

    def function(text: bytes) -> dict[str, Any]:
        return parts(tokeniser.encode(text.decode()))

    ds = ps.Dataset.from_tensor_slices(texts)
    assert outcomes(ds.batch(1).unbatch().map(function)) == by_hand(function, texts)


def test_a_text_of_one_million_characters_and_bytes_that_are_no_text() -> None:
    texts = [b"the fox", b"\xff\xfe", b"", b"the end"] * 2 + [("dog 😀 " * 170_000).encode(), b"the dog"]
    expected = by_hand(strict, texts)
    assert not isinstance(expected[-2], str)
    assert any(isinstance(one, str) for one in expected)  # lone surrogates are no text for the library
    assert outcomes(ps.Dataset.from_tensor_slices(texts).map(strict)) == expected


def test_a_tokeniser_that_is_changed_between_epochs() -> None:
    tokeniser = copy.deepcopy(TOKENISER)

    def function(text: bytes) -> dict[str, Any]:
        return parts(tokeniser.encode(text.decode()))

    texts = [text.encode() for text in TEXTS * 3]
    ds = ps.Dataset.from_tensor_slices(texts).map(function)
    first = outcomes(ds)
    assert first == by_hand(function, texts)
    tokeniser.enable_truncation(4)
    assert outcomes(ds) == by_hand(function, texts) != first
    tokeniser.add_tokens(["quick dog"])
    assert outcomes(ds) == by_hand(function, texts)
    tokeniser.no_truncation()
    tokeniser.enable_padding()  # to the longest: of one text that is itself
    assert outcomes(ds) == by_hand(function, texts)
    assert "it pads to the longest text of a batch" in ds.explain()


def test_what_draws_or_is_written_in_python_is_called_for_each_text(batches: list[int]) -> None:
    class Spaces:
        def pre_tokenize(self, text: Any) -> None:
            text.split(lambda i, part: [part])

    custom, drawing = copy.deepcopy(TOKENISER), copy.deepcopy(TOKENISER)
    custom.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(Spaces())
    drawing.model.dropout = 0.5
    for tokeniser, why in ((custom, "a part of it is written in Python"), (drawing, "its model draws random numbers")):
        batches.clear()
        ds = ps.Dataset.from_tensor_slices([b"the fox"] * 20).map(Holder(tokeniser))
        assert len(list(ds)) == 20
        assert not any(batches)
        assert why in ds.explain()


SEEN: list[int] = []


def counting(text: bytes) -> Any:
    SEEN.append(len(text))
    return np.array(TOKENISER.encode(text.decode()).ids, np.int32)


def test_a_function_that_somebody_could_see_is_called_once_when_it_is_asked_for(batches: list[int]) -> None:
    ds = ps.Dataset.from_tensor_slices([b"the fox"] * 5).map(counting)
    for number, _ in enumerate(ds, 1):
        assert len(SEEN) == number
    assert not batches
    assert "tokenizers.Tokenizer is called for each text, because the function has side effects" in ds.explain()


def test_no_library_is_imported() -> None:
    from penstock.functions.tokenisers import tokeniser_of

    class Tokenizer:
        __module__ = "tokenizers_of_mine"

    before = set(sys.modules)
    assert tokeniser_of(Tokenizer()) is None
    assert set(sys.modules) == before


def test_fast_tokenisers_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=trained(template=True), pad_token="[PAD]")

    def function(text: bytes) -> dict[str, Any]:
        found = fast(text.decode(), truncation=True, max_length=16, return_offsets_mapping=True)
        return {name: np.array(found[name], np.int64) for name in ("input_ids", "attention_mask")} | {
            "offsets": np.array(found["offset_mapping"]).reshape(-1, 2),
            "more": np.array(fast.encode(text.decode()), np.int64),
        }

    def padded(text: bytes) -> Any:
        return np.array(fast(text.decode(), padding="max_length", truncation=True, max_length=9).input_ids, np.int64)

    texts = [text.encode() for text in TEXTS * 6]
    for each in (function, padded):
        expected = by_hand(each, texts)
        ds = ps.Dataset.from_tensor_slices(texts)
        assert outcomes(ds.map(each)) == expected
        assert outcomes(ds.map(each, num_parallel_calls=4)) == expected
        assert "gets the texts of a Block in one call" in ds.map(each).explain()


def test_tiktoken(batches: list[int]) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([i]): i for i in range(256)} | {b"th": 256, b"the": 257, b" qu": 258}
    encoding = tiktoken.Encoding(
        "own", pat_str=r"\w+|\s+|[^\w\s]+", mergeable_ranks=ranks, special_tokens={"<|e|>": 300}
    )

    def function(text: bytes) -> Any:
        found = encoding.encode(text.decode(errors="surrogateescape"), allowed_special={"<|e|>"})
        return np.array(found, np.int64)

    texts = [text.encode() for text in [*TEXTS, "a<|e|>b"] * 4] + [b"\xff", b"no text \xfe"]
    assert outcomes(ps.Dataset.from_tensor_slices(texts).map(function)) == by_hand(function, texts)
    assert max(batches) > 1


def test_sentencepiece(batches: list[int]) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=40, minloglevel=2
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())

    def function(text: bytes) -> Any:
        return np.array(processor.encode(text.decode(), out_type=int, add_bos=True), np.int64)

    def sampled(text: bytes) -> Any:
        found = processor.encode(text.decode(), enable_sampling=True, alpha=0.1, nbest_size=-1)
        return np.array(found, np.int64)

    texts = [text.encode() for text in TEXTS * 4]
    assert outcomes(ps.Dataset.from_tensor_slices(texts).map(function)) == by_hand(function, texts)
    assert max(batches) > 1
    batches.clear()
    assert len(list(ps.Dataset.from_tensor_slices(texts).map(sampled))) == len(texts)
    assert not any(batches)

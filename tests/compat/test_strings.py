"""Functions of byte strings: on a Block as on each text, and as plain Python says; regular expressions are RE2's."""

import random
import re
import string
from itertools import pairwise

import numpy as np
import pytest

from penstock.block.column import BytesColumn
from penstock.compat import tf
from penstock.compat.tf.hashing import fingerprint64, fingerprints, hash64

PIECES = [b"", b" ", b"\t\x0b", b"a", b"Bc", b",", b"/", b"\x00", b"\xc3\xa9", "¿".encode(), b"\xff", b"\x80", b"\n"]


def texts(seed, count=60):
    rng = random.Random(seed)
    return [b"".join(rng.choices(PIECES, k=rng.randint(0, 9))) for _ in range(count)]


def characters(text):
    starts = [i for i, byte in enumerate(text) if i == 0 or byte & 0xC0 != 0x80]
    return [text[a:b] for a, b in pairwise([*starts, len(text)])]


PLAIN = {
    "lower": (lambda t: tf.strings.lower(t), bytes.lower),
    "upper": (lambda t: tf.strings.upper(t), bytes.upper),
    "strip": (lambda t: tf.strings.strip(t), lambda t: t.strip(b" \t\n\v\f\r")),
    "length": (lambda t: tf.strings.length(t), len),
    "characters": (
        lambda t: tf.strings.length(t, unit="UTF8_CHAR"),
        lambda t: sum(byte & 0xC0 != 0x80 for byte in t),
    ),
    "substr": (lambda t: tf.strings.substr(t, 0, 3), lambda t: t[:3]),
    "rest": (lambda t: tf.strings.substr(t, 0, -1), lambda t: t),
    "substr of characters": (
        lambda t: tf.strings.substr(t, 0, 3, unit="UTF8_CHAR"),
        lambda t: b"".join(characters(t)[:3]),
    ),
    "join": (lambda t: tf.strings.join(["<", t, t], "-"), lambda t: b"<-" + t + b"-" + t),
    "split": (lambda t: tf.strings.split(t), lambda t: t.split()),
    "split at a comma": (lambda t: tf.strings.split(t, ","), lambda t: t.split(b",")),
    "split once": (lambda t: tf.strings.split(t, ",", maxsplit=1), lambda t: t.split(b",", 1)),
    "hash": (lambda t: tf.strings.to_hash_bucket_fast(t, 1000), lambda t: fingerprint64(t) % 1000),
    "old hash": (lambda t: tf.strings.to_hash_bucket(t, 1000), lambda t: hash64(t) % 1000),
    "replaced": (
        lambda t: tf.strings.regex_replace(t, "[aB,]+", r"<\0>"),
        lambda t: re.sub(b"[aB,]+", lambda m: b"<" + m[0] + b">", t),
    ),
    "first one replaced": (
        lambda t: tf.strings.regex_replace(t, r"(a)|(B)", r"\2\1", replace_global=False),
        lambda t: re.sub(b"(a)|(B)", lambda m: (m[2] or b"") + (m[1] or b""), t, count=1),
    ),
    "matched": (
        lambda t: tf.strings.regex_full_match(t, r"a.*|,"),
        lambda t: t == b"," or (t[:1] == b"a" and b"\n" not in t and is_utf8(t)),
    ),
}


def is_utf8(text):
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("name", PLAIN)
def test_equal_to_plain_python_by_block_on_batches_and_one_by_one(name):
    function, plain = PLAIN[name]
    values = texts(name)
    wanted = [plain(text) for text in values]
    ds = tf.data.Dataset.from_tensor_slices(values)
    by_block = ds.map(function)
    assert [listed(x) for x in by_block] == wanted
    assert "runs by Block" in str(by_block.explain())
    assert [listed(function(tf.constant(text))) for text in values] == wanted
    batch = function(tf.constant(values))
    assert (batch.to_list() if hasattr(batch, "to_list") else batch.numpy().tolist()) == wanted
    if "split" not in name:
        batches = [x.numpy().tolist() for x in ds.batch(7).map(function)]
        assert [item for batch in batches for item in batch] == wanted


def listed(value):
    found = value.numpy()
    return found.tolist() if isinstance(found, (np.ndarray, np.generic)) else found


def test_patterns_are_those_of_re2_on_utf8():
    assert tf.strings.regex_replace("é¿x", "[¿]", "_").numpy() == "é_x".encode()
    assert tf.strings.regex_replace(b"a\xffb", ".", "_").numpy() == b"_\xff_"
    assert tf.strings.regex_replace("Ab, ñ!", r"[[:punct:]]|\p{Lu}", "").numpy() == "b ñ".encode()
    assert tf.strings.regex_replace("xay", r"\Ba", "-", replace_global=False).numpy() == b"x-y"
    assert tf.strings.regex_replace("", "^", r"\\1", replace_global=False).numpy() == rb"\1"
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)missing \).*RE2"):
        tf.strings.regex_replace("a", "(a", "")


CLASSES = [
    "[^a-z ]",
    "[aB,]",
    r"[\s/]",
    "[[:punct:]]",
    r"[^\d\-]",
    "[+-B]",
    "[é]",
    f"[{re.escape(string.punctuation)}]",
    "[^^]",
]


@pytest.mark.parametrize("pattern", CLASSES)
@pytest.mark.parametrize("into", ["", "_"])
def test_a_class_of_characters_is_replaced_as_re2_does_it(pattern, into):
    mixed = texts(5)
    for given in (mixed, [text for text in mixed if text.isascii()], [bytes([i]) for i in range(128)]):
        found = tf.strings.regex_replace(given, pattern, into).numpy().tolist()
        assert found == tf.strings.regex_replace(given, f"(?:{pattern})", into).numpy().tolist()
        assert found != given or pattern == "[é]"


def test_a_place_outside_of_a_text_is_the_error_of_its_element():
    ds = tf.data.Dataset.from_tensor_slices(["abc", "a", "bcd"]).map(lambda t: tf.strings.substr(t, 2, 1))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)pos 2 out of range.*element 1"):
        list(ds)
    assert [x.numpy() for x in ds.ignore_errors()] == [b"c", b"d"]


def test_the_hash_of_a_column_is_that_of_each_text():
    rng = random.Random(3)
    values = [rng.randbytes(size) for size in [*range(300), *(rng.randint(0, 40) for _ in range(300))]]
    column = BytesColumn.from_values(values)
    assert fingerprints(column).tolist() == [fingerprint64(value) for value in values]
    assert fingerprints(column.slice(0, 0)).tolist() == []
    picked = np.array([5, 299, 5, 70])
    assert fingerprints(column.take(picked)).tolist() == [fingerprint64(values[i]) for i in picked]


FIELDS = [b"1", b" -2", b"+3", b"0.1", b"1e9", b"", b"NA", b'"a ""b"","', b'"x\ny"', b"n\xff", b"99999999999"]


@pytest.mark.parametrize("seed", range(4))
def test_records_of_csv_by_block_are_those_one_by_one(seed):
    rng = random.Random(seed)
    kinds = [b"1", b"7", b"0.5"], FIELDS[:5], FIELDS
    lines = [b",".join([rng.choice(kinds[0][:2]), rng.choice(kinds[1]), rng.choice(kinds[2])]) for _ in range(90)]
    defaults = [0, 0.0, "none"]
    ds = tf.data.Dataset.from_tensor_slices(lines)
    wanted = [[x.numpy() for x in tf.io.decode_csv(line, defaults, na_value="NA")] for line in lines]
    by_block = ds.map(lambda line: tf.io.decode_csv(line, defaults, na_value="NA"))
    assert [[x.numpy() for x in row] for row in by_block] == wanted
    batches = list(ds.batch(90).map(lambda line: tf.io.decode_csv(line, defaults, na_value="NA")))
    assert [list(row) for row in zip(*(x.numpy().tolist() for x in batches[0]), strict=True)] == wanted


def test_a_record_that_cannot_be_read_is_the_error_of_its_element():
    ds = tf.data.Dataset.from_tensor_slices(["1,2", "3", '4,"5', "6,x", "7,8\n9,1", "", "1,1"])
    read = ds.map(lambda line: tf.io.decode_csv(line, [0, 0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)2 fields.*this one has 1.*element 1"):
        list(read)
    assert [[x.numpy() for x in row] for row in read.ignore_errors()] == [[1, 2], [1, 1]]

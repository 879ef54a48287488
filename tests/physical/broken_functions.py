"""Functions of a picture and its label that hold one line which cannot be traced, as text that is read like a file."""

from __future__ import annotations

import contextlib
import functools
import linecache
from collections.abc import Callable, Iterator
from textwrap import indent
from typing import Any

import numpy as np

import penstock as ps

BEGINNINGS = {
    "nothing": "pass\n",
    "one": "image = ps.image.flip_left_right(image)\n",
    "colours": "image = ps.image.random_hue(ps.image.random_flip_left_right(image), 0.1)\n"
    "image = ps.image.resize(image, (6, 5)) / 255.0\n",
    "a dict": "row = {'image': ps.image.resize(image, SIZE), 'label': label, 'both': (image, label)}\n"
    "same = row\nimage = row['image']\n",
    "two names": "flipped = ps.image.random_flip_left_right(image)\n"
    "image = ps.image.convert_image_dtype(flipped, np.float32)\n",
}
LINES = {
    "counts in a list": "NAMES[0] = NAMES[0] + 1",
    "counts in a global": "global TOTAL\nTOTAL = TOTAL + int(label)\nlabel = label + TOTAL",
    "counts, read afterwards": "NAMES[0] = NAMES[0] + 1\nimage = ps.image.flip_up_down(image)\n"
    "label = label + NAMES[0]",
    "counts once in a while": "if label == 3:\n    NAMES.append(NAMES[-1] + 1)\nlabel = label + len(NAMES)",
    "vocabulary": "label = COUNTER.words.setdefault(int(label) % 3, len(COUNTER.words))",
    "try around": "try:\n    image = ps.image.flip_up_down(image) / 255.0\n"
    "except ValueError as error:\n    LOG.append(error)",
    "try, one raises": "try:\n    image = ps.image.flip_up_down(image) / 255.0\n    if label == 3:\n"
    "        raise ValueError('three')\n    label = label + 1\nexcept ValueError as error:\n    LOG.append(str(error))",
    "try, another error": "try:\n    image = ps.image.random_crop(image, (9, 1, 3))\nexcept ValueError as error:\n"
    "    raise RuntimeError('bad') from error",
    "try, else, finally": "try:\n    image = ps.image.flip_up_down(image)\nexcept ValueError:\n    LOG.append(1)\n"
    "else:\n    label = label + 1\nfinally:\n    LOG.append(int(label))",
    "try, finally returns": "try:\n    image = ps.image.flip_up_down(image)\nfinally:\n    if label == 3:\n"
    "        return image, label * 2",
    "try, returns": "try:\n    if label == 3:\n        return ps.image.flip_up_down(image), label * 2\nfinally:\n"
    "    LOG.append(int(label))",
    "try, in a loop": "for n in range(3):\n    try:\n        image = ps.image.flip_up_down(image)\n"
    "        if n == 1:\n            continue\n        label = label + 1\n    except ValueError:\n        break",
    "suppressed": "with contextlib.suppress(ValueError):\n    image = ps.image.flip_up_down(image)\n"
    "    label = label + 1",
    "suppressed, raises": "with contextlib.suppress(ValueError, KeyError):\n    image = ps.image.flip_up_down(image)\n"
    "    if label == 3:\n        raise ValueError\n    label = label + 1",
    "no context": "with contextlib.nullcontext():\n    image = ps.image.random_flip_up_down(image)",
    "import of ours": "import penstock as ours\nimage = ours.image.flip_up_down(image)\nlabel = int(label)",
    "import of a function": "from numpy import negative, add as plus\nimage = negative(image)\nlabel = plus(label, 1)",
    "import, and another value": "import numpy as kept\nimage = kept.negative(image)\nkept = label\nlabel = kept + 1",
    "import, once in a while": "if label == 3:\n    import numpy as kept\n    image = kept.negative(image)",
    "reduced": "image = functools.reduce(lambda made, op: op(made), (ps.image.flip_up_down, np.negative), image)",
    "the next": "image = next(ps.image.flip_up_down(one) for one in (image,))",
    "one after the other": "ones = iter((3, 4))\nlabel = label + next(ones)\nimage = image * next(ones)",
    "partial": "image = functools.partial(ps.image.resize, size=(4, 4))(image)",
    "number of a channel": "image = (image - np.array([1, 2, 3], np.float32)) / np.float32([3, 2, 1])",
    "int": "label = int(label)",
    "float32": "label = np.float32(label)",
    "eye": "label = np.eye(10)[label]",
    "look up": "label = TABLE[label]",
    "look up in a list": "label = NAMES[label % 3]",
    "one-hot": "made = np.zeros(120, np.float32)\nmade[label] = 1\nlabel = made",
    "one-hot, written on": "made = np.zeros(120)\nmade[label] = 1\nLOG.append(made)\nmade[0] = 7\nlabel = made",
    "a row of a table": "rows = np.eye(120)\nrow = rows[label]\nrow[0] += 1\nlabel = row.sum() + rows.sum()",
    "an array of numbers": "label = np.array([label, image.max() if image.size else 0])",
    "joined": "label = np.concatenate([image.reshape(-1)[:2], [label]])",
    "rolled": "image = np.roll(image, 1, axis=0)\nlabel = np.digitize(label, [2, 4])",
    "if": "if label == 3:\n    label = label + 10",
    "if that changes the picture": "if label > 4:\n    image = image * 2.0\nelse:\n    image = image + 0.0",
    "ternary": "label = label if label > 3 else -label",
    "and": "label = (label > 3 and label < 6) or label == 1",
    "a check": "if label > 90:\n    raise ValueError(f'label {label}')",
    "raises": "if label == 5:\n    raise ValueError(f'label {label}')",
    "raises in numpy": "image = image[label if label != 4 else 'a']",
    "transpose": "image = np.transpose(image, (2, 0, 1))",
    "T": "image = image.T",
    "turned": "image = image[..., ::-1]",
    "moveaxis": "image = np.moveaxis(image, -1, 0)",
    "pad": "image = np.pad(image, ((1, 2), (0, 1), (0, 0)))",
    "mean": "image = image - image.mean()",
    "std": "image = image / (image.std() + np.float32(1e-3))",
    "sum": "label = image.sum()",
    "max": "label = label + image.max()",
    "argmax": "label = image.argmax()",
    "mean of rows": "image = image.mean(axis=(0, 1))",
    "exp": "image = np.exp(image / 255)",
    "tanh": "image = np.tanh(image)",
    "power": "image = image ** 2",
    "clip": "image = image.clip(0, 1)",
    "reshape": "image = image.reshape(-1)",
    "concatenate": "image = np.concatenate([image, image])",
    "stack": "image = np.stack([image, image])",
    "len": "label = label + len(image)",
    "logs": "LOG.append((int(label), image.shape, image.dtype.str, image.flags.writeable))",
    "logs the picture": "LOG.append(image.copy())",
    "keeps the picture": "LOG.append(image)",
    "logs bits": "LOG.append((image.sum(), image.strides, type(label).__name__, type(image).__name__))",
    "counts": "COUNTER.count = COUNTER.count + 1\nlabel = label + COUNTER.count",
    "changes what the beginning reads": "if label == 4:\n    CHANGED()",
    "changes the table": "TABLE[0] = TABLE[0] + 1.0\nlabel = TABLE[0]",
    "changes the names": "NAMES[0] = NAMES[0] + 1\nlabel = NAMES[0]",
    "writes": "image = image.copy()\nimage[0] = label",
    "writes in place": "if image.flags.writeable:\n    image[0] = label",
    "adds in place": "if image.flags.writeable:\n    image += 1",
    "writes, and keeps": "LOG.append(image)\nif image.flags.writeable:\n    image[:1] = 7",
    "writes into what was kept": "LOG.append(image)\nif LOG[0].flags.writeable:\n    LOG[0][0] = label",
    "keeps a part, and writes": "LOG.append(image[:1])\nif label == 4 and image.flags.writeable:\n    LOG[0][0] = 7",
    "gives the first again": "LOG.append(image)\nimage = LOG[0]",
    "keeps one, and writes": "LOG or LOG.append(image)\nif label == 6 and LOG[0].flags.writeable:\n    LOG[0][0] = 9",
    "keeps its memory": "LOG.append(np.asarray(memoryview(image[:2])))\nif LOG[0].flags.writeable:\n    LOG[0][0] = 3",
    "keeps what it gives": "LOG.append((image, label))\nlabel = int(label)",
    "another shape in place": "if image.flags.writeable:\n    image.shape = image.shape[::-1]",
    "cannot be written to": "image.flags.writeable = False",
    "twice": "label = (image, int(label))",
    "draws": "label = label + np.random.default_rng(ps.element_key()).integers(100)",
    "draws twice, now and then": "if label > 4:\n    ps.element_key()\nlabel = ps.element_key() % 1000",
    "draws by an operation": "image = ps.image.random_flip_up_down(np.array(image))",
    "try": "try:\n    label = label + 1\nexcept ValueError:\n    pass",
    "try that fails": "try:\n    label = label + SIZE\n    image.nothing\nexcept Exception:\n    label = -1",
    "import": "import math\nlabel = label + math.floor(2.5)",
    "with": "with np.errstate(all='ignore'):\n    image = image / 0.5",
    "loop": "for n in range(int(label)):\n    label = label + n",
    "while": "while label > 3:\n    label = label - 1",
    "list of numbers": "label = [int(label), 2]",
    "dict changed": "row = {'a': label}\nrow['b'] = image.shape[0] + int(row['a'])\nlabel = row['b']",
    "takes out of a dict": "row = {'a': label, 'b': image}\nlabel = row.pop('a')\nlabel = int(label) + len(row)",
    "takes, put off": "row = {'a': label, 'b': image}\nkept = int(row['a'])\nlabel = row.pop('a')\n"
    "label = label + kept + len(row)",
    "deletes behind what reads": "row = {'a': label, 'b': image}\nlow = int(row['b'].max() if image.size else 0)\n"
    "del row['b']\nlabel = label + low + len(row)",
    "updates two names": "row = {'a': label}\nsame = row\nrow.update(b=int(label), a=3)\nlabel = same['a'] + same['b']",
    "takes and fails": "row = {'a': label}\nif SIZE:\n    label = row.pop('a')\n    label = int(label) + len(row)",
    "changes a list": "found = [label, 1]\nfound.insert(0, found.pop())\nlabel = int(found[0]) + found[1]",
    "takes from the names": "label = NAMES.pop() if len(NAMES) > 1 else int(label)",
    "returns early": "if label == 2:\n    return image, label + 100",
    "unbound": "if label < 90:\n    more = int(label)\nlabel = label + more",
    "never bound": "label = label + later\nlater = int(label)",
    "isinstance": "label = label + isinstance(image, np.ndarray) + (type(image) is np.ndarray)",
    "text": "label = f'{label}:{image.shape}'",
    "hash": "label = hash(bytes(image.tobytes())) % 7 + 1 if image.size else 0",
    "unknown": "image = np.sort(image, axis=0)",
    "none": "label = None",
    "copied": "image, label = np.array(image), int(label)",
    "augmented": "label += 1\nlabel = int(label)",
    "deleted": "other = image\ndel other\nlabel = int(label)",
    "comprehension": "label = sum([int(label) for _ in range(3)])",
    "lambda": "label = (lambda: int(label))()",
    "lambda kept": "later = lambda: label\nlabel = later()",
    "lambda of its own": "label = (lambda n: n + label)(2)",
    "generator": "label = sum(label for _ in range(3))",
    "maps of its own": "label = sum(map(lambda n: n * label, [1, 2])) + int(label)",
    "a choice, in place": "chosen = np.where(label > 3, 1, 0)\nsame = chosen\nchosen += 1\nlabel = label + same",
    "key function of its own": "label = sorted([1, 2], key=lambda n: -n * int(label > 3))[0]",
    "match": "match int(label):\n    case 3 | 4:\n        label = label + 1\n    case other:\n        label = other",
    "appends": "parts = []\nfor n in range(2):\n    parts.append(image)\nlabel = label + len(parts)",
    "a list between": "found = sorted([3, int(label)])\nlabel = found[0]",
    "another shape each": "found = np.unique(image[: 1 + int(label) % 3])\nlabel = len(found)",
    "some of it": "label = image[image > image.mean()].size",
    "turned now and then": "image = image[:, ::-1] if label % 2 else image",
    "turned by what is not known": "image = np.asarray(image)[::-1]",
    "a view beside it": "part = image[:2]\nlabel = np.unique(part).size + part.strides[0]",
    "a view that is kept": "part = image[:2]\nLOG.append((part, image[0]))",
    "writes into a view": "image = image * 1\npart = image[:1]\npart[0] = 7",
    "writes into a view, perhaps": "part = image[:1]\nif part.flags.writeable:\n    part[0] = label",
    "keeps a view, and adds": "image = image * 1\nLOG.append(image[:1])\nimage += image",
    "adds, and keeps a view": "image = image * 1\nimage += image\nLOG.append(image[:1])",
    "adds behind what reads": "image = image * 1\nlow = int(image.max() if image.size else 0)\nimage -= image\n"
    "label = label + low",
    "adds under two names": "image = image * 1\nother = image\nimage += 1\nlabel = label + int(other.max())",
    "reads what gets another value": "low = int(image.reshape(-1)[0])\nimage = image * 2\nlabel = label + low",
    "sorts": "image = np.sort(image[..., ::-1], axis=0)",
    "by row": "label = np.percentile(image, 50) + np.median(image, axis=(0, 1)).sum() + label**2",
    "maximum": "image = np.maximum(image, image - image)",
    "product": "image = image @ np.eye(3, dtype=np.float32)",
    "to bytes": "image = (image * 3 - 5).astype(np.uint8)",
    "key function": "label = sorted([int(label), 3], key=lambda value: -value)[0]",
    "named": "label = n + 1 if (n := int(label)) > 3 else n",
    "named in a call": "label = min((label := int(label) + 1), label)",
    "named error": "try:\n    image.nothing\nexcept Exception as error:\n    label = len(str(error))",
    "error kept": "try:\n    label = NAMES[label]\nexcept IndexError as error:\n    LOG.append(str(error))",
    "locals": "label = len(locals())",
    "global": "global TOTAL\nTOTAL = TOTAL + 1\nlabel = TOTAL",
}
ENDS = {
    "both": "return image, label\n",
    "divided": "return ps.image.flip_up_down(image) / 255.0, label\n",
    "draws": "image = ps.image.random_flip_left_right(image)\nreturn ps.image.random_brightness(image, 0.1), label\n",
    "another line": "twice = label\nimage = ps.image.flip_left_right(image) * SIZE[0]\n"
    "label = int(label) if SIZE else label\nimage = ps.image.random_flip_up_down(image)\n"
    "return image, (label, twice)\n",
    "its label": "return ps.image.flip_left_right(image) * label, label + SIZE[0]\n",
    "in the return": "return {'x': image, 'y': (label, int(0 if label is None else 3))}\n",
}
AROUND = """\
LOG, NAMES, TABLE, SIZE, TOTAL = [], [1, 2, 3], np.arange(100, dtype=np.float32), (6, 5), 0
class COUNTER:
    count, words = 0, {}
def CHANGED():
    global SIZE
    SIZE = (SIZE[0] + 1, SIZE[1])
"""


def source(beginning: str, line: str, end: str) -> str:
    body = BEGINNINGS[beginning] + LINES[line] + "\n" + ENDS[end]
    return f"{AROUND}def function(image, label):\n{indent(body, '    ')}"


def made(beginning: str, line: str, end: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A function of its own, and the names that it sees."""
    text = source(beginning, line, end)
    file = f"<{beginning}, {line}, {end}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": __name__, "np": np, "ps": ps, "functools": functools, "contextlib": contextlib}
    exec(compile(text, file, "exec"), names)
    return names["function"], names


def sources() -> dict[str, Callable[[], Any]]:
    """Data sets of pictures of many kinds, each with a label."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (11, 8, 7, 3), np.uint8)
    labels = np.arange(11)

    def differing() -> Iterator[Any]:
        for label in range(11):
            yield small[label, : 4 + label % 3], label

    spec = (ps.TensorSpec((None, 7, 3), np.uint8), ps.TensorSpec((), np.int64))
    pair = ps.Dataset.from_tensor_slices
    return {
        "uint8": lambda: pair((small, labels)),
        "float32": lambda: pair((small.astype(np.float32) / 255, labels)),
        "differing": lambda: ps.Dataset.from_generator(differing, output_signature=spec),
        "int32 labels": lambda: pair((small, labels.astype(np.int32))),
        "float labels": lambda: pair((small, labels.astype(np.float64))),
        "behind a map": lambda: pair((small, labels)).map(lambda image, label: (image + np.uint8(1), label)),
        "cached": lambda: pair((small, labels)).map(lambda image, label: (image + np.uint8(1), label)).cache(),
        "shuffled": lambda: pair((small, labels)).shuffle(11, seed=3),
        "repeated": lambda: pair((small[:4], labels[:4])).repeat(3),
        "png": lambda: pair(([ps.io.encode_png(image) for image in small], labels)).map(
            lambda content, label: (ps.image.decode_png(content, channels=3), label)
        ),
    }

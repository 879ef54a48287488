"""Measure the same work in other phrasings, and the cost of one more line.

Four tables have the CPU time per image (the whole process, all threads), and the ratio to the first row of each group:

    - phrasings: a chain of augmentations on 64×64 images, CIFAR's, JPEG files and records, each written per element,
      on the batch, and with `map_fn` after the batch;
    - lines: the chain with one line added; `in numpy` is the cost of a call of that line alone;
    - cliffs: the chain in each compound statement of Python and with lines that change state, and cheap functions that
      change state, in relation to their calls as written;
    - recipe: decode, crop, flip and normalize photographs of 500×375, as in training on ImageNet.

If TensorFlow is installed, the table phrasings also has tf.data's figures, from a separate process. The iterations of
all rows take turns, and the figure is the minimum of a row. Goals: a line costs at most 1.4 times the sum of the chain
and its own cost, and at most 3 times in the worst case; no phrasing costs more than 1.3 times the phrasing per element.

    python benchmarks/phrasings.py [--rounds N] [--only TEXT] [--tables phrasings|lines|cliffs|recipe]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import linecache
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
from _common.duel import drain, figures_of, timed

PICTURES, SIDE, BATCH, ROUNDS = 2048, 64, 64, 5
PHOTOS = PICTURES // 8  # of 500×375; the figures are an eighth of the time of one image

CHAIN = """\
image = ps.image.random_flip_left_right(image)
image = ps.image.random_hue(image, 0.1)
image = ps.image.random_contrast(image, 0.8, 1.2)
image = ps.image.random_saturation(image, 0.8, 1.2)
image = ps.image.random_brightness(image, 0.1)
image = ps.image.resize(image, (64, 64))
image = image / 255.0
"""
AROUND = """\
class Config:
    size = (64, 64)

CFG = Config()
OPS = [
    ps.image.random_flip_left_right,
    partial(ps.image.random_hue, max_delta=0.1),
    partial(ps.image.random_contrast, lower=0.8, upper=1.2),
    partial(ps.image.random_saturation, lower=0.8, upper=1.2),
    partial(ps.image.random_brightness, max_delta=0.1),
    partial(ps.image.resize, size=(64, 64)),
]
SEEN, COUNT = [], [0]
MEANS = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0], np.float32)
"""
LINES = {
    "np.transpose": "image = np.transpose(image, (2, 0, 1))",
    ".transpose": "image = image.transpose(2, 0, 1)",
    ".T": "image = image.T",
    "np.moveaxis": "image = np.moveaxis(image, -1, 0)",
    "swapaxes": "image = image.swapaxes(0, 2)",
    "[..., ::-1]": "image = image[..., ::-1]",
    "[:32]": "image = image[:32]",
    "[None]": "image = image[None]",
    "reshape": "image = image.reshape(-1)",
    "expand_dims": "image = np.expand_dims(image, 0)",
    "concatenate": "image = np.concatenate([image, image])",
    "stack": "image = np.stack([image, image])",
    "np.clip": "image = np.clip(image, 0, 1)",
    ".clip": "image = image.clip(0, 1)",
    "np.pad": "image = np.pad(image, ((2, 2), (2, 2), (0, 0)))",
    "x - x.mean()": "image = image - image.mean()",
    "x / x.std()": "image = image / image.std()",
    "x.max()": "label = label + image.max()",
    "argmax": "label = image.argmax()",
    "x**2": "image = image ** 2",
    "np.exp": "image = np.exp(image)",
    "np.tanh": "image = np.tanh(image)",
    "int(label)": "label = int(label)",
    "np.float32(label)": "label = np.float32(label)",
    "float(label)": "label = float(label)",
    "np.eye(10)[label]": "label = np.eye(10)[label]",
    "MEANS[label]": "label = MEANS[label]",
    "if": "if label == 3:\n    label = label + 1",
    "ternary": "label = label if label > 3 else label + 1",
    "and": "label = label > 3 and label < 5",
    "assert": "assert label < 10",
    "len": "label = label + len(image)",
    "try": "try:\n    label = label + 1\nexcept ValueError:\n    pass",
    "import": "import math\nlabel = label + math.floor(2.5)",
    "print, now and then": "if label == 12:\n    print(label)",
    "x.min()": "label = label + image.min()",
    "x.sum()": "label = image.sum()",
    "mean of channels": "image = image - image.mean(axis=(0, 1))",
    "np.log1p": "image = np.log1p(image)",
    "np.sqrt": "image = np.sqrt(image)",
    "np.where": "image = np.where(image > 0.5, image, 0)",
    "np.maximum": "image = np.maximum(image, 0.5)",
    "np.rot90": "image = np.rot90(image)",
    "np.roll": "image = np.roll(image, 3, axis=1)",
    "np.tile": "image = np.tile(image, (1, 1, 2))",
    "np.repeat": "image = np.repeat(image, 2, axis=2)",
    "np.sort": "image = np.sort(image, axis=0)",
    "np.isnan": "assert not np.isnan(image).any()",
    "@": "image = image @ np.eye(3, dtype=np.float32)",
    "np.linalg.norm": "label = np.linalg.norm(image)",
    "[::2, ::2]": "image = image[::2, ::2]",
    "astype": "image = image.astype(np.float16)",
    "np.array(label)": "label = np.array(label)",
    "bool(label)": "label = bool(label)",
    "str(label)": "label = str(label)",
    "f-string": "label = f'{label:03d}'",
    "% and //": "label = label % 3 + label // 3",
    "one-hot by hand": "hot = np.zeros(10, np.float32)\nhot[label] = 1\nlabel = hot",
    "dict": "label = {'label': label, 'twice': label * 2}",
    "list": "label = [label, label]",
    "for": "for n in range(3):\n    label = label + n",
    "while": "while label > 3:\n    label = label - 1",
    "isinstance": "label = label + isinstance(image, np.ndarray)",
    "raise": "if label > 90:\n    raise ValueError(label)",
    "return early": "if label == 12:\n    return image, label + 1",
    "random of its own": "label = label + np.random.default_rng(ps.element_key()).random()",
    "append": "SEEN.append(label)",
    "comprehension": "label = sum([int(label) for _ in range(3)])",
    "key function": "label = sorted([int(label), 3], key=lambda value: -value)[0]",
    ":=": "label = n if (n := int(label)) > 3 else 3",
    "with": "with np.errstate(all='ignore'):\n    label = label / 2",
    "except as": "try:\n    label = label + 1\nexcept ValueError as error:\n    print(error)",
    "image.shape": "label = label + image.shape[0]",
    "counter": "COUNT[0] += 1",
    "writes": "image = image.copy()\nimage[:4] = 0",
    "np.percentile": "image = image / (np.percentile(image, 99) + 1)",
    "np.argsort": "label = np.argsort(image[0, 0])",
    "np.unique": "label = len(np.unique(image[0]))",
    "np.gradient": "label = np.gradient(image[..., 0])[0].max()",
    "np.einsum": "image = np.einsum('hwc,cd->hwd', image, np.eye(3, dtype=np.float32))",
    "np.asarray": "image = np.asarray(image, dtype=np.float32)",
    "np.ascontiguousarray": "image = np.ascontiguousarray(image[:, ::-1])",
    "tolist": "label = image[0, 0].tolist()",
    "image[image > 0.5]": "label = image[image > 0.5].size",
    "-= and /=": "image = image * np.float32(1)\nimage -= 0.5\nimage /= 2.0",
    "uint8": "image = (image * 255).astype(np.uint8)",
    "one channel after the other": "parts = []\nfor c in range(3):\n    parts.append(image[..., c] - MEANS[c])\n"
    "image = np.stack(parts, axis=-1)",
    "comprehension of channels": "image = np.stack([image[..., c] for c in (2, 1, 0)], axis=-1)",
    "generator of channels": "label = sum(image[..., c].max() for c in range(3))",
    "lambda": "scale = 2\nimage = (lambda x: x * scale)(image)",
    "match": "match int(label):\n    case 3:\n        label = label + 1",
    "sorted": "label = sorted([3, 1, int(label)])[0]",
    "now and then": "if label % 2:\n    image = image[:, ::-1]",
    "np.random, now and then": "if np.random.rand() < 0.5:\n    image = image[:, ::-1]",
    "look-up of text": "label = {3: 'three'}.get(int(label), 'another')",
}
ELSEWHERE = (  # also before the chain, and in the middle of its colour operations
    "int(label)", "np.eye(10)[label]", "if", "assert", "try", "append", "np.pad", "np.sort", "np.unique", "np.rot90",
    "tolist", "np.asarray", "sorted", "match", "now and then", "np.random, now and then", "comprehension of channels",
)  # fmt: skip
WHOLE = {  # other phrasings of the chain; `function` is mapped
    "ops in a list": ("for op in OPS:\n    image = op(image)\nimage = image / 255.0\n", "function = augment"),
    "cfg.size": (CHAIN.replace("(64, 64)", "CFG.size"), "function = augment"),
    "functools.partial": (CHAIN, "function = partial(augment)"),
    "callable object": (
        CHAIN,
        "class Call:\n    def __call__(self, image, label):\n        return augment(image, label)\nfunction = Call()",
    ),
    "bound method": (
        CHAIN,
        "class Has:\n    def run(self, image, label):\n        return augment(image, label)\nfunction = Has().run",
    ),
    "helper in a lambda": (CHAIN, "function = lambda image, label: (augment(image, label)[0], int(label))"),
}

STATE = """\
import contextlib, functools, logging
N, VOCAB, TOTALS, LOG = [0], {}, {"n": 0}, []
RESIZE = partial(ps.image.resize, size=(64, 64))
CONTRAST = partial(ps.image.random_contrast, lower=0.8, upper=1.2)
MODE, TRAIN, NAMED = "train", True, {"size": (64, 64)}

class Counter:
    count = 0
COUNTER = Counter()

def helper(x):
    return x * 2 + 1

def counting(x):
    N[0] += 1
    return helper(x)
"""
BLACK = "image = np.zeros((64, 64, 3), np.float32)"
# The chain inside a statement, or with a line that changes state. `augmented(image)` is the chain.
CLIFFS = {
    "helper and counter": "image = augmented(image)\nN[0] = N[0] + 1",
    "counter in place": "image = augmented(image)\nN[0] += 1",
    "counter in a dict": "image = augmented(image)\nTOTALS['n'] = TOTALS['n'] + 1",
    "counter in an object": "image = augmented(image)\nCOUNTER.count += 1",
    "counter in a global": "global TOTAL\nimage = augmented(image)\nTOTAL = label",
    "counter before": "N[0] = N[0] + 1\nimage = augmented(image)",
    "counter around": "N[0] = N[0] + 1\nimage = augmented(image)\nlabel = label + N[0]",
    "helper with a counter": "image = counted(image)",
    "vocabulary": "image = augmented(image)\nlabel = VOCAB.setdefault(int(label), len(VOCAB))",
    "vocabulary before": "label = VOCAB.setdefault(int(label), len(VOCAB))\nimage = augmented(image)",
    "memo": "if int(label) not in VOCAB:\n    VOCAB[int(label)] = len(VOCAB)\nlabel = VOCAB[int(label)]\n"
    "image = augmented(image)",
    "try": f"try:\n{indent(CHAIN, '    ')}except ValueError:\n    {BLACK}",
    "try, helper": f"try:\n    image = augmented(image)\nexcept ValueError:\n    {BLACK}",
    "try, return": "try:\n    return augmented(image), label\nexcept ValueError:\n    return image / 255.0, label",
    "try, raise": "try:\n    image = augmented(image)\nexcept ValueError as error:\n    raise RuntimeError from error",
    "try, log": "try:\n    image = augmented(image)\nexcept Exception:\n    logging.exception('bad')\n    raise",
    "try, finally": "try:\n    image = augmented(image)\nfinally:\n    label = label + 1",
    "try, else": f"try:\n    image = augmented(image)\nexcept ValueError:\n    {BLACK}\nelse:\n    label = label + 1",
    "try and int": f"try:\n    image = augmented(image)\n    label = int(label)\nexcept ValueError:\n    {BLACK}",
    "try and int, return": "try:\n    return augmented(image), int(label)\n"
    "except ValueError:\n    return image / 255.0, 0",
    "try in a helper": "image = careful(image)",
    "partial": CHAIN.replace("ps.image.resize(image, (64, 64))", "RESIZE(image)").replace(
        "ps.image.random_contrast(image, 0.8, 1.2)", "CONTRAST(image)"
    ),
    "partial, made inside": CHAIN.replace("resize(image, (64, 64))", "resize(image)").replace(
        "ps.image.resize(", "partial(ps.image.resize, size=(64, 64))("
    ),
    "keywords of a dict": CHAIN.replace("(image, (64, 64))", "(image, **NAMED)"),
    "with errstate": f"with np.errstate(all='ignore'):\n{indent(CHAIN, '    ')}",
    "with errstate, divide": "with np.errstate(divide='ignore'):\n    image = augmented(image)",
    "with suppress": "with contextlib.suppress(ValueError):\n    image = augmented(image)",
    "with nullcontext": "with contextlib.nullcontext():\n    image = augmented(image)",
    "for": "for op in OPS:\n    image = op(image)\nimage = image / 255.0",
    "for, else": "for op in OPS:\n    image = op(image)\nelse:\n    image = image / 255.0",
    "for over a tuple": "for op in (OPS[0], OPS[1], CONTRAST, OPS[3], OPS[4], RESIZE):\n    image = op(image)\n"
    "image = image / 255.0",
    "reduce": "image = functools.reduce(lambda image, op: op(image), OPS, image) / 255.0",
    "while": f"n = 0\nwhile n < 1:\n{indent(CHAIN, '    ')}    n += 1",
    "while, break": f"while True:\n{indent(CHAIN, '    ')}    break",
    "nested function": f"def inner(image):\n{indent(CHAIN, '    ')}    return image\nimage = inner(image)",
    "nested function, closure": "size = (64, 64)\ndef inner(image):\n"
    f"{indent(CHAIN.replace('(64, 64)', 'size'), '    ')}    return image\nimage = inner(image)",
    "nested lambda": "inner = lambda image: augmented(image)\nimage = inner(image)",
    "match": f"match MODE:\n    case 'train':\n{indent(CHAIN, '        ')}    case _:\n        pass",
    "match on a value": f"match int(label):\n    case 3:\n        label = label + 1\n"
    f"    case _:\n        label = label - 1\n{CHAIN}",
    "if on a constant": f"if TRAIN:\n{indent(CHAIN, '    ')}",
    "if on a value": f"if label < 5:\n    label = label + 1\nelse:\n    label = label - 1\n{CHAIN}",
    "guard": f"if int(label) > 100:\n    return None\n{CHAIN}",
    "import": f"import penstock as ps\n{CHAIN}",
    "logging": "image = augmented(image)\nlogging.debug('label %s', label)",
    "isinstance": "assert isinstance(image, np.ndarray)\nimage = augmented(image)",
    "walrus": "if (size := 64) > 3:\n    image = augmented(image)",
    "comprehension": "image = [augmented(one) for one in (image,)][0]",
    "generator": "image = next(augmented(one) for one in (image,))",
    "starred": "image = augmented(*(image,))",
    "append": "parts = []\nfor one in (image,):\n    parts.append(augmented(one))\nimage = parts[0]",
    "dict of functions": "image = {'train': augmented}[MODE](image)",
}
COUNTED = {  # functions of a number, compared with their calls as written
    "helper and counter": "q = helper(x)\nN[0] = N[0] + 1",
    "vocabulary": "q = VOCAB.setdefault(int(x) % 7, len(VOCAB))",
    "helper and vocabulary": "q = helper(x), VOCAB.setdefault(int(x) % 7, len(VOCAB))",
    "counter in a dict": "q = helper(x)\nTOTALS['n'] += 1",
    "counter in an object": "q = helper(x)\nCOUNTER.count += 1",
    "helper that counts": "q = counting(x)",
    "list that grows": "q = helper(x)\nLOG.append(x)",
    "counter is read": "N[0] = N[0] + 1\nq = helper(x) + N[0]",
}


def compiled(source: str, name: str) -> dict[str, Any]:
    """Return the names that `source` defines. Its lines can be read like those of a file, as in a notebook."""
    import functools

    import penstock as ps

    file = f"<phrasing {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "__main__", "np": np, "ps": ps, "partial": functools.partial}
    exec(compile(source, file, "exec"), names)
    return names


def function_of(body: str, end: str, name: str, before: str = "") -> Callable[..., Any]:
    text = f"{AROUND}{before}def augment(image, label):\n{indent(body, '    ')}    return image, label\n{end}\n"
    made: Callable[..., Any] = compiled(text, name)["function"]
    return made


def images_and_labels() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (PICTURES, SIDE, SIDE, 3), np.uint8), np.arange(PICTURES) % 10


def lines() -> dict[str, Callable[[], object]]:
    import penstock as ps

    data = ps.Dataset.from_tensor_slices(images_and_labels())
    chosen = {"chain": function_of(CHAIN, "function = augment", "chain")}
    for name, line in LINES.items():
        chosen[f"+ {name}"] = function_of(f"{CHAIN}{line}\n", "function = augment", name)
    front, _, back = CHAIN.partition("image = ps.image.resize")
    for name in ELSEWHERE:
        line = LINES[name]
        bodies = {"first": f"{line}\n{CHAIN}", "in the middle": f"{front}{line}\nimage = ps.image.resize{back}"}
        for where, body in bodies.items():
            chosen[f"+ {name}, {where}"] = function_of(body, "function = augment", f"{name} {where}")
    for name, (body, end) in WHOLE.items():
        chosen[name] = function_of(body, end, name)
    return {name: partial(drain, data.map(function).batch(BATCH)) for name, function in chosen.items()}


def cliffs() -> dict[str, Callable[[], object]]:
    import penstock as ps

    data = ps.Dataset.from_tensor_slices(images_and_labels())
    before = f"{STATE}def augmented(image):\n{indent(CHAIN, '    ')}    return image\n"
    before += "def counted(image):\n    N[0] += 1\n    return augmented(image)\n"
    before += f"def careful(image):\n{indent(CLIFFS['try'], '    ')}\n    return image\n"
    made = {}
    for name, body in {"plain": CHAIN, **CLIFFS}.items():
        function = function_of(f"{body}\n", "function = augment", f"cliff {name}", before)
        made[f"chain: {name}"] = data.map(function).batch(BATCH)
    written = ps.Options()
    written.experimental_optimization.map_vectorization.enabled = False
    numbers = ps.Dataset.range(PICTURES)
    for name, body in COUNTED.items():
        text = f"{STATE}def function(x):\n{indent(body, '    ')}\n    return q\n"
        counted = [numbers.map(compiled(text, f"{name} {i}")["function"]).batch(BATCH) for i in range(2)]
        made[f"{name}: as written"] = counted[0].with_options(written)
        made[f"{name}: counted"] = counted[1]
    return {name: partial(drain, ds) for name, ds in made.items()}


def recipes() -> dict[str, Callable[[], object]]:
    """Build the usual steps of training on photographs, in several phrasings."""
    import penstock as ps

    mean, std = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
    photos = ps.Dataset.from_tensor_slices(photographs()).repeat(PHOTOS // 16)
    shapes = {
        "resize": lambda image: ps.image.resize(image, (224, 224)),
        "random_resized_crop": lambda image: ps.image.random_resized_crop(image, (224, 224)),
        "random_crop": lambda image: ps.image.random_crop(image, (224, 224, 3)),
    }
    ends = {
        "(x / 255 - mean) / std": lambda image: (image / 255.0 - mean) / std,
        "normalize": lambda image: ps.image.normalize(image, mean * 255, std * 255),
        "convert_image_dtype": lambda image: (ps.image.convert_image_dtype(image, np.float32) - mean) / std,
        "x / 127.5 - 1": lambda image: image / 127.5 - 1.0,
    }
    decode = partial(ps.image.decode_jpeg, channels=3)
    flip = ps.image.random_flip_left_right
    made: dict[str, Any] = {}
    for shaped, shape in shapes.items():

        def begun(content: bytes, label: Any, shape: Any = shape) -> Any:
            return flip(shape(decode(content))), label

        images = photos.map(begun)
        made[f"{shaped}: no norm"] = images.batch(BATCH)
        for name, end in ends.items():

            def whole(content: bytes, label: Any, begun: Any = begun, end: Any = end) -> Any:
                image, label = begun(content, label)
                return end(image), label

            def ended(image: Any, label: Any, end: Any = end) -> Any:
                return end(image), label

            made[f"{shaped}: {name}"] = photos.map(whole).batch(BATCH)
            made[f"{shaped}: {name}, in a map of its own"] = images.map(ended).batch(BATCH)
            made[f"{shaped}: {name}, after batch"] = images.batch(BATCH).map(ended)
        unflipped = photos.map(lambda content, label, shape=shape: (shape(decode(content)), label)).batch(BATCH)
        made[f"{shaped}: flip and (x / 255 - mean) / std, after batch"] = unflipped.map(
            lambda image, label: ((flip(image) / 255.0 - mean) / std, label)
        )
        made[f"{shaped}: flip, then (x / 255 - mean) / std, after batch"] = unflipped.map(
            lambda image, label: (flip(image), label)
        ).map(lambda image, label: ((image / 255.0 - mean) / std, label))
        apart = photos.map(lambda content, label: (decode(content), label))
        apart = apart.map(lambda image, label, shape=shape: (shape(image), label))
        made[f"{shaped}: a map for each step"] = (
            apart.map(lambda image, label: (flip(image), label))
            .map(lambda image, label: (image / 255.0, label))
            .map(lambda image, label: ((image - mean) / std, label))
            .batch(BATCH)
        )
    return {name: partial(drain, ds) for name, ds in made.items()}


def photographs() -> tuple[list[bytes], Any]:
    """Return sixteen JPEG files of 500×375 pixels, and their numbers."""
    import penstock as ps

    waves = np.add.outer(np.sin(np.arange(375) / 40), np.cos(np.arange(500) / 50))[..., None] * (50, 40, 30) + 128
    noise = np.random.default_rng(1).normal(0, 6, (16, 375, 500, 3))
    return [ps.io.encode_jpeg(image) for image in np.clip(waves + noise, 0, 255).astype(np.uint8)], np.arange(16)


def alone(name: str) -> float | None:
    """Return the µs that an added line costs in numpy, or None if the row has no added line."""
    line = LINES.get(name.removeprefix("+ ").removesuffix(", in the middle").removesuffix(", first"))
    if line is None:
        return None
    run = compiled(f"{AROUND}def line(image, label):\n{indent(line, '    ')}\n", f"{name} alone")["line"]
    image, label = np.random.default_rng(0).random((SIDE, SIDE, 3), np.float32), np.int64(4)
    if name.endswith((", first", ", in the middle")):  # the images before the chain, and in its middle, are bytes
        image = (image * 255).astype(np.uint8)
    best = np.inf
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(200):
            run(image, label)
        best = min(best, time.perf_counter() - began)
    return float(best) / 200 * 1e6


def phrasings() -> dict[str, Callable[[], object]]:
    import penstock as ps

    images, labels = images_and_labels()
    chain = compiled(f"def chain(image):\n{indent(CHAIN, '    ')}    return image\n", "of images")["chain"]
    data = ps.Dataset.from_tensor_slices((images, labels))
    made = {
        "chain: per element": data.map(lambda image, label: (chain(image), label)).batch(BATCH),
        "chain: on the batch": data.batch(BATCH).map(lambda image, label: (chain(image), label)),
        "chain: map_fn": data.batch(BATCH).map(lambda image, label: (ps.map_fn(chain, image), label)),
    }

    def cifar(image: Any) -> Any:
        image = ps.image.pad(image, ((4, 4), (4, 4), (0, 0)), "REFLECT")
        image = ps.image.random_flip_left_right(image)
        image = ps.image.random_crop(image, (32, 32, 3))
        return ps.image.normalize(image, (125.3, 123.0, 113.9), (63.0, 62.1, 66.7))

    small = [ps.io.encode_png(image[:32, :32]) for image in images]
    records = [
        ps.io.encode_example({"image": png, "label": int(label)}) for png, label in zip(small, labels, strict=True)
    ]
    features = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}

    def parsed(record: bytes) -> Any:
        row = ps.io.parse_single_example(record, features)
        return cifar(ps.image.decode_png(row["image"], channels=3)), row["label"]

    def parsed_by_batch(batch: Any) -> Any:
        rows = ps.io.parse_example(batch, features)
        decoded = ps.map_fn(lambda png: ps.image.decode_png(png, channels=3), rows["image"])
        return ps.map_fn(cifar, decoded), rows["label"]

    def parsed_by_image(record: bytes) -> Any:
        row = ps.io.parse_single_example(record, features)
        return cifar(ps.image.decode_image(row["image"], channels=3, expand_animations=False)), row["label"]

    def guide(batch: Any) -> Any:
        """Write everything on the batch and process images one after the other, as public guides do."""
        rows = ps.io.parse_example(batch, features)
        images = ps.map_fn(lambda png: ps.image.decode_png(png, channels=3), rows["image"])
        return ps.map_fn(guided, images), rows["label"]

    def guided(image: Any) -> Any:
        image = ps.image.pad(image, ((4, 4), (4, 4), (0, 0)))
        image = ps.image.random_crop(ps.image.random_flip_left_right(image), (32, 32, 3))
        return (ps.image.cast(image, np.float32) - 127.5) / 127.5

    source = ps.Dataset.from_tensor_slices(records)
    made |= {
        "cifar: per element": source.map(parsed).batch(BATCH),
        "cifar: map_fn": source.batch(BATCH).map(parsed_by_batch),
        "cifar: the guide's, shuffled": source.shuffle(1024).batch(512).map(guide),
        "cifar: per element, decode_image": source.map(parsed_by_image).batch(BATCH),
    }
    files = [ps.io.encode_jpeg(image) for image in images]

    def small_image(content: bytes) -> Any:
        return ps.image.resize(ps.image.decode_jpeg(content, channels=3), (48, 48)) / 255.0

    def image_and_more(content: bytes) -> Any:
        return np.transpose(small_image(content), (2, 0, 1)), len(content)

    jpegs = ps.Dataset.from_tensor_slices(files)
    made |= {
        "jpeg: per element": jpegs.map(small_image).batch(BATCH),
        "jpeg: map_fn": jpegs.batch(BATCH).map(lambda batch: ps.map_fn(small_image, batch)),
        "jpeg: per element, then CHW and len": jpegs.map(image_and_more).batch(BATCH),
    }
    photos = ps.Dataset.from_tensor_slices(photographs()).repeat(PHOTOS // 16)

    def photo(content: bytes, label: Any) -> Any:
        return ps.image.resize(ps.image.decode_jpeg(content, channels=3), (224, 224)) / 255.0, label

    def photo_and_more(content: bytes, label: Any) -> Any:
        image, label = photo(content, label)
        return np.transpose(image, (2, 0, 1)), int(label)

    mean, std = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)

    def photo_normalised(content: bytes, label: Any) -> Any:
        image, label = photo(content, label)
        return np.transpose((image - mean) / std, (2, 0, 1)), int(label)

    made |= {
        "500×375: per element": photos.map(photo).batch(BATCH),
        "500×375: per element, then CHW and int": photos.map(photo_and_more).batch(BATCH),
        "500×375: … normalised, CHW and int": photos.map(photo_normalised).batch(BATCH),
    }
    made |= {
        "parse: per element": source.map(lambda record: ps.io.parse_single_example(record, features)).batch(BATCH),
        "parse: on the batch": source.batch(BATCH).map(lambda batch: ps.io.parse_example(batch, features)),
        "parse: map_fn": source.batch(BATCH).map(
            lambda batch: ps.map_fn(lambda record: ps.io.parse_single_example(record, features), batch)
        ),
    }
    return {name: partial(drain, ds) for name, ds in made.items()}


def tf_data() -> dict[str, Callable[[], object]]:
    import tensorflow as tf

    images, labels = images_and_labels()

    def chain(image: Any) -> Any:
        image = tf.image.random_flip_left_right(image)
        image = tf.image.random_hue(image, 0.1)
        image = tf.image.random_contrast(image, 0.8, 1.2)
        image = tf.image.random_saturation(image, 0.8, 1.2)
        image = tf.image.random_brightness(image, 0.1)
        return tf.image.resize(image, (64, 64)) / 255.0

    def by_map_fn(image: Any, label: Any) -> Any:
        return tf.map_fn(chain, image, fn_output_signature=tf.TensorSpec((64, 64, 3), tf.float32)), label

    data = tf.data.Dataset.from_tensor_slices((images, labels))
    made = {
        "chain: per element": data.map(lambda image, label: (chain(image), label)).batch(BATCH),
        "chain: on the batch": data.batch(BATCH).map(lambda image, label: (chain(image), label)),
        "chain: map_fn": data.batch(BATCH).map(by_map_fn),
    }

    def record(png: bytes, label: int) -> bytes:
        values = {
            "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[png])),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        }
        content: bytes = tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()
        return content

    features = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}
    small = [tf.io.encode_png(image[:32, :32]).numpy() for image in images]
    records = [record(png, int(label)) for png, label in zip(small, labels, strict=True)]

    def guided(image: Any) -> Any:
        image = tf.pad(image, ((4, 4), (4, 4), (0, 0)))
        image = tf.image.random_crop(tf.image.random_flip_left_right(image), (32, 32, 3))
        return (tf.cast(image, tf.float32) - 127.5) / 127.5

    def guide(batch: Any) -> Any:
        rows = tf.io.parse_example(batch, features)
        pixels = tf.TensorSpec((32, 32, 3), tf.uint8)
        images = tf.map_fn(lambda png: tf.image.decode_png(png, 3), rows["image"], fn_output_signature=pixels)
        floats = tf.TensorSpec((32, 32, 3), tf.float32)
        return tf.map_fn(guided, images, fn_output_signature=floats), rows["label"]

    made["cifar: the guide's, shuffled"] = (
        tf.data.Dataset.from_tensor_slices(records).shuffle(1024).batch(512).map(guide)
    )
    return {name: partial(drain, ds) for name, ds in made.items()}


def measured(passes: Mapping[str, Callable[[], object]], rounds: int, count: int = PICTURES) -> dict[str, float]:
    """Return the CPU µs per image: the minimum of `rounds` iterations in turn, after two for warm-up."""
    best = dict.fromkeys(passes, np.inf)
    for turn in range(rounds + 2):
        for name, one_pass in passes.items():
            spent = timed(one_pass)[1] / count * 1e6
            if turn >= 2:
                best[name] = min(best[name], spent)
    return {name: float(spent) for name, spent in best.items()}


def group_of(name: str, table: str) -> str:
    """Return the group of a row. The rows of a group are compared with its first row."""
    return "" if table == "lines" else name.partition(":")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description="the same work in other phrasings")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="", help="only rows whose names contain this, and the first of each group")
    parser.add_argument("--tables", default="phrasings,lines,cliffs,recipe")
    parser.add_argument("--tf-data", action="store_true", help="print tf.data's figures as JSON")
    chosen = parser.parse_args()
    if chosen.tf_data:
        print(json.dumps(measured(tf_data(), chosen.rounds)))
        return
    theirs: dict[str, float] = {}
    if "phrasings" in chosen.tables and importlib.util.find_spec("tensorflow"):
        command = [sys.executable, str(Path(__file__)), "--tf-data", "--rounds", str(chosen.rounds)]
        theirs = figures_of(command)
    tables = {
        "phrasings": (phrasings, PICTURES),
        "lines": (lines, PICTURES),
        "cliffs": (cliffs, PICTURES),
        "recipe": (recipes, PHOTOS),
    }
    for table, (rows, count) in tables.items():
        if table not in chosen.tables:
            continue
        made, groups = rows(), dict[str, str]()
        for name in made:
            groups.setdefault(group_of(name, table), name)
        passes = {name: one for name, one in made.items() if chosen.only in name or name in groups.values()}
        for one_pass in passes.values():
            one_pass()
        found = measured(passes, chosen.rounds, count)
        first: dict[str, float] = {}
        print(f"\n{table:<62}{'CPU µs':>9}{'ratio':>8}{'in numpy':>10}{'tf.data':>9}")
        for name, spent in found.items():
            ratio = spent / first.setdefault(group_of(name, table), spent)
            own = alone(name) if table == "lines" else None
            cells = f"{own:10.1f}" if own is not None else f"{'':>10}"
            print(f"{name:<62}{spent:9.1f}{ratio:8.2f}{cells}{theirs.get(name, ''):>9.5}")


if __name__ == "__main__":
    main()

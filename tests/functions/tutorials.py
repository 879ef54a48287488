"""Functions of public tutorials, rewritten for values of numpy, with the known facts of each.

They come from the guides to tf.data, tfds, Keras, torch and Hugging Face: images, text and tokens, audio, tables, boxes
and sequences. A `pure` function may run on tracers, a function that `ships` may move to another process; see
docs/design/0031. The file runs as a script, because another process imports a module again.
"""

import collections
import csv
import functools
import io
import json
import re
import string
from pathlib import Path

import numpy as np

import penstock as ps

FUNCTIONS = []


def known(words):
    """Note the known facts of a function."""

    def noted(function):
        FUNCTIONS.append((function, set(words.split())))
        return function

    return noted


# -- tf.data guide
known("pure ships")(lambda x: x + 1)
known("pure ships")(lambda x: x % 2 == 0)


@known("ships")
def parse_image(filename):
    parts = filename.decode().split("/")
    label = parts[-2].encode()
    image = ps.image.decode_jpeg(Path(filename.decode()).read_bytes())
    image = image.astype(np.float32) / 255.0
    image = ps.image.resize(image, (128, 128))
    return image, label


@known("pure ships")
def survived(line):
    return line[:1] != b"0"


TITANIC = {"survived": 0, "class": 1}


@known("ships")
def preprocess_titanic(line):
    fields = line.decode().split(",")
    return {name: float(fields[i]) for name, i in TITANIC.items()}


@known("pure ships")
def parse_example(record):
    row = ps.io.parse_single_example(
        record,
        {"image/encoded": ps.io.FixedLenFeature((), bytes, b""), "image/text": ps.io.FixedLenFeature((), bytes, b"")},
    )
    return row["image/encoded"], row["image/text"]


@known("")
def random_rotate_image(image, label):
    angle = np.random.uniform(-30, 30)
    return np.rot90(image, int(angle) // 45), label


@known("pure ships")
def dense_1_step(batch):
    return batch[:-1], batch[1:]


feature_length, label_length = 10, 3


@known("pure ships")
def label_next_5_steps(batch):
    return batch[:-5], batch[-5:]


@known("pure ships")
def class_func(features, label):
    return label


@known("ships")
def make_window(x):
    return np.lib.stride_tricks.sliding_window_view(x, 5)[:, ::2]


# -- load images / flowers
class_names = np.array(["daisy", "dandelion", "roses"])
img_height = img_width = 180


def get_label(file_path):
    parts = file_path.decode().split("/")
    one_hot = parts[-2] == class_names
    return np.argmax(one_hot)


def decode_img(img):
    img = ps.image.decode_jpeg(img, channels=3)
    return ps.image.resize(img, [img_height, img_width])


@known("ships")
def process_path(file_path):
    label = get_label(file_path)
    img = Path(file_path.decode()).read_bytes()
    img = decode_img(img)
    return img, label


# -- tfds mnist
@known("pure ships")
def normalize_img(image, label):
    return image.astype(np.float32) / 255.0, label


@known("pure ships")
def one_hot(image, label):
    return image, np.eye(10, dtype=np.float32)[label]


# -- data augmentation
@known("pure ships")
def augment(image, label):
    image = ps.image.resize_with_crop_or_pad(image, 38, 38)
    image = ps.image.random_crop(image, (32, 32, 3))
    image = ps.image.random_brightness(image, max_delta=0.5)
    return np.clip(image, 0, 1), label


rng = np.random.default_rng(123)


@known("")
def augment_stateful(image, label):
    seed = rng.integers(0, 1000)
    return image + seed, label


@known("ships")
def augment_keyed(image, label):
    g = np.random.default_rng(ps.element_key())
    top = int(g.integers(0, 8))
    return image[top : top + 24], label


# -- segmentation
@known("pure ships")
def normalize(input_image, input_mask):
    input_image = input_image.astype(np.float32) / 255.0
    input_mask = input_mask - 1
    return input_image, input_mask


@known("pure ships")
def load_image(datapoint):
    input_image = ps.image.resize(datapoint["image"], (128, 128))
    input_mask = ps.image.resize(datapoint["segmentation_mask"], (128, 128), method="nearest")
    return normalize(input_image, input_mask)


# -- text classification
@known("ships")
def custom_standardization(text, label):
    lowercase = text.decode().lower()
    stripped = re.sub("<br />", " ", lowercase)
    return re.sub(f"[{re.escape(string.punctuation)}]", "", stripped).encode(), label


vocab = {b"the": 1, b"a": 2, b"movie": 3}
max_len = 50


@known("ships")
def vectorize_text(text, label):
    ids = []
    for word in text.split():
        ids.append(vocab.get(word, 0))
    ids = ids[:max_len]
    return np.array(ids + [0] * (max_len - len(ids))), label


@known("ships")
def vectorize_comprehension(text, label):
    return np.array([vocab.get(w, 0) for w in text.split()][:max_len]), label


@known("ships")
def encode_padded(text, label):
    out = np.zeros(max_len, dtype=np.int64)
    for i, word in enumerate(text.split()[:max_len]):
        out[i] = vocab.get(word, 0)
    return out, label


@known("ships")
def bag_of_words(text, label):
    counts = np.zeros(len(vocab) + 1, np.float32)
    for word in text.split():
        counts[vocab.get(word, 0)] += 1
    return counts, label


@known("ships")
def count_words(text):
    return {"n": np.int64(sum(collections.Counter(text.split()).values()))}


@known("ships")
def ngrams(text):
    words = text.split()
    grams = {}
    for n in range(1, 4):
        for i in range(len(words) - n + 1):
            gram = b" ".join(words[i : i + n])
            grams[gram] = grams.get(gram, 0) + 1
    return np.array(sorted(grams.values(), reverse=True)[:8])


# -- BPE / subword
merges = {("t", "h"): 0, ("th", "e"): 1}
token_ids = {"the": 0, "t": 1, "h": 2, "e": 3, " ": 4}


def get_pairs(word):
    pairs = set()
    prev = word[0]
    for char in word[1:]:
        pairs.add((prev, char))
        prev = char
    return pairs


@known("")  # stays: among equal keys, `min` returns the first item of a set
def bpe(text):
    ids = []
    for word in text.decode().split():
        word = list(word)
        while len(word) > 1:
            pairs = get_pairs(word)
            bigram = min(pairs, key=lambda pair: merges.get(pair, float("inf")))
            if bigram not in merges:
                break
            first, second = bigram
            new, i = [], 0
            while i < len(word):
                if i < len(word) - 1 and word[i] == first and word[i + 1] == second:
                    new.append(first + second)
                    i += 2
                else:
                    new.append(word[i])
                    i += 1
            word = new
        ids.extend(token_ids.get(part, -1) for part in word)
    return np.array(ids)


class Tokenizer:
    def __init__(self, vocab, max_length=128):
        self.vocab = vocab
        self.max_length = max_length
        self.inverse = {v: k for k, v in vocab.items()}

    def tokenize(self, text):
        return re.findall(r"\w+|[^\w\s]", text.lower())

    def __call__(self, text):
        ids = [self.vocab.get(t, 0) for t in self.tokenize(text.decode())]
        return np.array(ids[: self.max_length])


known("ships")(Tokenizer({"the": 1}))
tok = Tokenizer({"the": 1})


@known("ships")
def tokenize_function(row):
    ids = tok(row["text"])
    mask = np.zeros(128, np.int64)
    mask[: len(ids)] = 1
    return {"input_ids": ids, "attention_mask": mask}


@known("ships")
def wordpiece(text):
    out = []
    for word in text.decode().split():
        start = 0
        pieces = []
        while start < len(word):
            end = len(word)
            while start < end and word[start:end] not in token_ids:
                end -= 1
            if end == start:
                pieces = ["[UNK]"]
                break
            pieces.append(word[start:end])
            start = end
        out += [token_ids.get(p, 0) for p in pieces]
    return np.array(out)


@known("ships")
def mask_tokens(ids):
    g = np.random.default_rng(ps.element_key())
    labels = ids.copy()
    masked = g.random(ids.shape) < 0.15
    labels[~masked] = -100
    ids = ids.copy()
    ids[masked] = 103
    return ids, labels


@known("ships")
def span_corruption(ids):
    g = np.random.default_rng(ps.element_key())
    out = []
    for token in ids.tolist():
        if g.random() < 0.15:
            out.append(32000)
        else:
            out.append(token)
    return np.array(out)


@known("pure ships")
def pad_and_mask(ids):
    padded = np.full(64, 0, dtype=np.int64)
    padded[: len(ids)] = ids[:64]
    return {"ids": padded, "mask": padded != 0}


@known("pure ships")
def split_input_target(sequence):
    return sequence[:-1], sequence[1:]


chars = sorted(set("hello world"))
char2idx = {c: i for i, c in enumerate(chars)}


@known("ships")
def chars_to_ids(text):
    return np.array([char2idx[c] for c in text.decode()])


# -- NMT
@known("ships")
def prepare_pair(line):
    eng, spa = line.decode().split("\t")
    return {"encoder_inputs": eng.encode(), "decoder_inputs": f"[start] {spa} [end]".encode()}


# -- torch face landmarks
class Rescale:
    def __init__(self, output_size):
        self.output_size = output_size

    def __call__(self, sample):
        image, landmarks = sample["image"], sample["landmarks"]
        h, w = image.shape[:2]
        new_h, new_w = (
            (self.output_size * h / w, self.output_size) if h > w else (self.output_size, self.output_size * w / h)
        )
        img = ps.image.resize(image, (int(new_h), int(new_w)))
        return {"image": img, "landmarks": landmarks * [new_w / w, new_h / h]}


class RandomCrop:
    def __init__(self, size):
        self.size = (size, size)

    def __call__(self, sample):
        image = sample["image"]
        h, w = image.shape[:2]
        new_h, new_w = self.size
        top = np.random.randint(0, h - new_h + 1)
        left = np.random.randint(0, w - new_w + 1)
        return {"image": image[top : top + new_h, left : left + new_w], "landmarks": sample["landmarks"] - [left, top]}


class ToTensor:
    def __call__(self, sample):
        return {"image": sample["image"].transpose((2, 0, 1)), "landmarks": sample["landmarks"]}


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for t in self.transforms:
            x = t(x)
        return x


known("pure ships")(Rescale(256))
known("")(RandomCrop(224))
known("pure ships")(ToTensor())
known("pure ships")(Compose([Rescale(256), ToTensor()]))


class Normalize:
    def __init__(self, mean, std):
        self.mean = np.array(mean, np.float32)
        self.std = np.array(std, np.float32)

    def __call__(self, image):
        return (image - self.mean) / self.std


known("pure ships")(Normalize([0.5], [0.2]))


class Cutout:
    def __init__(self, length):
        self.length = length

    def __call__(self, img):
        h, w = img.shape[:2]
        mask = np.ones((h, w), np.float32)
        g = np.random.default_rng(ps.element_key())
        y, x = g.integers(h), g.integers(w)
        y1, y2 = np.clip(y - self.length // 2, 0, h), np.clip(y + self.length // 2, 0, h)
        mask[y1:y2, x - 4 : x + 4] = 0.0
        return img * mask[..., None]


known("ships")(Cutout(8))
# -- torch names RNN
all_letters = string.ascii_letters + " .,;'"


def letterToIndex(letter):
    return all_letters.find(letter)


@known("ships")
def lineToTensor(line):
    line = line.decode()
    tensor = np.zeros((len(line), 1, len(all_letters)), np.float32)
    for li, letter in enumerate(line):
        tensor[li][0][letterToIndex(letter)] = 1
    return tensor


# -- audio
@known("ships")
def spectrogram(wav):
    frames = np.lib.stride_tricks.sliding_window_view(wav, 256)[::128]
    return np.abs(np.fft.rfft(frames * np.hanning(256))).astype(np.float32)


@known("ships")
def decode_wav(data):
    import wave

    with wave.open(io.BytesIO(data)) as w:
        return np.frombuffer(w.readframes(w.getnframes()), np.int16)


mel = np.random.default_rng(0).random((129, 40)).astype(np.float32)


@known("pure ships")
def log_mel(spec):
    return np.log(spec @ mel + 1e-6)


@known("ships")
def spec_augment(spec):
    spec = spec.copy()
    g = np.random.default_rng(ps.element_key())
    f0 = int(g.integers(0, 30))
    spec[:, f0 : f0 + 8] = 0
    return spec


# -- tabular / time series
MEAN = np.arange(4, dtype=np.float32)
STD = np.ones(4, np.float32)


@known("pure ships")
def standardize(row):
    return (row - MEAN) / STD


columns = ["a", "b", "c"]
defaults = {"a": 0.0, "b": 1.0, "c": 2.0}
categories = {"sex": ["male", "female"], "class": ["First", "Second"]}


@known("ships")
def parse_csv(line):
    values = next(csv.reader([line.decode()]))
    row = {}
    for name, value in zip(columns, values, strict=True):
        row[name] = float(value) if value else defaults[name]
    return row


@known("ships")
def encode_categories(row):
    out = dict(row)
    for name, values in categories.items():
        out[name] = np.eye(len(values))[values.index(row[name].decode())]
    return out


@known("ships")
def hash_bucket(row):
    import zlib

    row["h"] = zlib.crc32(row["id"]) % 1000
    return row


@known("pure ships")
def cyclic(row):
    day = 24 * 60 * 60
    return {**row, "sin": np.sin(row["t"] * (2 * np.pi / day)), "cos": np.cos(row["t"] * (2 * np.pi / day))}


movie_ids = {"Heat": 0, "Alien": 1}


@known("ships")
def ratings(x):
    return {"movie": movie_ids[x["title"].decode()], "rating": x["rating"]}


@known("ships")
def parse_json(line):
    row = json.loads(line)
    return {"text": row["text"].encode(), "label": row["label"]}


@known("pure ships")
def graph_features(row):
    n = len(row["nodes"])
    adjacency = np.zeros((n, n), np.float32)
    for a, b in row["edges"]:
        adjacency[a, b] = adjacency[b, a] = 1
    return adjacency


# -- detection
anchors = np.array([[10, 13], [16, 30], [33, 23]], np.float32)


def iou(a, b):
    inter = np.minimum(a[0], b[:, 0]) * np.minimum(a[1], b[:, 1])
    return inter / (a[0] * a[1] + b[:, 0] * b[:, 1] - inter)


@known("pure ships")
def assign_anchors(image, boxes):
    target = np.zeros((13, 13, 3, 5), np.float32)
    for box in boxes:
        best = int(np.argmax(iou(box[2:4], anchors)))
        i, j = int(box[1] * 13), int(box[0] * 13)
        target[i, j, best, :4] = box[:4]
        target[i, j, best, 4] = 1
    return image, target


@known("ships")
def flip_boxes(image, boxes):
    g = np.random.default_rng(ps.element_key())
    if g.random() < 0.5:
        image = image[:, ::-1]
        boxes = boxes.copy()
        boxes[:, [0, 2]] = 1 - boxes[:, [2, 0]]
    return image, boxes


@known("pure ships")
def mosaic_none(example):
    boxes = [ann["bbox"] for ann in example["annotations"]]
    return example["image"], np.array(boxes, np.float32)


# -- captcha / OCR
characters = sorted("abcdef0123456789")
char_to_num = {c: i for i, c in enumerate(characters)}


@known("ships")
def encode_single_sample(img, label):
    img = ps.image.decode_png(img, channels=1).astype(np.float32) / 255
    img = np.transpose(img, (1, 0, 2))
    return {"image": img, "label": np.array([char_to_num[c] for c in label.decode()])}


# -- captioning, with a helper closure
def make_encoder(table, limit):
    def encode(text):
        ids = [table[w] for w in text.split() if w in table]
        ids += [0] * (limit - len(ids))
        return np.array(ids[:limit])

    return encode


known("ships")(make_encoder({b"a": 1}, 20))
known("pure ships")(functools.partial(lambda x, table, k: table.get(bytes(x), 0) + k, table={b"a": 1}, k=2))
# -- chess / MIDI / proteins
AMINO = {a: i for i, a in enumerate("ACDEFGHIKLMNPQRSTVWY")}


@known("ships")
def protein_one_hot(seq):
    s = seq.decode()
    out = np.zeros((len(s), 20), np.float32)
    for i, a in enumerate(s):
        out[i, AMINO.get(a, 0)] = 1
    return out


@known("ships")
def fen_planes(fen):
    planes = np.zeros((12, 8, 8), np.float32)
    pieces = "PNBRQKpnbrqk"
    for r, row in enumerate(fen.decode().split()[0].split("/")):
        c = 0
        for ch in row:
            if ch.isdigit():
                c += int(ch)
            else:
                planes[pieces.index(ch), r, c] = 1
                c += 1
    return planes


BASES = np.frombuffer(b"ACGT", np.uint8)


@known("ships")
def dna(seq):
    return (np.frombuffer(seq, np.uint8)[:, None] == BASES).astype(np.float32)


# -- RL / trajectories
@known("pure ships")
def returns(ep):
    g, out = 0.0, []
    for r in reversed(ep["reward"].tolist()):
        g = r + 0.99 * g
        out.insert(0, g)
    return {**ep, "return": np.array(out, np.float32)}


# -- state kept, prints
seen = []


@known("")
def remember(x):
    seen.append(x)
    return x


@known("")
def debug(x):
    print(x)
    return x


n_seen = 0


@known("")
def counting(x):
    global n_seen
    n_seen += 1
    return x


cache = {}


@known("")
def memo(text):
    if text not in cache:
        cache[text] = len(text)
    return cache[text]

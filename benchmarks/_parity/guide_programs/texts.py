"""Text: lines, vocabularies, ragged tensors, BERT records, look-up tables."""

# ruff: noqa: F821
import pathlib

import numpy as np

SENTENCES = [
    "The quick brown fox",
    "jumps over the lazy dog.",
    "Sphinx of black quartz, judge my vow!",
    "",
    "¿Todavía está en casa?",
    "pack my box",
]


def labelled_lines(here):
    names = ["cowper.txt", "derby.txt", "butler.txt"]
    for number, name in enumerate(names):
        lines = [f"{name} says line {line}" for line in range(2 + number)]
        pathlib.Path(here, name).write_text("\n".join(lines) + "\n")
    sets = []
    for number, name in enumerate(names):
        lines = tf.data.TextLineDataset(str(pathlib.Path(here, name)))
        sets.append(lines.map(lambda line, number=number: (line, tf.cast(number, tf.int64))))
    ds = sets[0]
    for other in sets[1:]:
        ds = ds.concatenate(other)
    return ds.batch(4)


def lines_without_headers(here):
    path = pathlib.Path(here, "titanic.csv")
    path.write_text("survived,sex,age\n0,male,22\n1,female,38\n0,male,35\n1,female,14\n")

    def survived(line):
        return tf.not_equal(tf.strings.substr(line, 0, 1), "0")

    return tf.data.TextLineDataset(str(path)).skip(1).filter(survived)


def lines_of_several_files(here):
    for number in range(3):
        pathlib.Path(here, f"part-{number}.txt").write_text("".join(f"{number}:{line}\n" for line in range(4)))
    files = tf.data.Dataset.from_tensor_slices([str(pathlib.Path(here, f"part-{n}.txt")) for n in range(3)])
    return files.interleave(tf.data.TextLineDataset, cycle_length=3, block_length=2)


def standardised(here):
    def standardise(text):
        lowercase = tf.strings.lower(text)
        stripped = tf.strings.regex_replace(lowercase, "<br />", " ")
        return tf.strings.regex_replace(stripped, "[!\"#$%&()*+,-./:;<=>?@\\[\\]^_`{|}~']", "")

    return tf.data.Dataset.from_tensor_slices(["A <br />B!", "C. (d) [e]", "it's"]).map(standardise)


def translation_pairs(here):
    def preprocess(text):
        text = tf.strings.lower(text)
        text = tf.strings.regex_replace(text, "[^ a-z.?!,¿]", "")
        text = tf.strings.regex_replace(text, "[.?!,¿]", r" \0 ")
        text = tf.strings.strip(text)
        return tf.strings.join(["[START]", text, "[END]"], separator=" ")

    return tf.data.Dataset.from_tensor_slices(SENTENCES).map(preprocess)


def split_and_padded(here):
    def tokens(text):
        return tf.strings.split(tf.strings.lower(text))[:4]

    return tf.data.Dataset.from_tensor_slices(SENTENCES).map(tokens).padded_batch(3, padding_values="[PAD]")


def word_ids(here):
    words = tf.constant(["the", "fox", "dog", "box", "my"])
    init = tf.lookup.KeyValueTensorInitializer(words, tf.range(5, dtype=tf.int64) + 1)
    table = tf.lookup.StaticHashTable(init, default_value=0)

    def encode(text):
        return table.lookup(tf.strings.split(tf.strings.lower(text)))

    return tf.data.Dataset.from_tensor_slices(SENTENCES).map(encode)


def words_out_of_vocabulary(here):
    path = pathlib.Path(here, "vocab.txt")
    path.write_text("red\ngreen\nblue\n")
    init = tf.lookup.TextFileInitializer(
        str(path), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    table = tf.lookup.StaticVocabularyTable(init, num_oov_buckets=2)
    ds = tf.data.Dataset.from_tensor_slices(["red", "blue", "pink", "gold", "green"])
    return ds.batch(3).map(lambda colours: (colours, table.lookup(colours)))


def characters(here):
    vocabulary = sorted(set("".join(SENTENCES)))
    index = {character: number for number, character in enumerate(vocabulary)}
    text = np.array([index[character] for character in "".join(SENTENCES)])

    def split_input_target(sequence):
        return sequence[:-1], sequence[1:]

    sequences = tf.data.Dataset.from_tensor_slices(text).batch(21, drop_remainder=True)
    return sequences.map(split_input_target).batch(2, drop_remainder=True)


def unicode_characters(here):
    def split(text):
        return tf.strings.unicode_split(text, "UTF-8"), tf.strings.length(text, unit="UTF8_CHAR")

    return tf.data.Dataset.from_tensor_slices(SENTENCES).map(split)


def ragged_words(here):
    ds = tf.data.Dataset.from_tensor_slices(SENTENCES).batch(3)
    return ds.map(lambda texts: tf.strings.split(texts))


def ragged_to_dense(here):
    ds = tf.data.Dataset.from_tensor_slices(SENTENCES).batch(3)
    return ds.map(lambda texts: tf.strings.split(texts).to_tensor(default_value="", shape=[None, 5]))


def ragged_lengths(here):
    def lengths(texts):
        words = tf.strings.split(texts)
        return words.row_lengths(), tf.reduce_max(words.row_lengths()), tf.strings.length(words)

    return tf.data.Dataset.from_tensor_slices(SENTENCES).batch(2).map(lengths)


def ragged_batches(here):
    ds = tf.data.Dataset.range(1, 6).map(lambda n: tf.fill([n], n))
    return ds.ragged_batch(2)


def bigrams(here):
    def pairs(text):
        words = tf.strings.split(text)
        return tf.strings.ngrams(words, 2, separator=" ")

    return tf.data.Dataset.from_tensor_slices(SENTENCES[:3]).map(pairs)


def bert_records(here):
    path = str(pathlib.Path(here, "bert.tfrecord"))
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(5):
            ids = [101, *range(number, number + 4), 102, 0, 0]
            features = {
                "input_ids": tf.train.Feature(int64_list=tf.train.Int64List(value=ids)),
                "input_mask": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(i > 0) for i in ids])),
                "label_ids": tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 2])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    name_to_features = {
        "input_ids": tf.io.FixedLenFeature([8], tf.int64),
        "input_mask": tf.io.FixedLenFeature([8], tf.int64),
        "label_ids": tf.io.FixedLenFeature([], tf.int64),
    }

    def decode_record(record):
        example = tf.io.parse_single_example(record, name_to_features)
        for name in list(example.keys()):
            t = example[name]
            if t.dtype == tf.int64:
                t = tf.cast(t, tf.int32)
            example[name] = t
        return example

    def select(record):
        x = {"input_word_ids": record["input_ids"], "input_mask": record["input_mask"]}
        return x, record["label_ids"]

    return tf.data.TFRecordDataset(path).map(decode_record).map(select).batch(2, drop_remainder=True)


def masked_tokens(here):
    ids = np.random.default_rng(0).integers(5, 50, (6, 10))

    def mask(tokens):
        position = tf.range(tf.shape(tokens)[0])
        chosen = position % 4 == 1
        labels = tf.where(chosen, tokens, -tf.ones_like(tokens))
        return tf.where(chosen, tf.constant(3, tf.int64), tokens), labels

    return tf.data.Dataset.from_tensor_slices(ids).map(mask).batch(4)


def bucketed_by_length(here):
    lengths = [3, 9, 1, 5, 7, 2, 8]
    ds = tf.data.Dataset.from_generator(
        lambda: (list(range(n)) for n in lengths), output_signature=tf.TensorSpec([None], tf.int32)
    )
    return ds.bucket_by_sequence_length(
        lambda tokens: tf.shape(tokens)[0], bucket_boundaries=[4, 8], bucket_batch_sizes=[2, 2, 2]
    )


def hashed_words(here):
    ds = tf.data.Dataset.from_tensor_slices(SENTENCES).batch(4)
    return ds.map(lambda texts: tf.strings.to_hash_bucket_fast(texts, 100))


def skip_gram_pairs(here):
    sequence = np.array([1, 2, 3, 4, 5, 1, 6])
    windows = tf.data.Dataset.from_tensor_slices(sequence).window(3, shift=1, drop_remainder=True)
    return windows.flat_map(lambda w: w.batch(3)).map(lambda w: (w[1], tf.stack([w[0], w[2]])))

"""Time series and audio: windows, slices, frames, spectra."""

# ruff: noqa: F821
import pathlib

import numpy as np


def _series(count=40):
    return (np.sin(np.arange(count) / 3) + np.arange(count) / 50).astype(np.float32)


def windowed(here):
    ds = tf.data.Dataset.from_tensor_slices(_series())
    ds = ds.window(6, shift=1, drop_remainder=True)
    ds = ds.flat_map(lambda window: window.batch(6))
    return ds.map(lambda window: (window[:-1], window[-1])).batch(8).prefetch(1)


def windowed_columns(here):
    ds = tf.data.Dataset.from_tensor_slices({"t": np.arange(9), "v": _series(9)})
    windows = ds.window(3, shift=2, stride=1, drop_remainder=True)
    return windows.flat_map(lambda w: tf.data.Dataset.zip({"t": w["t"].batch(3), "v": w["v"].batch(3)}))


def strided_windows(here):
    ds = tf.data.Dataset.range(20)

    def sub_to_batch(sub):
        return sub.batch(5, drop_remainder=True)

    return ds.window(5, shift=4, stride=2).flat_map(sub_to_batch)


def batches_as_windows(here):
    batches = tf.data.Dataset.range(60).batch(15, drop_remainder=True)
    return batches.map(lambda batch: (batch[:-5], batch[-5:]))


def labels_of_next_batch(here):
    batches = tf.data.Dataset.range(50).batch(10, drop_remainder=True)

    def label_next_5_steps(first, second):
        return first, second[:5]

    return tf.data.Dataset.zip((batches, batches.skip(1))).map(label_next_5_steps)


def gathered_windows(here):
    series = tf.constant(_series())
    return tf.data.Dataset.range(0, 30, 3).map(lambda i: tf.gather(series, tf.range(i, i + 8)))


def sliced_windows(here):
    series = _series()

    def cut(start):
        window = tf.slice(series, [start], [6])
        return window - tf.reduce_mean(window), tf.math.reduce_std(window)

    return tf.data.Dataset.from_tensor_slices(np.arange(0, 30, 5)).map(cut)


def split_window(here):
    table = np.random.default_rng(0).random((30, 4), dtype=np.float32)

    def split(features):
        inputs = features[:, :5, :]
        labels = features[:, 5:, :]
        labels = tf.stack([labels[:, :, column] for column in (1, 2)], axis=-1)
        inputs.set_shape([None, 5, None])
        return inputs, labels

    ds = tf.data.Dataset.from_tensor_slices(table).window(7, 3, drop_remainder=True)
    return ds.flat_map(lambda w: w.batch(7)).batch(2).map(split)


def running_totals(here):
    ds = tf.data.Dataset.range(1, 8)
    return ds.scan(initial_state=tf.constant(0, tf.int64), scan_func=lambda state, x: (state + x, state + x))


def cycles_of_time(here):
    day = 24 * 60 * 60

    def encode(seconds):
        angle = tf.cast(seconds, tf.float32) * (2 * np.pi / day)
        return tf.sin(angle), tf.cos(angle)

    return tf.data.Dataset.range(0, day, 7200).map(encode).batch(5)


def grouped_by_parity(here):
    ds = tf.data.Dataset.range(12)
    return ds.group_by_window(key_func=lambda x: x % 2, reduce_func=lambda key, window: window.batch(3), window_size=3)


def decoded_waves(here):
    path = pathlib.Path(here, "tone.wav")
    samples = (np.sin(np.arange(400) / 5) * 20000).astype(np.int16)
    header = b"RIFF" + (36 + 800).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    header += b"\1\0\1\0" + (8000).to_bytes(4, "little") + (16000).to_bytes(4, "little") + b"\2\0\x10\0"
    path.write_bytes(header + b"data" + (800).to_bytes(4, "little") + samples.tobytes())

    def decode(path):
        audio, rate = tf.audio.decode_wav(tf.io.read_file(path), desired_channels=1)
        return tf.squeeze(audio, axis=-1), rate

    return tf.data.Dataset.from_tensor_slices([str(path)]).map(decode)


def spectrograms(here):
    waves = np.stack([_series(256), _series(256)[::-1]])

    def spectrogram(waveform):
        found = tf.signal.stft(waveform, frame_length=64, frame_step=32)
        return tf.abs(found)[..., tf.newaxis]

    return tf.data.Dataset.from_tensor_slices(waves).map(spectrogram)


def padded_waves(here):
    lengths = np.array([5, 9, 12])

    def padded(length):
        wave = tf.cast(tf.range(length), tf.float32)
        zeros = tf.zeros([10] - tf.minimum(tf.shape(wave), 10), dtype=tf.float32)
        return tf.concat([wave[:10], zeros], 0)

    return tf.data.Dataset.from_tensor_slices(lengths).map(padded)


def framed_audio(here):
    waves = np.stack([_series(50), _series(50)])
    return tf.data.Dataset.from_tensor_slices(waves).map(lambda wave: tf.signal.frame(wave, 20, 10, pad_end=True))


def mel_bands(here):
    matrix = tf.signal.linear_to_mel_weight_matrix(8, 33, 8000, 80.0, 3800.0)
    spectra = np.random.default_rng(1).random((3, 5, 33), dtype=np.float32)
    return tf.data.Dataset.from_tensor_slices(spectra).map(lambda s: tf.math.log(tf.tensordot(s, matrix, 1) + 1e-6))


def differences_of_lags(here):
    def lags(window):
        return tf.concat([window[1:] - window[:-1], [tf.reduce_max(window)]], axis=0), tf.argmax(window)

    ds = tf.data.Dataset.from_tensor_slices(_series(12)).batch(4)
    return ds.map(lags)

"""Sound on numpy arrays: files and spectrograms. Names and meaning are those of tf.audio and tf.signal."""

from penstock.audio.files import Sound, decode, decode_wav, encode_wav, resample
from penstock.audio.spectra import frame, linear_to_mel_weight_matrix, mel_scale, spectrogram, stft
from penstock.audio.windows import hamming_window, hann_window

__all__ = ["Sound", "decode", "decode_wav", "encode_wav", "frame", "hamming_window", "hann_window"]
__all__ += ["linear_to_mel_weight_matrix", "mel_scale", "resample", "spectrogram", "stft"]


def __dir__() -> list[str]:
    return sorted(__all__)

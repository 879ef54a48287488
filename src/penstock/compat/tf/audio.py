"""`tf.audio`: sound in WAV files."""

from __future__ import annotations

import numpy as np

from penstock import audio
from penstock.compat.op import through
from penstock.compat.teaching import missing_in
from penstock.compat.values import array_of, whole

decode_wav = through(audio.decode_wav, first=array_of)
encode_wav = through(audio.encode_wav, first=lambda samples: whole(samples, np.float32))

__getattr__ = missing_in("tf.audio", globals())

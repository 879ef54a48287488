"""Pictures for the tests: smooth enough to compress like photographs, noisy enough that no two rows are alike."""

import numpy as np


def photo(height=375, width=500, channels=3, seed=0):
    """uint8 (height, width, channels) of gradients, waves and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    waves = [128 + 80 * np.sin(x / (20 + 9 * c) + y / (30 + 7 * c) + c) for c in range(channels)]
    smooth = np.stack(waves, axis=-1) + 40 * (x / width - y / height)[..., None]
    coarse = rng.normal(0, 12, (height // 4 + 1, width // 4 + 1, channels)).repeat(4, 0).repeat(4, 1)[:height, :width]
    return np.clip(smooth + coarse + rng.normal(0, 4, smooth.shape), 0, 255).astype(np.uint8)

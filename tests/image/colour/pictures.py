"""Images of all kinds for the colour functions: odd sizes, few and many channels, batches, views, read-only arrays."""

import numpy as np
from hypothesis import strategies as st

SIDES = st.integers(1, 30)


@st.composite
def batches(draw, channels=(1, 3, 4), dtypes=(np.uint8, np.float32)):
    """(N, H, W, C): of few levels, of all, or floats also beyond 0 to 1; some not contiguous, some read-only."""
    shape = (draw(st.integers(1, 3)), draw(SIDES), draw(SIDES), draw(st.sampled_from(channels)))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    kind = draw(st.sampled_from(["levels", "few", "dark"]))
    images = rng.integers(0, {"levels": 256, "few": 4, "dark": 3}[kind], shape)
    images = images * 85 if kind == "few" else images
    if draw(st.sampled_from(dtypes)) is np.float32:
        made = (images / 255).astype(np.float32)
        made = made if draw(st.booleans()) else rng.normal(0, 2, shape).astype(np.float32)
    else:
        made = images.astype(np.uint8)
    if draw(st.booleans()):
        made = made[:, ::-1, :, :].repeat(2, axis=2)[:, :, ::2]
    made.flags.writeable = draw(st.booleans())
    return made

"""The codecs from many threads at once, and OpenCV's own threads."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import cv2
import numpy as np
import pytest
from tests.image.codec_corpus import load
from tests.image.photos import photo

from penstock.image import decode_image, encode_jpeg, encode_png

THREADS = 16
NAMES = (
    *("jpeg 420", "jpeg progressive", "jpeg YCCK", "jpeg arithmetic"),
    *("png notes", "png colour 3 depth 4 interlaced tRNS", "png colour 6 depth 16"),
    *("gif animated", "gif full table", "bmp 32", "webp lossy", "webp lossless alpha", "webp animated"),
)


def test_sixteen_threads_give_the_bits_of_one():
    files = [load()[0][name] for name in NAMES]
    alone = [decode_image(file) for file in files]
    picture = photo(40, 50)
    jpeg, png = encode_jpeg(picture), encode_png(picture)
    together = Barrier(THREADS)

    def work(first):
        together.wait()
        for k in range(3 * len(files)):
            number = (first + k) % len(files)
            np.testing.assert_array_equal(decode_image(files[number]), alone[number])
        return encode_jpeg(picture) == jpeg and encode_png(picture) == png

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(work, range(THREADS)))


CALM = "import cv2; {before}\nfrom penstock.image import encode_jpeg; import numpy as np\n"
CALM += "encode_jpeg(np.zeros((2, 2, 3), np.uint8)); print(cv2.getNumThreads())"


def threads_after(before, **environment):
    import os

    run = subprocess.run(
        [sys.executable, "-c", CALM.format(before=before)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return int(run.stdout)


@pytest.mark.system
@pytest.mark.skipif(cv2.getNumberOfCPUs() < 2, reason="one core: OpenCV has no threads of its own")
def test_opencv_has_no_threads_of_its_own_unless_its_user_wants_them():
    assert threads_after("") == 1
    assert threads_after("cv2.setNumThreads(3)") == 3
    assert threads_after("", OPENCV_FOR_THREADS_NUM="4") == 4

"""mixup and cutmix: images and labels in the same shares, partners once each, shares with a beta distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import cutmix, mixup
from penstock.image.augment.mixing import beta

COUNT = 12


def batch(dtype=np.float32, count=COUNT):
    """Image i is i everywhere, so that every value says where it is from."""
    return np.full((count, 6, 9, 2), np.arange(count).reshape(-1, 1, 1, 1), dtype)


@pytest.mark.parametrize("per_image", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_mixup_blends_images_and_labels_alike(dtype, per_image):
    images, labels = mixup(batch(dtype), np.arange(COUNT), 1.0, seed=3, num_classes=COUNT, per_image=per_image)
    assert images.dtype == (np.float64 if dtype == np.float64 else np.float32)
    assert labels.dtype == np.float32
    np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(images, np.broadcast_to((labels @ np.arange(COUNT)).reshape(-1, 1, 1, 1), images.shape),
                               rtol=1e-5)  # fmt: skip
    assert ((labels > 0).sum(axis=1) <= 2).all()
    np.testing.assert_allclose(
        labels.sum(axis=0) if not per_image else labels.sum(), 1 if not per_image else COUNT, atol=1e-5
    )
    shares = {round(float(share), 5) for i, share in enumerate(labels.diagonal()) if (labels[i] > 0).sum() == 2}
    assert len(shares) == (1 if not per_image else (labels > 0).sum() - COUNT)


@pytest.mark.parametrize("per_image", [False, True])
def test_cutmix_weighs_labels_by_what_can_be_seen(per_image):
    for seed in range(20):
        images, labels = cutmix(batch(np.uint8), np.arange(COUNT), seed=seed, num_classes=COUNT, per_image=per_image)
        assert images.dtype == np.uint8
        for i, (image, label) in enumerate(zip(images, labels, strict=True)):
            np.testing.assert_array_equal(image[..., 0], image[..., 1])
            seen = np.bincount(image[..., 0].ravel(), minlength=COUNT) / 54
            np.testing.assert_allclose(label, seen, atol=1e-6)
            rows, columns = np.nonzero(image[..., 0] != i)
            if rows.size:
                assert (np.ptp(rows) + 1) * (np.ptp(columns) + 1) == rows.size


def test_what_is_cut_is_one_for_the_batch_or_one_for_each():
    def masks(per_image):
        images, _ = cutmix(batch(), np.arange(COUNT), seed=2, num_classes=COUNT, per_image=per_image)
        changed = images[..., 0] != np.arange(COUNT).reshape(-1, 1, 1)
        return {mask.tobytes() for mask in changed if mask.any()}

    assert len(masks(per_image=False)) == 1
    assert len(masks(per_image=True)) > 6


@pytest.mark.parametrize("mix", [mixup, cutmix])
def test_labels_may_be_shares_already(mix):
    whole = np.eye(COUNT)
    a = mix(batch(), np.arange(COUNT), seed=1, num_classes=COUNT)
    b = mix(batch(), whole, seed=1)
    for ours, theirs in zip(a, b, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    smoothed = mix(batch(), 0.9 * whole + 0.1 / COUNT, seed=1)[1]
    np.testing.assert_allclose(smoothed, 0.9 * a[1] + 0.1 / COUNT, atol=1e-6)


@pytest.mark.parametrize("mix", [mixup, cutmix])
def test_the_input_stays_and_small_batches_work(mix):
    images = batch(np.float32)
    images.flags.writeable = False
    mix(images, np.arange(COUNT), num_classes=COUNT)
    np.testing.assert_array_equal(images, batch(np.float32))
    alone, label = mix(images[3:4], [3], num_classes=4)
    np.testing.assert_allclose(alone, images[3:4], rtol=1e-6)
    np.testing.assert_allclose(label, [[0, 0, 0, 1]], atol=1e-6)
    none, labels = mix(images[:0], np.zeros(0, np.int64), num_classes=4)
    assert none.shape == (0, 6, 9, 2)
    assert labels.shape == (0, 4)


@pytest.mark.parametrize("mix", [mixup, cutmix])
def test_in_a_data_set_batches_differ_and_epochs_too_and_a_pass_can_be_had_again(mix):
    ds = ps.Dataset.from_tensor_slices((batch(count=32), np.arange(32) % 4)).batch(8)
    ds = ds.map(lambda images, labels: mix(images, labels, 1.0, num_classes=4), num_parallel_calls=2)

    def epoch(number):
        return [
            np.concatenate([images.ravel(), labels.ravel()]).tobytes() for images, labels in ds.iterator(epoch=number)
        ]

    assert epoch(0) == epoch(0)
    assert len({*epoch(0), *epoch(1)}) == 8


@pytest.mark.parametrize("alpha", [0.05, 0.2, 1.0, 3.0, 50.0])
def test_shares_have_a_beta_distribution(alpha):
    """By its first moments, and against numpy's own by the Kolmogorov-Smirnov distance (p = 0.001)."""
    count = 4000
    ours = np.sort([beta(key, alpha) for key in range(count)])
    variance = 1 / (4 * (2 * alpha + 1))
    assert abs(ours.mean() - 0.5) < 4 * (variance / count) ** 0.5
    assert abs(ours.var() / variance - 1) < 0.1
    theirs = np.sort(np.random.default_rng(0).beta(alpha, alpha, 50 * count))
    places = np.concatenate([ours, theirs])
    apart = np.searchsorted(ours, places, "right") / count - np.searchsorted(theirs, places, "right") / theirs.size
    assert np.abs(apart).max() < 1.95 * (1 / count + 1 / theirs.size) ** 0.5


@given(st.integers(0, 2**64 - 1), st.floats(1e-6, 1e6))
def test_every_share_is_from_0_to_1(key, alpha):
    share = beta(key, alpha)
    assert 0 <= share <= 1
    assert share == beta(key, alpha)


@pytest.mark.parametrize("mix", [mixup, cutmix])
@pytest.mark.parametrize(
    ("images", "labels", "how", "error", "text"),
    [
        (batch()[0], [0], {}, InvalidArgumentError, r"needs shape .* got shape \(6, 9, 2\)"),
        (batch(), [0, 1], {"num_classes": 2}, InvalidArgumentError, r"labels of 12 images must be .* got shape \(2,\)"),
        (batch(), 3, {"num_classes": 4}, InvalidArgumentError, "labels of 12 images must be"),
        (batch(), np.arange(12), {}, InvalidArgumentError, "needs num_classes for integer labels"),
        (batch(), np.arange(12), {"num_classes": 11}, InvalidArgumentError, "labels must be from 0 to 10 .* got 11"),
        (batch(), -np.arange(12), {"num_classes": 12}, InvalidArgumentError, "labels must be from 0 to 11 .* got -1"),
        (batch(), np.arange(12)[:, None], {"num_classes": 12}, InvalidArgumentError, "have 1 classes, num_classes=12"),
        (batch(), np.arange(12.0), {"num_classes": 12}, InvalidTypeError, "must be integers, got float64"),
        (batch(), np.array(["cat"] * 12), {"num_classes": 12}, InvalidTypeError, "needs labels that are numbers"),
        (batch(), np.eye(12), {"alpha": 0}, InvalidArgumentError, "alpha must be a number above 0, got 0"),
        (batch(), np.eye(12), {"alpha": np.inf}, InvalidArgumentError, "alpha must be a number above 0"),
        (batch(np.bool_), np.eye(12), {}, InvalidTypeError, "mixes integers and floats, got bool"),
        (batch()[:, :0], np.eye(12), {}, InvalidArgumentError, "at least one pixel"),
    ],
)
def test_what_they_refuse(mix, images, labels, how, error, text):
    with pytest.raises(error, match=f"{mix.__name__}.*{text}"):
        mix(images, labels, **how)

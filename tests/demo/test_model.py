"""SmallNet: its gradients are right, it learns, and it repeats itself bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.demo.model import SmallNet


@pytest.fixture
def batch():
    rng = np.random.default_rng(3)
    return rng.random((8, 16, 16, 3), np.float32), rng.integers(0, 3, 8)


def loss_of(net, images, labels):
    logits = net.logits(images).astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return -(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))[np.arange(len(labels)), labels].mean()


def test_gradients_equal_differences(batch):
    images, labels = batch
    net = SmallNet(3, seed=1, widths=(4, 5, 6))
    before = [parameter.copy() for parameter in net.parameters]
    gradients = net.gradients(images, labels)[0]
    rng = np.random.default_rng(0)
    for parameter, gradient in zip(net.parameters, gradients, strict=True):
        direction = rng.standard_normal(parameter.shape).astype(np.float32)
        step = np.float32(1e-3)
        start = parameter.copy()
        parameter += step * direction
        above = loss_of(net, images, labels)
        parameter[...] = start - step * direction
        below = loss_of(net, images, labels)
        parameter[...] = start
        slope = (above - below) / (2 * step)
        assert slope == pytest.approx(float((gradient * direction).sum()), rel=0.03, abs=2e-3)
    for parameter, old in zip(net.parameters, before, strict=True):
        np.testing.assert_array_equal(parameter, old)


def test_it_learns_by_heart(batch):
    images, labels = batch
    net = SmallNet(3, seed=1)
    for _ in range(60):
        loss, right = net.step(images, labels)
    assert right == len(labels)
    assert loss < 0.1
    assert net.accuracy(images, labels) == 1.0


def test_the_same_seed_and_batches_give_the_same_bits(batch):
    images, labels = batch
    nets = [SmallNet(3, seed=1), SmallNet(3, seed=1)]
    # The second gets its images from another place in memory: alignment must not matter.
    shifted = np.empty(images.size + 5, np.float32)[5:].reshape(images.shape)
    shifted[...] = images
    losses = [[net.step(x, labels)[0] for _ in range(5)] for net, x in zip(nets, (images, shifted), strict=True)]
    assert losses[0] == losses[1]
    for one, other in zip(nets[0].parameters, nets[1].parameters, strict=True):
        np.testing.assert_array_equal(one, other)


def test_another_seed_is_another_net(batch):
    assert SmallNet(3, seed=1).step(*batch)[0] != SmallNet(3, seed=2).step(*batch)[0]

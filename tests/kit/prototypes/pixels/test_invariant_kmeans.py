"""Lookalikes are found whatever their colors, and whatever is outside the window."""

import pytest
import torch

from celstack_kit.prototypes.pixels import SAMPLE_SIZES, Pixels
from celstack_kit.prototypes.pixels.invariant_kmeans import _spherical_kmeans, invariant_kmeans

KINDS = 3
SIDE = 12


def window(sigma=3.0):
    distance = (torch.arange(SIDE) - (SIDE - 1) / 2) / sigma
    bell = torch.exp(-0.5 * distance.square())
    return bell[:, None] * bell


def originals():
    torch.manual_seed(4)
    return torch.rand(KINDS, 3, SIDE, SIDE)


def copies(count, negatives=False, noise=0.02):
    """Copy originals in turn, each copy in colors of its own."""
    kinds = torch.arange(count) % KINDS
    gains = 0.2 + 0.8 * torch.rand(count, 3, 1, 1)
    if negatives:
        gains *= torch.where(torch.rand(count, 1, 1, 1) < 0.5, -1.0, 1.0)
    images = originals()[kinds] * gains + torch.rand(count, 3, 1, 1)
    return images + noise * torch.randn_like(images)


def likeness(found, wanted):
    """Return how alike images are through the window, between -1 and 1: a row for each."""
    rows = []
    for images in (found, wanted):
        weights = window().square() / window().square().sum()
        away = images - (images * weights).sum((2, 3), keepdim=True)
        away = away / (away.square() * weights).sum((2, 3), keepdim=True).sqrt() * window()
        rows.append(torch.nn.functional.normalize(away.flatten(1), dim=1))
    return rows[0] @ rows[1].T


def find(images, count=KINDS, inverted=False):
    torch.manual_seed(0)
    return invariant_kmeans(images, count, window(), inverted)


def test_each_group_is_one_original_whatever_its_colors():
    alike = likeness(find(copies(60)), originals())

    assert sorted(alike.argmax(1).tolist()) == [0, 1, 2]
    assert (alike.amax(1) > 0.97).all()


@pytest.mark.parametrize("inverted", [True, False])
def test_negatives_are_the_same_only_if_told_so(inverted):
    alike = likeness(find(copies(90, negatives=True), inverted=inverted), originals()).abs()

    found = sorted(alike.argmax(1).tolist())
    assert (found == [0, 1, 2] and bool((alike.amax(1) > 0.97).all())) == inverted


def test_what_is_outside_the_window_does_not_matter():
    images = copies(60)
    images[:, :, :, 0] = 5 * torch.rand(60, 3, SIDE)
    images[:, :, :, -1] = 5 * torch.rand(60, 3, SIDE)

    alike = likeness(find(images), originals())

    assert sorted(alike.argmax(1).tolist()) == [0, 1, 2]


def test_images_that_look_like_nothing_do_not_take_a_group():
    images = torch.cat([copies(60), torch.rand(10, 3, SIDE, SIDE)])

    alike = likeness(find(images), originals())

    assert sorted(alike.argmax(1).tolist()) == [0, 1, 2]
    assert (alike.amax(1) > 0.95).all()


def test_groups_are_pictures():
    found = find(copies(30))

    assert found.shape == (KINDS, 3, SIDE, SIDE)
    assert found.amin() >= 0.0
    assert found.amax() <= 1.0


@pytest.mark.parametrize("images", [torch.zeros(5, 3, SIDE, SIDE), copies(2), copies(1)])
def test_few_or_empty_images_are_no_error(images):
    assert torch.isfinite(find(images)).all()


def test_sprites_start_as_lookalikes_through_their_masks():
    torch.manual_seed(0)
    sprites = Pixels(count=KINDS, start="invariant_kmeans", mask_sigma=3.0)
    sprites.prepare(copies(60), with_alpha=True)

    assert sprites.sample_size == SAMPLE_SIZES["invariant_kmeans"]
    assert Pixels(count=KINDS).sample_size == 100
    alike = likeness(sprites.images()[:, :3].detach(), originals())
    assert sorted(alike.argmax(1).tolist()) == [0, 1, 2]


def test_smaller_sprites_look_through_the_same_window():
    torch.manual_seed(0)
    small = Pixels(count=KINDS, start="invariant_kmeans", size=(6, 6), mask_sigma=1.5)
    small.prepare(copies(60), with_alpha=True)

    large = torch.nn.functional.interpolate(small.images()[:, :3].detach(), (SIDE, SIDE))
    assert sorted(likeness(large, originals()).argmax(1).tolist()) == [0, 1, 2]


@pytest.mark.parametrize(("alpha", "mask", "sees"), [(True, "gaussian", 0), (True, "opaque", 1),
                                                     (False, "gaussian", 1)])  # fmt: skip
def test_who_has_no_mask_looks_at_all_of_an_image(alpha, mask, sees, monkeypatch):
    windows = []

    def spy(images, count, window, inverted):
        windows.append(window)
        return invariant_kmeans(images, count, window, inverted)

    monkeypatch.setattr("celstack_kit.prototypes.pixels.invariant_kmeans", spy)
    Pixels(count=1, start="invariant_kmeans", mask=mask, mask_sigma=1.0).prepare(
        copies(5), alpha
    )

    assert round(float(windows[0][0, 0])) == sees


def test_an_image_unlike_all_groups_pulls_none(monkeypatch):
    one, other = torch.eye(2)
    against = -(one + other) / 2**0.5
    seen = torch.stack([one] * 10 + [other] * 10 + [against] * 18)
    monkeypatch.setattr(torch, "randperm", lambda count: torch.tensor([0, 10, *range(count)]))

    _, centers = _spherical_kmeans(seen, 2, inverted=False)

    torch.testing.assert_close(centers, torch.eye(2))

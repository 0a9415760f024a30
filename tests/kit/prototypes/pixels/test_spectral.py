"""Neighbors are found wherever they are, and groups are held together by those in between."""

import pytest
import torch

from celstack_kit.prototypes.pixels import SAMPLE_SIZES, Pixels
from celstack_kit.prototypes.pixels.spectral import (
    NUM_NEIGHBORS,
    SHIFTS,
    _affine_maps,
    _align_polarity,
    _aligned_mean,
    _nearest_neighbors,
    _normalized_cut,
    _to_gray,
    _warped_vectors,
    spectral_clusters,
)

SIDE = 20
PER_PIXEL = 2 / SIDE


def window(sigma=4.5):
    distance = (torch.arange(SIDE) - (SIDE - 1) / 2) / sigma
    bell = torch.exp(-0.5 * distance.square())
    return bell[:, None] * bell


def mark(kind, right=0.0, down=0.0):
    """Draw an upright bar, a lying bar, or a ring."""
    steps = torch.arange(SIDE) - (SIDE - 1) / 2
    y, x = steps[:, None] - down, steps[None] - right
    far = (x.square() + y.square()).sqrt()
    drawn = [x.abs() + 0 * y, y.abs() + 0 * x, (far - 5).abs()][kind]
    return torch.sigmoid(3 * (1.6 - drawn)).expand(3, -1, -1)


def marks(count, reach=1.0, negatives=True, seed=0):
    """Draw all kinds in turn, each in colors of its own, moved a little, unevenly lit."""
    random = torch.Generator().manual_seed(seed)
    images = []
    for index in range(count):
        right, down = (reach * (2 * torch.rand(2, generator=random) - 1)).tolist()
        gain, offset = torch.rand(2, 3, 1, 1, generator=random)
        sign = 1 if not negatives or torch.rand((), generator=random) < 0.5 else -1
        slope = 0.5 * torch.rand((), generator=random) * torch.linspace(-1, 1, SIDE)
        image = sign * (0.3 + gain) * mark(index % 3, right, down) + offset + slope
        images.append(image + 0.02 * torch.randn(3, SIDE, SIDE, generator=random))
    return torch.stack(images)


def find(images, count=3, inverted=True):
    torch.manual_seed(0)
    return spectral_clusters(images, count, window(), inverted)


def kinds(found):
    """Tell which mark each picture shows, and how alike they are, between 0 and 1."""
    seen = []
    for images in (found, torch.stack([mark(kind) for kind in range(3)])):
        away = images.mean(1) - (images.mean(1) * window()).sum((1, 2), True) / window().sum()
        seen.append(torch.nn.functional.normalize((away * window()).flatten(1), dim=1))
    alike = (seen[0] @ seen[1].mT).abs()
    return sorted(alike.argmax(1).tolist()), float(alike.amax(1).min())


@pytest.mark.parametrize("negatives", [True, False])
def test_each_group_shows_one_thing_whatever_its_place_and_light(negatives):
    found, alike = kinds(find(marks(90, negatives=negatives), inverted=negatives))

    assert found == [0, 1, 2]
    assert alike > 0.9


@pytest.mark.parametrize("dark", [{0}, {2}, {0, 1}, {1, 2}])
def test_all_pictures_have_the_polarity_of_most_of_them(dark):
    # Three that share a middle.
    light = torch.stack([mark(kind) * 0.3 + mark(0) * mark(1) * 0.5 for kind in range(3)])
    drawn = torch.stack([1 - one if n in dark else one for n, one in enumerate(light)])

    found = _align_polarity(drawn, window())

    torch.testing.assert_close(found, light if len(dark) == 1 else 1 - light)


def test_pictures_are_of_colors():
    found = find(marks(30))

    assert found.shape == (3, 3, SIDE, SIDE)
    assert found.amin() >= 0.0
    assert found.amax() <= 1.0


def test_what_is_moved_is_shown_once():
    here, there = mark(0), mark(0, right=5.0)
    images = torch.stack([here, there] * 5)
    rest = torch.eye(2, 3)
    look_right = rest + torch.tensor([[0.0, 0.0, 5 * PER_PIXEL], [0.0, 0.0, 0.0]])
    maps = torch.stack([rest, look_right])
    wide = torch.ones(SIDE, SIDE)
    seen = _warped_vectors(images.mean(1, keepdim=True), maps, wide)

    shown = _aligned_mean(images, seen, maps, wide, inverted=False)[0, SIDE // 2]

    middle = (shown.amax() + shown.amin()) / 2
    assert (shown > middle).tolist() == (here[0, SIDE // 2] > 0.5).tolist()


def test_only_who_inverts_ties_a_negative():
    images = torch.stack([mark(0), 1 - mark(0), mark(0, right=3.0), mark(1)])
    seen = _warped_vectors(images.mean(1, keepdim=True), _affine_maps(images), window())

    first = {}
    for inverted in (True, False):
        one, other = _nearest_neighbors(seen, inverted)
        first[inverted] = other[one == 0][0].item()

    assert first == {True: 1, False: 2}


def test_nobody_is_tied_to_itself():
    seen = _warped_vectors(marks(9).mean(1, keepdim=True), _affine_maps(marks(1)), window())

    one, other = _nearest_neighbors(seen, inverted=True)

    assert len(one) == 9 * NUM_NEIGHBORS
    assert (one != other).all()


def test_a_little_further_is_as_good_as_there():
    shift = max(SHIFTS) / PER_PIXEL
    images = torch.stack([mark(0), mark(0, right=shift)]).mean(1, keepdim=True)

    seen = _warped_vectors(images, _affine_maps(images), window())

    alike = seen[0] @ seen[1, 0]
    assert alike[0] < 0.97
    assert alike.max() > 0.98


def test_gain_offset_and_slope_of_the_light_do_not_matter():
    image = mark(2)[:1]
    lit = 0.4 * image + 0.3 + 0.2 * torch.linspace(-1, 1, SIDE)[:, None]

    seen = _warped_vectors(torch.stack([image, lit]), _affine_maps(image), window())

    torch.testing.assert_close(seen[0, 0], seen[1, 0], atol=1e-4, rtol=0.0)


def test_those_in_between_hold_a_group_together():
    chain = torch.arange(9)
    one = torch.cat([chain, 10 + chain, torch.tensor([4])])
    other = torch.cat([chain + 1, 11 + chain, torch.tensor([14])])
    torch.manual_seed(0)

    group = _normalized_cut((one, other), 20, 2).tolist()

    assert group[:10] == [group[0]] * 10
    assert group[10:] == [1 - group[0]] * 10


def test_who_is_like_nobody_is_nobody_s_neighbor():
    torch.manual_seed(0)
    images = torch.cat([marks(30, reach=0.2), torch.rand(3, 3, SIDE, SIDE)])
    seen = _warped_vectors(_to_gray(images, window()), _affine_maps(images), window())

    one, other = _nearest_neighbors(seen, inverted=True)

    assert set(range(30)) <= set(one.tolist())
    assert max(*one.tolist(), *other.tolist()) < 30


def test_who_has_no_neighbors_is_in_no_group():
    one, other = torch.tensor([0, 1, 3, 4]), torch.tensor([1, 2, 4, 5])
    torch.manual_seed(0)

    group = _normalized_cut((one, other), 8, 2).tolist()

    assert group[:3] == [group[0]] * 3
    assert group[3:6] == [1 - group[0]] * 3
    assert group[6:] == [-1, -1]


@pytest.mark.parametrize("channel", [0, 1, 2])
def test_the_channel_of_most_contrast_is_seen_and_light_stays_light(channel):
    image = torch.full((1, 3, SIDE, SIDE), 0.5)
    image[:, channel] = mark(0)[0]

    gray = _to_gray(image, window())

    torch.testing.assert_close(gray[0, 0], mark(0)[0], atol=1e-4, rtol=0.0)


@pytest.mark.parametrize("images", [torch.zeros(8, 3, SIDE, SIDE), marks(2), marks(1)])
@pytest.mark.parametrize("inverted", [True, False])
def test_few_or_empty_images_are_no_error(images, inverted):
    assert torch.isfinite(find(images, inverted=inverted)).all()


def test_sprites_start_as_neighbors_through_their_masks():
    torch.manual_seed(0)
    sprites = Pixels(count=3, start="spectral", mask_sigma=4.5, inverted=True)

    sprites.prepare(marks(90), with_alpha=True)

    assert sprites.sample_size == SAMPLE_SIZES["spectral"]
    assert kinds(sprites.images()[:, :3].detach())[0] == [0, 1, 2]

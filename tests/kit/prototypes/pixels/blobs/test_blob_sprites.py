import math

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from celstack import CelstackError
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.prototypes.pixels.blobs import blob_sprites
from celstack_kit.prototypes.pixels.blobs.isolated import find_isolated
from celstack_kit.prototypes.pixels.blobs.patches import Framing

CORNERS = {
    "bar": [(-1, -0.4), (1, -0.4), (1, 0.4), (-1, 0.4)],
    "arrow": [(-0.9, 0.8), (0.0, -1.0), (0.9, 0.8), (0.0, 0.3)],
}


def scenes(count=60, turned=False, sized=False, side=64, seed=0):
    """Two shapes of any color on gray, each alone, at all angles and sizes if asked."""
    random = np.random.default_rng(seed)
    images = []
    for _ in range(count):
        big = Image.new("RGB", (4 * side, 4 * side), (120, 120, 120))
        draw = ImageDraw.Draw(big)
        for half, corners in enumerate(CORNERS.values()):
            radius = random.uniform(7, 11) if sized else 9.0
            turn = random.uniform(0, 2 * math.pi) if turned else 0.0
            x, y = random.uniform(14, side - 14), 16 + 32 * half
            cos, sin = math.cos(turn), math.sin(turn)
            places = [
                (4 * (x + radius * (u * cos - v * sin)), 4 * (y + radius * (u * sin + v * cos)))
                for u, v in corners
            ]
            draw.polygon(
                places, fill=[(220, 40, 40), (40, 200, 60), (50, 80, 240)][random.integers(3)]
            )
        images.append(np.asarray(big.resize((side, side), Image.Resampling.BOX)))
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255


def best_overlap(mask, corners):
    """The largest intersection over union of a mask and a shape, over angles and sizes."""
    side = mask.shape[0]
    best = 0.0
    for turn in np.linspace(0, 2 * math.pi, 72, endpoint=False):
        for radius in np.linspace(0.3, 0.5, 9) * side:
            cos, sin = math.cos(turn), math.sin(turn)
            places = [
                (
                    side / 2 + radius * (u * cos - v * sin),
                    side / 2 + radius * (u * sin + v * cos),
                )
                for u, v in corners
            ]
            drawn = Image.new("L", (side, side))
            ImageDraw.Draw(drawn).polygon(places, fill=1)
            drawn = np.asarray(drawn, bool)
            # Sprites are centered at their centroid, shapes at their corners.
            shift = np.argwhere(mask).mean(0) - np.argwhere(drawn).mean(0)
            drawn = np.roll(drawn, np.round(shift).astype(int), (0, 1))
            best = max(best, (mask & drawn).sum() / (mask | drawn).sum())
    return best


@pytest.mark.parametrize(
    ("varying", "options"),
    [
        (["color"], {}),
        (["color", "size"], {"sized": True}),
        (["color", "size", "angle"], {"sized": True, "turned": True}),
    ],
)
def test_each_shape_becomes_a_sprite(varying, options):
    torch.manual_seed(0)

    sprites = blob_sprites(scenes(**options), 2, 1, (32, 32), varying)

    masks = (sprites[:, -1] > 0.5).numpy()
    overlaps = [[best_overlap(mask, shape) for mask in masks] for shape in CORNERS.values()]
    straight, crossed = overlaps[0][0] + overlaps[1][1], overlaps[0][1] + overlaps[1][0]
    assert max(straight, crossed) / 2 > 0.8
    assert sprites[:, :3].std(1).max() < 1e-6  # gray: colors vary


def test_colors_that_do_not_vary_are_kept():
    images = torch.full((60, 3, 64, 64), 0.5)
    random = np.random.default_rng(0)
    for image in images:
        for half, color in enumerate([(0.9, 0.1, 0.1), (0.1, 0.1, 0.9)]):
            row, column = 32 * half + random.integers(2, 22), random.integers(2, 54)
            square = (slice(None), slice(row, row + 8), slice(column, column + 8))
            image[square] = torch.tensor(color)[:, None, None]

    sprites = blob_sprites(images, 2, 1, (12, 12), [])

    middles = sorted(sprites[:, :3, 6, 6].tolist())
    assert middles[0] == pytest.approx([0.1, 0.1, 0.9], abs=0.05)
    assert middles[1] == pytest.approx([0.9, 0.1, 0.1], abs=0.05)


def test_a_prototype_starts_with_blobs_and_counts_its_views():
    torch.manual_seed(0)
    pixels = Pixels(2, (24, 24), start="blobs", views=2, varying=["color"])

    pixels.prepare(scenes(), with_alpha=True)

    assert pixels.count == 4
    assert pixels.images().shape == (4, 4, 24, 24)
    same = Pixels(2, (24, 24), start="blobs", views=2, varying=["color"])
    same.allocate((3, 64, 64), with_alpha=True)
    same.load_state_dict(pixels.state_dict())
    assert torch.equal(same.images(), pixels.images())


def test_too_few_objects_are_refused_with_a_remedy():
    with pytest.raises(CelstackError, match=r"only 0 isolated objects .* take fewer"):
        blob_sprites(torch.full((10, 3, 32, 32), 0.5), 3, 1, (8, 8), [])


def test_objects_that_touch_or_are_cut_off_are_not_isolated():
    image = np.full((1, 3, 32, 32), 0.5)
    mask = np.zeros((1, 32, 32), bool)
    places = {"whole": (4, 4, 0), "cut": (0, 20, 0), "red": (18, 4, 0), "green": (18, 12, 1)}
    for row, column, channel in places.values():
        box = (slice(row, row + 8), slice(column, column + 8))
        mask[(0, *box)] = True
        image[(0, channel, *box)] = 1.0
        image[(0, 2, *box)] = 0.0

    (blob,) = find_isolated(image, mask)

    assert (blob.row, blob.column) == (3, 3)


def test_a_turned_blob_is_cut_out_clockwise():
    image, mask = np.zeros((1, 1, 21, 21)), np.zeros((1, 21, 21), bool)
    mask[0, 9:12, 4:17] = True
    image[0, 0, 9:12] = 0.5
    image[0, 0, 9:12, 4:10] = 1.0  # bright on the left
    (blob,) = find_isolated(image, mask)

    turned = Framing(unit=15.0, angles=(0.0, math.pi / 2), smallest=15.0).cut(
        blob, (15, 15), 1.0, blurred=False
    )[1]

    assert turned[-1, :, 7].sum() > 10 > turned[-1, 7].sum()
    assert turned[0, 3, 7] > 0.9  # the left end of a bar turned clockwise is on top
    assert turned[0, 12, 7] < 0.6


def test_what_varies_is_asked_of_blobs_only():
    with pytest.raises(CelstackError, match='varying: only for start = "blobs"'):
        Pixels(2, varying=["color"])


def test_backgrounds_have_no_blobs():
    with pytest.raises(CelstackError, match='start = "blobs": only for sprites'):
        Pixels(1, start="blobs").prepare(scenes(4), with_alpha=False)

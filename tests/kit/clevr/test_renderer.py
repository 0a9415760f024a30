import numpy as np
import pytest
from scipy import ndimage

from celstack_kit.clevr.layout import LAMPS, SHAPES, ClevrObject, ClevrScene
from celstack_kit.clevr.renderer import Look, instance_map, render

pytest.importorskip("mitsuba")
pytest.importorskip("mitsuba_oidn")

EYE = (7.5, -6.5, 5.35)


def thing(x, y, shape="sphere", material="rubber", color="red", size="large", turn=0.0):
    return ClevrObject(shape, material, color, size, float(x), float(y), float(turn))


def scene_of(*objects):
    return ClevrScene(objects, EYE, LAMPS)


def shown(*objects, side=32, samples=16, seed=0, **look):
    scene = scene_of(*objects)
    ids = instance_map(scene, side)
    return ids, render(scene, side, samples, seed, Look(**look))


@pytest.mark.parametrize("shape", SHAPES)
def test_an_object_is_seen_where_the_scene_says(shape):
    scene = scene_of(thing(-1.5, 0.5, shape), thing(1.5, 1.5, shape, "metal", size="small"))

    ids = instance_map(scene, 64)

    for number, expected in enumerate(scene.project([t.center for t in scene.objects]), 1):
        found = (np.argwhere(ids == number).mean(0)[::-1] + 0.5) / 64
        np.testing.assert_allclose(found, expected, atol=0.02)


def test_the_ground_is_background():
    assert not instance_map(scene_of(), 16).any()


def test_the_nearer_object_hides_the_other_one():
    behind, before = thing(0, 0), thing(1.5, -1.2)

    alone = instance_map(scene_of(behind), 64) == 1
    both = instance_map(scene_of(behind, before), 64)

    hidden = alone & (both == 2)
    assert hidden.sum() > 20
    assert ((both == 1) == (alone & ~hidden)).all()


def test_a_cube_is_turned():
    masks = [instance_map(scene_of(thing(0, 0, "cube", turn=t)), 32) for t in (0, np.pi / 4)]
    quarter = instance_map(scene_of(thing(0, 0, "cube", turn=np.pi / 2)), 32)

    assert (masks[0] != masks[1]).sum() > 5
    np.testing.assert_array_equal(masks[0], quarter)


def test_masks_agree_with_pixels():
    ids, image = shown(thing(-1, 0), thing(1.5, 1, "cube", color="blue"), side=48)
    red, blue = image[..., 0].astype(int), image[..., 2].astype(int)

    # Pixels at an edge show both sides of it.
    inside = [ndimage.binary_erosion(ids == number) for number in (0, 1, 2)]
    assert (red - blue)[inside[1]].min() > 20
    assert (blue - red)[inside[2]].min() > 20
    gray = np.abs(red - blue) < 40
    assert gray[inside[0]].mean() > 0.95
    assert min(mask.sum() for mask in inside) > 20


def test_shadows_fall_on_the_ground():
    _, empty = shown(samples=64)
    ids, image = shown(thing(0, 0), samples=64)

    darker = image[ids == 0].mean(1) / empty[ids == 0].mean(1)
    assert darker.min() < 0.8
    assert np.median(darker) > 0.95


def test_metal_shines_and_rubber_does_not():
    brightest = {}
    for material in ("rubber", "metal"):
        ids, image = shown(thing(0, 0, material=material, color="brown"), samples=64)
        levels = image[ids == 1].mean(1)
        brightest[material] = levels.max() / np.median(levels)

    assert brightest["metal"] > 1.5 > brightest["rubber"]


def test_the_ground_is_a_gray_without_a_horizon():
    _, image = shown(samples=64)

    assert np.ptp(image, axis=2).max() <= 2
    rows = image.mean((1, 2))
    assert 100 < rows.mean() < 160
    assert np.abs(np.diff(rows)).max() < 10


def test_the_same_arguments_give_the_same_image():
    _, first = shown(thing(0, 0), thing(2, 1, "cube", "metal"), seed=3)
    _, again = shown(thing(0, 0), thing(2, 1, "cube", "metal"), seed=3)
    _, other = shown(thing(0, 0), thing(2, 1, "cube", "metal"), seed=4)

    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_more_samples_are_less_noise():
    many = shown(thing(0, 0), samples=400, seed=9)[1].astype(float)

    few, more = (np.abs(shown(thing(0, 0), samples=n)[1] - many).mean() for n in (4, 64))
    assert more < 0.6 * few


def test_the_denoiser_removes_most_of_the_noise():
    many = shown(thing(0, 0), samples=800, seed=9)[1].astype(float)

    clean, noisy = (
        np.abs(shown(thing(0, 0), samples=8, denoise=denoise)[1] - many).mean()
        for denoise in (True, False)
    )
    assert clean < 0.5 * noisy


def test_edges_of_objects_survive_the_denoiser():
    ids, image = shown(thing(0, 0), side=64, samples=8)
    red = image[..., 0].astype(int) - image[..., 2]

    inside = ndimage.binary_erosion(ids == 1)
    outside = ~ndimage.binary_dilation(ids == 1, iterations=2)
    assert red[inside].min() > 3 * red[outside].max()


@pytest.mark.parametrize(
    ("option", "value", "channel"),
    [("ground", (0.6, 0.3, 0.3), 0), ("sky", 0.6, None), ("lamps", 1.5, None)],
)
def test_the_look_of_images_can_be_changed(option, value, channel):
    usual, other = shown()[1].astype(float), shown(**{option: value})[1].astype(float)

    brighter = other.mean((0, 1)) - usual.mean((0, 1))
    assert brighter[0] > 5
    assert (channel is None) == (abs(brighter[0] - brighter[2]) < 3)

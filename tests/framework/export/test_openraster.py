import io
import zipfile
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from celstack import EMPTY, Rendering, Scene
from celstack.export.openraster import make_cels, round_cels, write_openraster
from celstack.interfaces.compositor import Compositor

STEP = 1 / 255
CIRCLE = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
"""The second hides the first, the third the second, the first the third."""


class Any(Compositor):
    """Stacks by whatever matrix it is given."""

    def __init__(self):
        self.layers = 3

    def occlusion(self, logits, training):
        raise NotImplementedError


def rendered(layers, occlusion, backdrop, sprite=None):
    """Compose one image by Eq. 2."""
    occlusion = torch.as_tensor(occlusion, dtype=torch.float32)[None]
    image, visible = Any().compose(layers[None], backdrop[None], occlusion)
    count = len(layers)
    scene = Scene(
        sprite=torch.tensor([sprite or list(range(count))]),
        sprite_params=torch.zeros(1, count, 0),
        layer_params=torch.zeros(1, count, 0),
        occlusion=occlusion,
        background=torch.tensor([0]),
        background_params=torch.zeros(1, 0),
    )
    return scene, Rendering(image, layers[None], backdrop[None], visible)


def soft_matrix(generator, count):
    below = torch.rand(count, count, generator=generator).tril(-1)
    return below + (1 - below.T).triu(1)


def ordered(count, order=None):
    matrix = torch.ones(count, count).tril(-1)
    place = torch.tensor(order if order is not None else range(count)).argsort()
    return matrix[place][:, place]


def flattened(path):
    """Read a file as another program would: the topmost layer comes first in the stack."""
    with zipfile.ZipFile(path) as archive:
        image = ElementTree.fromstring(archive.read("stack.xml"))
        canvas = Image.new("RGBA", (int(image.get("w")), int(image.get("h"))))
        for layer in reversed(list(image.iter("layer"))):
            assert layer.get("composite-op") == "svg:src-over"
            with Image.open(io.BytesIO(archive.read(layer.get("src")))) as picture:
                assert picture.mode == "RGBA"
                canvas.alpha_composite(picture, (int(layer.get("x")), int(layer.get("y"))))
    return canvas


def farthest(path, image):
    """Return the largest difference of a file's layers to an image, in steps of 8 bits."""
    there = np.asarray(flattened(path)).astype(float)
    assert (there[..., 3] == 255).all()
    wanted = image.clamp(0, 1).expand(3, -1, -1).permute(1, 2, 0).numpy() * 255
    return np.abs(there[..., :3] - wanted.round()).max()


def noise(count, channels=3, size=(9, 11), seed=0):
    generator = torch.Generator().manual_seed(seed)
    layers = torch.rand(count, channels + 1, *size, generator=generator)
    # Much of a layer is fully opaque or fully transparent.
    layers[:, -1] = (layers[:, -1] * 2 - 0.5).clamp(0, 1)
    return layers, torch.rand(channels, *size, generator=generator), generator


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["ordered", "other order", "soft", "circle"])
def test_flattening_the_layers_gives_the_reconstruction(tmp_path, kind, channels):
    layers, backdrop, generator = noise(3, channels)
    occlusion = {
        "ordered": ordered(3),
        "other order": ordered(3, [2, 0, 1]),
        "soft": soft_matrix(generator, 3),
        "circle": CIRCLE,
    }[kind]
    scene, rendering = rendered(layers, occlusion, backdrop)

    write_openraster(tmp_path / "a.ora", scene, rendering)

    assert farthest(tmp_path / "a.ora", rendering.image[0]) <= 2


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31), count=st.integers(1, 12), faint=st.booleans())
def test_rounding_never_adds_up(seed, count, faint):
    layers, backdrop, generator = noise(count, size=(4, 4), seed=seed)
    # Colours and masks that learning left a little outside 0 and 1; masks of hardly anything.
    layers = layers * 1.06 - 0.03
    if faint:
        layers[:, -1] *= 0.02
    scene, rendering = rendered(layers, soft_matrix(generator, count), backdrop)

    cels = round_cels(make_cels(scene, rendering), rendering.image[0])

    flat = torch.zeros_like(backdrop)
    for cel in cels:
        for values in (cel.color, cel.alpha):
            assert ((values * 255 - (values * 255).round()).abs() < 1e-3).all()
            assert values.min() >= 0
            assert values.max() <= 1
        # A program of 8 bits rounds after each layer.
        flat = ((flat + cel.alpha * (cel.color - flat)) * 255).round() / 255
    assert (flat - rendering.image[0].clamp(0, 1)).abs().max() < 1.51 * STEP


def test_a_true_order_keeps_layers_whole_and_puts_the_nearest_on_top():
    layers, backdrop, _ = noise(3)
    scene, rendering = rendered(layers, ordered(3, [2, 0, 1]), backdrop)

    cels = make_cels(scene, rendering)

    assert [cel.name for cel in cels] == [
        "background 0",
        "layer 2: sprite 2",
        "layer 0: sprite 0",
        "layer 1: sprite 1",
    ]
    assert torch.equal(cels[1].alpha, layers[2, -1])


def test_layers_that_do_not_touch_are_whole_in_any_case():
    layers = torch.zeros(3, 4, 1, 3)
    for number in range(3):
        layers[number, :, 0, number] = 1.0
    scene, rendering = rendered(layers, CIRCLE, torch.zeros(3, 1, 3))

    cels = make_cels(scene, rendering)

    assert [cel.alpha.sum().item() for cel in cels[1:]] == [1, 1, 1]
    assert not any("visible part" in cel.name for cel in cels)


def test_layers_that_hide_one_another_in_a_circle_are_dark():
    white = torch.ones(3, 4, 1, 1)
    scene, rendering = rendered(white, CIRCLE, torch.ones(3, 1, 1))

    names = [cel.name for cel in make_cels(scene, rendering)]

    assert rendering.image.max() == 0
    assert names[:2] == ["background 0", "hidden by one another"]
    assert names[2:] == [f"layer {n}: sprite {n}, visible part" for n in range(3)]


def test_layers_that_hide_one_another_by_halves_are_as_much_as_is_seen():
    opaque = torch.ones(2, 4, 1, 1)
    opaque[0, 0] = 0
    scene, rendering = rendered(opaque, [[0, 0.5], [0.5, 0]], torch.zeros(3, 1, 1))

    _, rear, front = make_cels(scene, rendering)

    assert (rear.alpha.item(), front.alpha.item()) == (1.0, 0.5)


def test_empty_layers_are_left_out():
    layers, backdrop, _ = noise(2)
    layers[1, -1] = 0
    scene, rendering = rendered(layers, ordered(2), backdrop, sprite=[5, EMPTY])

    assert [cel.name for cel in make_cels(scene, rendering)] == [
        "background 0",
        "layer 0: sprite 5",
    ]


def test_the_archive_is_as_the_specification_wants_it(tmp_path):
    layers, backdrop, _ = noise(2, size=(300, 520))
    scene, rendering = rendered(layers, ordered(2), backdrop)

    write_openraster(tmp_path / "a.ora", scene, rendering)

    start = (tmp_path / "a.ora").read_bytes()[:54]
    assert start[30:] == b"mimetypeimage/openraster"
    with zipfile.ZipFile(tmp_path / "a.ora") as archive:
        assert archive.testzip() is None
        assert archive.infolist()[0].compress_type == zipfile.ZIP_STORED
        names = archive.namelist()
        assert names[0] == "mimetype"
        assert {"stack.xml", "mergedimage.png", "Thumbnails/thumbnail.png"} < set(names)
        with Image.open(io.BytesIO(archive.read("mergedimage.png"))) as merged:
            assert (merged.size, merged.mode) == ((520, 300), "RGBA")
        with Image.open(io.BytesIO(archive.read("Thumbnails/thumbnail.png"))) as small:
            assert max(small.size) == 256
        root = ElementTree.fromstring(archive.read("stack.xml"))
        assert (root.tag, root.get("w"), root.get("h")) == ("image", "520", "300")
        sources = [layer.get("src") for layer in root.find("stack")]
        assert all(source in names for source in sources)
        assert root.find("stack")[-1].get("name") == "background 0"


def test_the_same_picture_is_the_same_file(tmp_path):
    layers, backdrop, _ = noise(2)
    for name in ("a.ora", "b.ora"):
        write_openraster(tmp_path / name, *rendered(layers, ordered(2), backdrop))

    assert (tmp_path / "a.ora").read_bytes() == (tmp_path / "b.ora").read_bytes()

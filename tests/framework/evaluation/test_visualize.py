import numpy as np
import pytest
import torch

from celstack.evaluation.sprite_stats import SpriteStats
from celstack.evaluation.visualize import (
    _center_on_canvas,
    draw_best_sprites,
    draw_examples,
    draw_sprites,
    on_checkerboard,
    tile,
    to_pil_image,
)
from celstack.recipe.assembly import Assembly, Evaluation, Stage
from celstack.testing.model import PlainSelector
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainPredictor,
    PlainPrototype,
)


@pytest.fixture
def assembly():
    """A model of plain parts: three sprites, two layers, images of 8 x 10."""
    return Assembly(
        dataset=PlainDataset(),
        sprites=PlainPrototype(),
        compositor=PlainCompositor(),
        selector=PlainSelector(),
        predictor=PlainPredictor(),
        stages=[Stage(steps=1)],
        evaluation=Evaluation(images=8),
    )


@pytest.fixture
def decomposer(assembly):
    """The model, prepared."""
    decomposer = assembly.decomposer()
    decomposer.prepare(assembly.dataset.read("train", range(4)).images)
    return decomposer


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA")])
@pytest.mark.parametrize(("height", "width"), [(2, 3), (1, 3), (2, 1), (1, 1)])
def test_a_picture_has_the_channels_and_the_size_of_its_image(channels, mode, height, width):
    picture = to_pil_image(torch.zeros(channels, height, width))

    assert (picture.mode, picture.size) == (mode, (width, height))


def test_pixels_stay_where_they_are():
    image = torch.zeros(4, 2, 3)
    image[:, 0, 2] = torch.tensor([1.0, 0.2, 0.4, 0.6])

    assert to_pil_image(image).getpixel((2, 0)) == (255, 51, 102, 153)


@pytest.mark.parametrize(
    ("value", "level"), [(-0.3, 0), (0.0, 0), (0.499 / 255, 0), (0.501 / 255, 1), (1.7, 255)]
)
def test_values_are_rounded_and_clipped(value, level):
    assert to_pil_image(torch.full((1, 1, 1), value)).getpixel((0, 0)) == level


def test_what_is_opaque_hides_the_checkerboard():
    image = torch.tensor([0.1, 0.2, 0.3, 1.0]).view(1, 4, 1, 1).expand(1, 4, 5, 5)

    torch.testing.assert_close(on_checkerboard(image), image[:, :3])


def test_what_is_transparent_shows_squares_of_four_pixels():
    shown = on_checkerboard(torch.zeros(1, 2, 8, 8))[0, 0]

    dark, light = torch.full((4, 4), 0.75), torch.full((4, 4), 0.95)
    expected = torch.cat([torch.cat([dark, light], 1), torch.cat([light, dark], 1)])
    torch.testing.assert_close(shown, expected)


def test_half_transparent_is_a_mixture():
    shown = on_checkerboard(torch.tensor([0.25, 0.5]).view(1, 2, 1, 1))

    assert shown.item() == pytest.approx(0.5)


def test_a_table_has_columns_then_rows_and_white_lines():
    images = torch.tensor([[0.0, 0.2], [0.4, 0.6], [0.8, 0.0]]).view(3, 2, 1, 1, 1)

    table = np.asarray(tile(images, scale=1))

    assert table.tolist() == [
        [255, 255, 255, 255, 255, 255, 255],
        [255, 0, 255, 102, 255, 204, 255],
        [255, 255, 255, 255, 255, 255, 255],
        [255, 51, 255, 153, 255, 0, 255],
        [255, 255, 255, 255, 255, 255, 255],
    ]


def test_a_table_is_enlarged_without_blur():
    torch.manual_seed(0)
    images = torch.rand(2, 2, 3, 4, 5)

    small, large = (np.asarray(tile(images, scale=scale)) for scale in (1, 3))

    assert np.array_equal(large, small.repeat(3, axis=0).repeat(3, axis=1))


def test_every_sprite_is_drawn_with_its_alpha(decomposer):
    with torch.no_grad():
        decomposer.sprites.pixels[1, :, 0, 0] = torch.tensor([1.0, 0.0, 0.0, 0.2])

    sprites = draw_sprites(decomposer)

    assert [sprite.mode for sprite in sprites] == ["RGBA"] * 3
    assert sprites[1].getpixel((0, 0)) == (255, 0, 0, 51)


def test_examples_are_columns_of_image_reconstruction_and_layers(decomposer, assembly):
    picture = draw_examples(decomposer, assembly)

    columns, rows = 8, 2 + 2
    assert picture.size == (3 * (columns * (10 + 1) + 1), 3 * (rows * (8 + 1) + 1))


def test_the_first_row_of_examples_are_held_out_images(decomposer, assembly):
    picture = np.asarray(draw_examples(decomposer, assembly))[::3, ::3]

    second = assembly.dataset.read("test", [1]).images[0]
    assert np.array_equal(picture[1:9, 12:22], np.asarray(to_pil_image(second)))


def test_the_second_row_of_examples_are_reconstructions(decomposer, assembly):
    picture = np.asarray(draw_examples(decomposer, assembly))[::3, ::3]

    first = assembly.dataset.read("test", [0]).images
    with torch.no_grad():
        image = decomposer.eval().render(decomposer.explain(first)).image[0]
    assert np.array_equal(picture[10:18, 1:11], np.asarray(to_pil_image(image)))


@pytest.mark.parametrize("training", [True, False])
def test_drawing_leaves_the_model_in_its_mode(decomposer, assembly, training):
    decomposer.train(training)

    draw_examples(decomposer, assembly)

    assert decomposer.training is training


def test_drawing_that_fails_leaves_the_model_in_its_mode(decomposer, assembly, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(decomposer, "explain", fail)
    decomposer.train()

    with pytest.raises(ZeroDivisionError):
        draw_examples(decomposer, assembly)

    assert decomposer.training


def test_the_best_sprites_are_columns_of_sprite_mask_and_members(decomposer, assembly):
    stats = SpriteStats(3)
    stats.error_reduction += torch.tensor([1.0, 0.0, 3.0])
    stats.exemplars[0], stats.exemplars[2] = [(1.0, 4)], [(2.0, 1), (1.0, 0), (0.5, 3)]

    picture = np.asarray(draw_best_sprites(decomposer, stats, assembly))

    height, width = 8, 10
    scale = 128 // width
    assert picture.shape[:2] == (scale * (5 * (height + 1) + 1), scale * (2 * (width + 1) + 1))
    cell = picture[scale // 2 :: scale, scale // 2 :: scale]
    images = assembly.dataset.read("test", [1, 0, 3, 4]).images
    wanted = (images * 255).round().byte().permute(0, 2, 3, 1).numpy()
    for row, image in zip((2, 3, 4), wanted[:3], strict=True):
        top = 1 + row * (height + 1)
        assert (cell[top : top + height, 1 : 1 + width] == image).all()
    assert (cell[19:27, 12:22] == wanted[3]).all()
    assert (cell[28:, 12:22] == 255).all()


def test_where_no_sprite_was_used_there_are_no_best(decomposer, assembly):
    assert draw_best_sprites(decomposer, SpriteStats(3), assembly) is None


@pytest.mark.parametrize(("size", "bright"), [((2, 4), 8), ((16, 10), 40)])
def test_sprites_of_any_size_are_framed_in_white(size, bright):
    framed = _center_on_canvas(torch.zeros(3, *size), (8, 10))

    assert framed.shape == (3, 8, 10)
    assert (framed[0] == 0).sum() == bright
    assert (framed[0] == 0)[3:5, 4:6].all()

"""Images as people have them become the input of a model."""

import numpy as np
import pytest
import torch
from PIL import Image

import celstack
from celstack import CelstackError
from celstack.data.image_input import to_batch

SHAPE = (3, 5, 7)


@pytest.fixture
def photo():
    """Eight-bit colors, H x W x C, of the size of the model's canvas."""
    return np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def converted(images, shape=SHAPE):
    batch = to_batch(images, shape, torch.zeros(()))
    assert batch.dtype == torch.float32
    assert batch.shape[1:] == shape
    return batch


def test_the_same_photo_in_every_form_is_the_same_input(photo, tmp_path):
    Image.fromarray(photo).save(tmp_path / "photo.png")
    channels_first = np.moveaxis(photo, -1, 0)
    expected = torch.from_numpy(channels_first.copy())[None] / 255
    forms = [
        photo,
        photo[None],
        channels_first[None],
        photo.astype(np.int64),
        photo / 255,
        torch.from_numpy(photo),
        torch.from_numpy(channels_first.copy()),
        expected,
        expected[0],
        expected.double(),
        expected.permute(0, 2, 3, 1),
        Image.fromarray(photo),
        str(tmp_path / "photo.png"),
        tmp_path / "photo.png",
        tmp_path,
        np.concatenate([photo, np.full((5, 7, 1), 255, np.uint8)], axis=2),
    ]
    for form in forms:
        torch.testing.assert_close(converted(form), expected, atol=1e-7, rtol=0)

    listed = [*forms[:1], channels_first, *forms[5:7], forms[8], *forms[11:14]]
    together = converted(listed)

    torch.testing.assert_close(together, expected.expand(8, -1, -1, -1), atol=1e-7, rtol=0)
    assert torch.equal(converted(iter([photo, photo])), expected.expand(2, -1, -1, -1))


def test_floats_of_the_right_shape_are_not_rounded():
    images = torch.rand(2, *SHAPE)

    assert torch.equal(converted(images), images)
    assert torch.equal(converted(images.permute(0, 2, 3, 1).numpy()), images)


def test_gray_images_come_with_or_without_an_axis_of_channels():
    gray = np.arange(6 * 5 * 7, dtype=np.uint8).reshape(6, 5, 7)
    expected = (torch.from_numpy(gray) / 255)[:, None]

    for form in (
        gray,
        gray[..., None],
        torch.from_numpy(gray),
        torch.from_numpy(gray)[:, None],
    ):
        assert torch.equal(converted(form, (1, 5, 7)), expected)
        assert torch.equal(converted(form), expected.expand(-1, 3, -1, -1))
    assert torch.equal(converted(gray[0], (1, 5, 7)), expected[:1])
    assert torch.equal(converted(gray[:4], (1, 5, 7)), expected[:4])
    assert torch.equal(converted(list(gray), (1, 5, 7)), expected)


def test_sixteen_bits_and_masks_have_the_same_white_as_others():
    white = np.full((5, 7), 65535, np.uint16)

    assert converted(white).unique().tolist() == [1.0]
    assert converted(np.ones((5, 7), bool)).unique().tolist() == [1.0]


@pytest.mark.parametrize("size", [(8, 12), (3, 5), (40, 20), (4, 7)])
def test_arrays_of_another_size_are_resized_as_files_are(size, tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (*size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    expected = converted(tmp_path / "a.png")

    assert torch.equal(converted(pixels), expected)
    assert torch.equal(converted(pixels / 255), expected)
    assert torch.equal(converted(torch.from_numpy(pixels).permute(2, 0, 1) / 255), expected)


def test_batches_of_datasets_may_be_a_little_out_of_range():
    images = torch.full((2, *SHAPE), 1.01)

    assert torch.equal(converted(images), images)


def test_images_of_different_sizes_make_one_batch(photo, tmp_path):
    Image.fromarray(photo[:2]).save(tmp_path / "a.png")

    assert (
        len(converted([photo, photo[:, :3], tmp_path / "a.png", Image.new("L", (9, 9))])) == 4
    )


@pytest.mark.parametrize(
    ("images", "line"),
    [
        (torch.rand(2, *SHAPE) * 200 + 1, "images: floats from .* must be from 0 to 1; divide"),
        (torch.full((1, *SHAPE), torch.nan), "images: floats from nan to nan; they must be"),
        (np.full((1, 5, 7, 3), -0.5), "images: floats from -0.5 to -0.5; they must be from 0"),
        (np.full((5, 7, 3), 300), "images: integers from 300 to 300; they must be from 0 to"),
        (
            np.zeros((2, 6, 5, 7)),
            r"images: an array of shape \(2, 6, 5, 7\) has no axis of 1, 3",
        ),
        (
            np.zeros((3, 40, 60)),
            r"\(3, 40, 60\) may be one image or 3 gray ones; give array\[N",
        ),
        (np.zeros((5, 7, 2)), r"images: an array of shape \(5, 7, 2\) may be gray with alpha"),
        (np.zeros(7), r"images: an array of shape \(7,\) is not images: it needs 2 to 4 axes"),
        (np.zeros((1, 0, 6, 3)), r"images: an array of shape \(1, 0, 6, 3\) has no pixels"),
        (
            np.zeros((0, 5, 7, 3)),
            "images: there are none; give files, Pillow images, arrays or",
        ),
        ([], "images: there are none"),
        (np.zeros((5, 7, 3), complex), "images: values of type complex128; give files"),
        ([[0.5, 0.5]], r"images\[0\]: \[0.5, 0.5\] is not an image; give files"),
        ([np.zeros((5, 7)), None], r"images\[1\]: None is not an image"),
        (["gone.png"], "gone.png: no such image or folder"),
    ],
)
def test_what_is_not_images_is_one_line(images, line):
    with pytest.raises(CelstackError, match=line) as error:
        to_batch(images, SHAPE, torch.zeros(()))

    assert "\n" not in str(error.value)


def test_a_model_takes_what_people_have(small_run, tmp_path):
    decomposer = celstack.open_run(small_run).decomposer
    pixels = np.random.default_rng(2).integers(0, 256, (3, 35, 35, 3), dtype=np.uint8)
    batch = celstack.read_images(pixels, decomposer)
    with torch.no_grad():
        expected = decomposer.explain(batch)
        scene = decomposer.explain(pixels)
        pictures = decomposer.explain([Image.fromarray(one) for one in pixels])

    assert torch.equal(scene.layer_params, expected.layer_params)
    assert torch.equal(pictures.sprite, expected.sprite)

    celstack.decompose(decomposer, pixels, tmp_path / "parts")

    with Image.open(tmp_path / "parts" / "image-0002" / "input.png") as written:
        assert np.array_equal(np.array(written), pixels[2])
    with pytest.raises(CelstackError, match="image-0000: holds the decomposition of another"):
        celstack.decompose(decomposer, pixels[1:], tmp_path / "parts")


def test_files_and_folders_are_decomposed_under_their_names(small_run, tmp_path, photo):
    (tmp_path / "photos").mkdir()
    for name in ("a.png", "b.png"):
        Image.fromarray(photo).save(tmp_path / "photos" / name)
    decomposer = celstack.open_run(small_run).decomposer

    celstack.decompose(decomposer, tmp_path / "photos", tmp_path / "parts")

    assert sorted(p.parent.name for p in tmp_path.glob("parts/*/scene.json")) == ["a", "b"]
    with pytest.raises(CelstackError, match="no image can be read: there are none"):
        celstack.decompose(decomposer, [], tmp_path / "none")

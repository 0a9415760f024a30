import numpy as np
import pytest
import torch
from PIL import ExifTags, Image
from published import pictures

from celstack.data.loader import shuffled_batches
from celstack.errors import CelstackError
from celstack.testing import check_dataset
from celstack_kit.datasets.image_folder import ImageFolder


def levels(image):
    return (image * 255).round().int()


def only(folder, **options):
    """Read the one image of a folder, in levels of 0 to 255."""
    return levels(ImageFolder(root=folder, **options).read("train", [0]).images[0])


def refusal(split="train", **options):
    with pytest.raises(CelstackError) as refused:
        dataset = ImageFolder(**options)
        dataset.read(split, range(dataset.count(split)))
    return str(refused.value)


@pytest.mark.parametrize(
    "options", [{}, {"labels": True}, {"held_out": 0.5, "size": (9, 7)}, {"skip_broken": True}]
)
def test_it_keeps_the_promises_of_a_dataset(options, tmp_path):
    check_dataset(ImageFolder(root=pictures(tmp_path), **options))


def test_images_come_in_the_order_of_their_names(tmp_path):
    images = ImageFolder(root=pictures(tmp_path), size=(4, 4)).read("train", range(4)).images

    seen = levels(images[:, :, 2, 2])[:, [0, 2]].tolist()
    expected = [[0, 255], [0, 200], [255, 0], [200, 0]]
    assert np.abs(np.array(seen) - expected).max() <= 2  # one is a JPEG


def test_class_folders_are_labels(tmp_path):
    dataset = ImageFolder(root=pictures(tmp_path), labels=True)

    assert dataset.class_names == ("blue", "red")
    assert dataset.read("train", [3, 0, 1]).label.tolist() == [1, 0, 0]


def test_an_image_outside_class_folders_is_said(tmp_path):
    Image.new("RGB", (3, 3)).save(pictures(tmp_path) / "astray.png")

    assert refusal(root=tmp_path, labels=True) == (
        f"{tmp_path / 'astray.png'}: labels need a folder for each class"
    )


def test_the_center_is_cropped_out(tmp_path):
    pixels = np.zeros((4, 12, 3), np.uint8)
    pixels[:, 4:8] = 255
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    assert (only(tmp_path, size=(4, 4)) == 255).all()

    Image.fromarray(pixels.transpose(1, 0, 2)).save(tmp_path / "wide.png")
    assert (only(tmp_path, size=(4, 4)) == 255).all()


@pytest.mark.parametrize("suffix", ["png", "bmp", "ppm", "webp", "jpg", "JPEG"])
def test_many_formats_are_read(suffix, tmp_path):
    options = {"lossless": True} if suffix == "webp" else {}
    Image.new("RGB", (8, 8), (200, 100, 50)).save(tmp_path / f"image.{suffix}", **options)

    seen = only(tmp_path, size=(4, 4))[:, 1, 1]

    assert (seen - torch.tensor([200, 100, 50])).abs().max() <= (
        2 if "J" in suffix.upper() else 0
    )


def gray_16():
    return Image.fromarray(np.full((4, 4), 100 * 257, np.uint16))


def palette():
    image = Image.new("P", (4, 4), 1)
    image.putpalette([0, 0, 0, 10, 20, 30])
    return image


@pytest.mark.parametrize(
    ("image", "suffix", "color"),
    [
        (Image.new("L", (4, 4), 77), "png", [77, 77, 77]),
        (Image.new("1", (4, 4), 1), "png", [255, 255, 255]),
        (gray_16(), "png", [100, 100, 100]),
        (gray_16(), "pgm", [100, 100, 100]),
        (palette(), "png", [10, 20, 30]),
        (Image.new("RGBA", (4, 4), (255, 0, 0, 0)), "png", [255, 255, 255]),
        (Image.new("RGBA", (4, 4), (255, 0, 0, 51)), "png", [255, 204, 204]),
        (Image.new("LA", (4, 4), (0, 51)), "png", [204, 204, 204]),
        (Image.new("CMYK", (4, 4), (0, 0, 0, 0)), "jpg", [255, 255, 255]),
    ],
)
def test_every_mode_becomes_rgb(image, suffix, color, tmp_path):
    image.save(tmp_path / f"image.{suffix}")

    assert only(tmp_path, size=(2, 2))[:, 0, 0].tolist() == color


def test_a_transparent_color_of_a_palette_is_white(tmp_path):
    palette().save(tmp_path / "image.png", transparency=1)

    assert (only(tmp_path, size=(2, 2)) == 255).all()


@pytest.mark.parametrize(
    ("orientation", "corner"), [(1, (0, 0)), (3, (1, 1)), (6, (0, 1)), (8, (1, 0))]
)
def test_images_are_turned_as_the_camera_was(orientation, corner, tmp_path):
    pixels = np.zeros((2, 2, 3), np.uint8)
    pixels[0, 0] = 255
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    Image.fromarray(pixels).save(tmp_path / "image.png", exif=exif)

    white = only(tmp_path, size=(2, 2)).amin(0).nonzero().tolist()

    assert white == [list(corner)]


def test_a_large_jpeg_is_read_as_a_small_one_would_be(tmp_path):
    ramp = np.linspace(0, 255, 1600).astype(np.uint8)
    image = Image.fromarray(np.broadcast_to(ramp[None, :, None], (1200, 1600, 3)).copy())
    image.save(tmp_path / "image.jpg", quality=95)

    seen = only(tmp_path, size=(24, 32))[0]

    expected = torch.linspace(0, 255, 33)
    expected = ((expected[1:] + expected[:-1]) / 2).expand(24, 32)
    assert (seen - expected).abs().max() < 4


def test_other_files_and_hidden_ones_are_left_out(tmp_path):
    pictures(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "._a.png").write_text("hello")
    (tmp_path / ".thumbnails").mkdir()
    (tmp_path / ".thumbnails" / "a.png").write_text("hello")

    assert ImageFolder(root=tmp_path).count("train") == 4


def test_a_part_is_held_out_the_same_every_time(tmp_path):
    for index in range(20):
        Image.new("L", (2, 2), 10 * index).save(tmp_path / f"{index:02}.png")
    dataset, again = (ImageFolder(root=tmp_path, size=(2, 2), held_out=0.25) for _ in range(2))

    train = dataset.read("train", range(dataset.count("train"))).images[:, 0, 0, 0]
    test = dataset.read("test", range(dataset.count("test"))).images[:, 0, 0, 0]

    assert dataset.splits == ("train", "test")
    assert (len(train), len(test)) == (15, 5)
    assert sorted(levels(torch.cat([train, test])).tolist()) == [10 * i for i in range(20)]
    assert torch.equal(test, again.read("test", range(5)).images[:, 0, 0, 0])


def test_without_a_held_out_part_there_is_one_split():
    assert ImageFolder(root="images").splits == ("train",)


def test_too_small_a_part_is_said(tmp_path):
    said = refusal(root=pictures(tmp_path), held_out=0.01)

    assert said == "held_out: 0.01 of 4 images leaves a split empty"


@pytest.fixture
def masked(tmp_path):
    """Two images of 4 x 8 with the objects 0, 3 | 300 side by side, in two kinds of mask."""
    ids = np.zeros((4, 8), np.uint16)
    ids[:, 3], ids[:, 4:] = 3, 300
    (tmp_path / "masks" / "a").mkdir(parents=True)
    (tmp_path / "a").mkdir()
    Image.new("RGB", (8, 4)).save(tmp_path / "a" / "one.png")
    Image.new("RGB", (8, 4)).save(tmp_path / "a" / "two.jpg")
    Image.fromarray(ids).save(tmp_path / "masks" / "a" / "one.png")
    low = Image.fromarray(np.minimum(ids, 9).astype(np.uint8)).convert("P")
    low.putpalette([7] * 768)
    low.save(tmp_path / "masks" / "a" / "two.png")
    return tmp_path


def test_masks_are_cropped_like_their_images_and_keep_their_numbers(masked):
    dataset = ImageFolder(root=masked, masks=masked / "masks", size=(4, 4))

    instances = dataset.read("train", [0, 1]).instances

    assert dataset.count("train") == 2  # masks are not images
    assert instances[0].tolist() == [[0, 3, 300, 300]] * 4
    assert instances[1].tolist() == [[0, 3, 9, 9]] * 4
    check_dataset(dataset)


def test_a_missing_mask_is_said(masked):
    (masked / "masks" / "a" / "two.png").unlink()

    assert f"{masked / 'a' / 'two.jpg'}: it has no mask" in refusal(
        root=masked, masks=masked / "masks"
    )


def test_a_mask_of_another_size_is_said(masked):
    Image.new("L", (4, 8)).save(masked / "masks" / "a" / "one.png")

    said = refusal(root=masked, masks=masked / "masks")

    assert said.endswith("one.png: the mask is 4 x 8, but its image is 8 x 4")


def test_a_mask_in_colors_is_refused(masked):
    Image.new("RGB", (8, 4)).save(masked / "masks" / "a" / "one.png")

    assert "one channel of ids, not 3" in refusal(root=masked, masks=masked / "masks")


def cut(path, share):
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


@pytest.mark.parametrize("name", ["blue/a.png", "blue/deep/c.jpg"])
@pytest.mark.parametrize("share", [0, 0.1, 0.9])
def test_a_truncated_image_is_named_or_skipped(name, share, tmp_path, caplog):
    noise = np.random.default_rng(0).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    Image.fromarray(noise).save(pictures(tmp_path) / name)
    cut(tmp_path / name, share)

    said = refusal(root=tmp_path)
    dataset = ImageFolder(root=tmp_path, skip_broken=True, labels=True)

    assert said.startswith(f"{tmp_path / name}: damaged or unreadable")
    assert dataset.read("train", range(dataset.count("train"))).label.tolist() == [0, 1, 1]
    (message,) = caplog.messages
    assert message.startswith(f"image_folder: skipped 1 of 4; first {tmp_path / name}")


def test_a_folder_of_broken_images_is_said(tmp_path):
    (tmp_path / "a.png").write_text("hello")

    assert refusal(root=tmp_path, skip_broken=True).startswith(
        "image_folder: all 1 images are broken"
    )


def test_an_empty_and_a_missing_folder_are_said_when_they_are_used(tmp_path):
    assert ImageFolder(root=tmp_path / "nowhere").image_shape == (3, 128, 128)
    assert f"there is no folder {tmp_path / 'nowhere'}" in refusal(root=tmp_path / "nowhere")
    assert refusal(root=tmp_path).startswith(f"{tmp_path}: no images in it")


def test_images_are_not_kept(tmp_path):
    dataset = ImageFolder(root=pictures(tmp_path))
    dataset.read("train", range(4))

    kept = [value for value in vars(dataset).values() if isinstance(value, torch.Tensor)]
    assert not kept
    assert dataset._names == {
        "train": ["blue/a.png", "blue/deep/c.jpg", "red/a.png", "red/b.png"]
    }


def test_workers_read_the_same(tmp_path):
    dataset = ImageFolder(root=pictures(tmp_path), size=(4, 4))

    alone, helped = (
        next(shuffled_batches(dataset, "train", 4, seed=0, workers=workers))
        for workers in (0, 1)
    )

    assert torch.equal(alone.images, helped.images)

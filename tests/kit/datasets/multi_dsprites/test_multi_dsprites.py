import colorsys

import numpy as np
import pytest
import torch
from tfrecords import scene, write_records

from celstack.errors import CelstackError
from celstack.testing import check_dataset
from celstack_kit.datasets import multi_dsprites
from celstack_kit.datasets.multi_dsprites import MultiDsprites, _rgb, _stack_instances
from celstack_kit.datasets.multi_dsprites import shapes as dsprites
from celstack_kit.datasets.multi_dsprites.shapes import DrawnShapes

RECORDS = "multi_dsprites_colored_on_grayscale.tfrecords"


@pytest.fixture(scope="module")
def thousands():
    return MultiDsprites(count=3000, test_count=1).read("train", range(3000))


def objects(batch):
    """Return, image by image, which of the instances 1 to 5 are there."""
    return torch.stack([(batch.instances == i).any(2).any(1) for i in range(1, 6)], dim=1)


def kinds(batch):
    """Return the class of each object."""
    shown = torch.stack(
        [(batch.classes * (batch.instances == i)).amax((1, 2)) for i in range(1, 6)]
    )
    return shown[shown > 0]


def test_it_keeps_the_promises_of_a_dataset():
    check_dataset(MultiDsprites(count=20, test_count=5))


def test_two_to_five_objects_are_equally_frequent(thousands):
    counts = torch.bincount(objects(thousands).sum(1), minlength=6).double()

    assert counts[:2].tolist() == [0, 0]
    # Chi-square with 3 degrees of freedom: less than this in 999 of 1000 collections.
    assert ((counts[2:] - 750) ** 2 / 750).sum() < 16.3


def test_objects_are_numbered_without_gaps(thousands):
    there = objects(thousands).int()

    assert (there.diff(dim=1) <= 0).all()


@pytest.mark.parametrize(("objects_", "numbers"), [(2, {2}), (1, {1}), ((3, 4), {3, 4})])
def test_there_may_be_other_numbers_of_objects(objects_, numbers):
    dataset = MultiDsprites(count=50, test_count=1, objects=objects_)

    batch = dataset.read("train", range(50))

    assert set(objects(batch).sum(1).tolist()) == numbers
    assert dataset.max_objects == max(numbers)


def test_all_shapes_are_equally_frequent(thousands):
    counts = torch.bincount(kinds(thousands), minlength=4)[1:].double()

    expected = counts.sum() / 3
    # Chi-square with 2 degrees of freedom: less than this in 999 of 1000 collections.
    assert ((counts - expected) ** 2 / expected).sum() < 13.8


def test_classes_are_called_as_dsprites_counts_them():
    dataset = MultiDsprites(count=30, test_count=1, objects=1)
    batch = dataset.read("train", range(30))

    assert dataset.class_names == ("square", "ellipse", "heart")
    masks = DrawnShapes().windows
    for instances, classes in zip(batch.instances, batch.classes, strict=True):
        kind, pixels = int(classes.max()) - 1, instances.numpy() > 0
        rows, columns = np.flatnonzero(pixels.any(1)), np.flatnonzero(pixels.any(0))
        box = pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        assert any(fits(box, window) for window in masks[kind].reshape(-1, 31, 31))


def fits(box, window):
    rows, columns = np.flatnonzero(window.any(1)), np.flatnonzero(window.any(0))
    return np.array_equal(box, window[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])


def test_every_pixel_of_an_object_has_its_one_color_and_class(thousands):
    images, instances = thousands.images[:300], thousands.instances[:300]
    for number in range(1, 6):
        here = instances == number
        there = here.any(2).any(1)
        for values in (*images.unbind(1), thousands.classes[:300]):
            most = values.masked_fill(~here, 0).amax((1, 2))
            least = values.masked_fill(~here, 99).amin((1, 2))
            assert torch.equal(most[there], least[there])


def test_the_ground_is_one_gray_of_all_grays(thousands):
    ground = thousands.instances == 0
    red, green, blue = thousands.images.unbind(1)

    assert torch.equal(red[ground], green[ground]) and torch.equal(red[ground], blue[ground])
    grays = red[:, 0, 0]  # no object reaches into the corner
    assert torch.equal(red.masked_fill(~ground, 0).amax((1, 2)), grays)
    assert torch.equal(red.masked_fill(~ground, 1).amin((1, 2)), grays)
    counts = torch.histc(grays, bins=8, min=0, max=1)
    # Chi-square with 7 degrees of freedom: less than this in 999 of 1000 collections.
    assert ((counts - 375) ** 2 / 375).sum() < 24.3


def test_labels_agree_with_each_other(thousands):
    assert torch.equal(thousands.classes > 0, thousands.instances > 0)


def test_hues_are_of_the_whole_circle_and_colors_strong(thousands):
    first = thousands.instances == 1
    colors = (thousands.images * first[:, None]).amax((2, 3))

    hsv = np.array([colorsys.rgb_to_hsv(*color) for color in colors.tolist()])

    counts = np.histogram(hsv[:, 0], bins=6, range=(0, 1))[0]
    # Chi-square with 5 degrees of freedom: less than this in 999 of 1000 collections.
    assert ((counts - 500) ** 2 / 500).sum() < 20.5
    assert hsv[:, 1:].min() > 0.49
    assert hsv[:, 1:].min(axis=0) == pytest.approx([0.5, 0.5], abs=0.02)


@pytest.mark.parametrize("hue", np.linspace(0, 1, 13))
def test_colors_are_those_of_the_color_system(hue):
    for saturation, value in ((0.5, 1.0), (1.0, 0.7), (0.8, 0.6)):
        found = _rgb(np.array([[hue, saturation, value]]))[0]

        expected = 255 * np.array(colorsys.hsv_to_rgb(hue, saturation, value))
        assert found == pytest.approx(expected, abs=0.51)


def test_later_objects_hide_earlier_ones():
    poses = np.array([[[0, 5, 0, 10, 10], [1, 0, 0, 10, 10], [0, 5, 0, 10, 30]]])

    (two,) = _stack_instances(DrawnShapes(), poses, np.array([2]))
    (three,) = _stack_instances(DrawnShapes(), poses, np.array([3]))

    below, above = DrawnShapes().masks(poses[0, :2])
    assert np.array_equal(two == 2, above)
    assert np.array_equal(two == 1, below & ~above)
    # The third one covers the lower rows of the first.
    third = DrawnShapes().masks(poses[0, 2:])[0]
    assert np.array_equal(three == 3, third)
    assert np.array_equal(three == 1, below & ~above & ~third)


def test_no_object_is_hidden_wholly():
    # Ten objects hide each other often.
    batch = MultiDsprites(count=200, test_count=1, objects=10).read("train", range(200))

    assert all(len(instances.unique()) == 11 for instances in batch.instances)


def test_the_seed_chooses_the_collection():
    first, again, other = (
        MultiDsprites(count=4, test_count=1, seed=seed).read("train", range(4)).images
        for seed in (1, 1, 2)
    )

    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_no_test_image_is_a_training_image():
    dataset = MultiDsprites(count=600, test_count=320)
    train = {image.numpy().tobytes() for image in dataset.read("train", range(600)).images}
    test = {image.numpy().tobytes() for image in dataset.read("test", range(320)).images}

    assert not train & test


def test_a_larger_collection_begins_with_the_smaller_one_and_goes_on_anew(thousands):
    small = MultiDsprites(count=10, test_count=1).read("train", range(10)).images

    assert torch.equal(small, thousands.images[:10])
    assert not torch.equal(thousands.images[:10], thousands.images[512:522])


@pytest.mark.parametrize(
    ("objects_", "said"), [(0, "0"), (11, "11"), ((0, 3), "(0, 3)"), ((4, 3), "(4, 3)")]
)
def test_impossible_numbers_are_refused(objects_, said):
    with pytest.raises(CelstackError) as refused:
        MultiDsprites(objects=objects_)

    text = f"must be 1 to 10, or the least and the most of these, not {said}"
    assert str(refused.value) == f"objects: {text}"


def record(shapes, masks=None):
    masks = np.zeros((6, 64, 64), bool) if masks is None else masks
    for entity, shape in enumerate(shapes):
        masks[entity, 10 * entity : 10 * entity + 10] = entity > 0 and shape > 0
    return scene(np.zeros((64, 64, 3)), masks, False, shape=[*shapes, *[0] * (6 - len(shapes))])


def published(root, messages, **options):
    write_records(root / RECORDS, messages)
    return MultiDsprites(source="records", root=root, test_count=1, **options)


def test_records_say_shapes(tmp_path):
    messages = [record([0, 3, 1]), record([0, 1, 2, 3]), record([0, 2, 2])]
    dataset = published(tmp_path, messages, count=2)

    batch = dataset.read("train", [0, 1])

    check_dataset(dataset)
    assert batch.classes[:, ::10, 0].tolist() == [[0, 3, 1, 0, 0, 0, 0], [0, 1, 2, 3, 0, 0, 0]]
    assert batch.instances[:, ::10, 0].tolist() == [
        [0, 1, 2, 0, 0, 0, 0],
        [0, 1, 2, 3, 0, 0, 0],
    ]


def test_of_published_images_those_with_two_objects_can_be_had(tmp_path):
    messages = [record([0, 3, 1]), record([0, 1, 2, 3]), record([0, 2, 2])]

    dataset = published(tmp_path, messages, objects=2, count=1)

    assert dataset.read("train", [0]).classes.unique().tolist() == [0, 1, 3]
    assert dataset.read("test", [0]).classes.unique().tolist() == [0, 2]


@pytest.mark.parametrize("shape", [4, 0.5, float("nan")])
def test_other_shapes_are_refused(shape, tmp_path):
    masks = np.zeros((6, 64, 64), bool)
    masks[2, 5] = True
    message = record([0, 1, shape], masks)

    with pytest.raises(CelstackError, match=r"record 1: shapes are 1, 2 and 3, not \[1"):
        published(tmp_path, [message]).count("train")


def test_records_without_shapes_are_refused(tmp_path):
    message = scene(np.zeros((64, 64, 3)), np.zeros((6, 64, 64)), False)

    with pytest.raises(CelstackError, match="no shape for each entity in it"):
        published(tmp_path, [message]).count("train")


@pytest.mark.parametrize("option", [{"seed": 1}, {"shapes": "dsprites.npz"}])
def test_published_images_cannot_be_asked_to_be_others(option):
    with pytest.raises(CelstackError) as refused:
        MultiDsprites(source="records", **option)

    assert str(refused.value) == f'{next(iter(option))}: only for source = "generated"'


def test_shapes_may_be_those_of_dsprites_itself(monkeypatch, tmp_path):
    few = (3, 1, 2, 2, 2)
    monkeypatch.setattr(dsprites, "POSES", few)
    monkeypatch.setattr(multi_dsprites, "POSES", few)
    images = np.zeros((24, 64, 64), np.uint8)
    for number in range(24):
        images[number, number, : number + 1] = 1
    np.savez_compressed(tmp_path / "x.npz", imgs=images)

    dataset = MultiDsprites(count=20, test_count=1, objects=1, shapes=tmp_path / "x.npz")
    batch = dataset.read("train", range(20))

    for instances, classes in zip(batch.instances, batch.classes, strict=True):
        number = int(instances.sum()) - 1
        assert torch.equal(instances, torch.from_numpy(images[number]).long())
        assert int(classes.max()) == number // 8 + 1


def test_a_missing_file_of_shapes_is_said(tmp_path):
    with pytest.raises(CelstackError) as refused:
        MultiDsprites(shapes=tmp_path / "x.npz").count("train")

    assert (
        str(refused.value) == f"multi_dsprites: shapes: there is no file {tmp_path / 'x.npz'}"
    )

import numpy as np
import pytest
import torch
from PIL import Image
from tfrecords import scene, write_records

from celstack.errors import CelstackError
from celstack.testing import check_dataset
from celstack_kit.datasets.tetrominoes import Tetrominoes

# FACTS, read off the publishers' preview; written out again so that a slip is seen.
BLOCK = torch.tensor(
    [
        [191, 255, 255, 255, 223],
        [127, 159, 159, 159, 191],
        [127, 159, 159, 159, 191],
        [127, 159, 159, 159, 191],
        [127, 64, 64, 64, 127],
    ]
)
COLORS = {(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)}


@pytest.fixture(scope="module")
def thousands():
    """The truth about 4,000 images: 12,000 pieces."""
    dataset = Tetrominoes(count=4000, test_count=1)
    return dataset, dataset.read("train", range(4000))


def cut_out(batch, image, piece):
    """Return a piece's pixels in levels of 0 to 255, black where it is not."""
    here = batch.instances[image] == piece
    rows, columns = here.any(1).nonzero(), here.any(0).nonzero()
    box = (slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1))
    levels = (batch.images[image] * 255).round().int() * here
    return levels[:, *box]


def count_pieces(batch, per_image=3):
    """Return kind and color of every piece, from the pixels."""
    kinds, colors = [], []
    for piece in range(1, per_image + 1):
        here = batch.instances == piece
        kinds.append((batch.classes * here).amax((1, 2)))
        lit = ((batch.images > 0) & here[:, None]).any(3).any(2).long()
        colors.append(lit @ torch.tensor([4, 2, 1]))
    return torch.cat(kinds), torch.cat(colors)


def test_it_keeps_the_promises_of_a_dataset():
    check_dataset(Tetrominoes(count=20, test_count=5))


def test_a_piece_is_made_of_published_blocks_times_its_color():
    batch = Tetrominoes(count=1, test_count=1, pieces="O", per_image=1).read("train", [0])

    levels = cut_out(batch, image=0, piece=1)

    color = (levels.amax((1, 2)) > 0).int()
    assert tuple(color.tolist()) in COLORS
    assert torch.equal(levels, BLOCK.tile(2, 2).int() * color[:, None, None])


def test_shapes_are_not_mirrored_or_turned_on_their_way_to_the_canvas():
    dataset = Tetrominoes(count=300, test_count=1, per_image=1)
    batch = dataset.read("train", range(300))

    for image in range(300):
        levels = cut_out(batch, image, piece=1).amax(0)
        cells = levels.view(levels.shape[0] // 5, 5, -1, 5).amax((1, 3)) > 0
        kind = int(batch.classes[image].max()) - 1
        assert cells.int().tolist() == dataset.shapes[kind].tolist()


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("I0", [[1, 1, 1, 1]]),
        ("T0", [[1, 1, 1], [0, 1, 0]]),
        ("S0", [[0, 1, 1], [1, 1, 0]]),
        ("Z0", [[1, 1, 0], [0, 1, 1]]),
        ("J0", [[1, 0, 0], [1, 1, 1]]),
        ("L0", [[0, 0, 1], [1, 1, 1]]),
        ("L90", [[1, 1], [0, 1], [0, 1]]),  # a quarter turn against the clock
    ],
)
def test_shapes_are_called_by_piece_and_turn(name, cells):
    dataset = Tetrominoes()

    assert dataset.shapes[dataset.class_names.index(name)].tolist() == cells


@pytest.mark.parametrize(
    ("pieces", "shapes"), [("O", 1), ("I", 2), ("SZ", 4), ("TJL", 12), ("IOTSZJL", 19)]
)
def test_each_piece_comes_in_all_its_rotations(pieces, shapes):
    assert len(Tetrominoes(pieces=pieces).class_names) == shapes


def test_a_piece_named_twice_is_one_piece():
    assert Tetrominoes(pieces="OIO").class_names == Tetrominoes(pieces="OI").class_names


def test_all_shapes_are_equally_frequent(thousands):
    kinds, _ = count_pieces(thousands[1])

    counts = torch.bincount(kinds, minlength=20)[1:].double()
    expected = 12_000 / 19
    # Chi-square with 18 degrees of freedom: less than this in 999 of 1000 collections.
    assert ((counts - expected) ** 2 / expected).sum() < 42.3


def test_all_colors_are_equally_frequent(thousands):
    _, colors = count_pieces(thousands[1])

    counts = torch.bincount(colors, minlength=8).double()
    assert counts[[0, 7]].tolist() == [0, 0]  # neither black nor white
    expected = 2000
    # Chi-square with 5 degrees of freedom: less than this in 999 of 1000 collections.
    assert ((counts[1:7] - expected) ** 2 / expected).sum() < 20.5


def test_pieces_never_overlap(thousands):
    instances = thousands[1].instances

    for piece in (1, 2, 3):
        assert ((instances == piece).sum((1, 2)) == 100).all()


def test_pieces_reach_all_four_edges_of_the_canvas(thousands):
    seen = (thousands[1].instances > 0).any(0)

    assert seen.all()


def test_pieces_may_touch(thousands):
    instances = thousands[1].instances
    left, right = instances[:, :, :-1], instances[:, :, 1:]

    assert ((left > 0) & (right > 0) & (left != right)).any()


def test_labels_agree_with_pixels(thousands):
    batch = thousands[1]
    lit = batch.images.amax(1) > 0

    assert torch.equal(lit, batch.instances > 0)
    assert torch.equal(lit, batch.classes > 0)


def test_a_piece_has_one_class(thousands):
    batch = thousands[1]
    here = batch.instances == 2

    least = batch.classes.masked_fill(~here, 99).amin((1, 2))
    assert torch.equal(least, (batch.classes * here).amax((1, 2)))


def test_the_seed_chooses_the_collection():
    first, again, other = (
        Tetrominoes(count=4, test_count=1, seed=seed).read("train", range(4)).images
        for seed in (1, 1, 2)
    )

    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_no_test_image_is_a_training_image(thousands):
    dataset = Tetrominoes(count=4000, test_count=320)
    train = {image.numpy().tobytes() for image in dataset.read("train", range(4000)).images}
    test = {image.numpy().tobytes() for image in dataset.read("test", range(320)).images}

    assert not train & test


def test_order_and_grouping_are_irrelevant(thousands):
    _, whole = thousands
    fresh = Tetrominoes(count=4000, test_count=1)

    some = fresh.read("train", [3999, 7, 7, 0])

    for field in ("images", "instances", "classes"):
        assert torch.equal(getattr(some, field), getattr(whole, field)[[3999, 7, 7, 0]])


def test_a_larger_collection_begins_with_the_smaller_one():
    small, large = (
        Tetrominoes(count=count, test_count=1).read("train", range(10)).images
        for count in (10, 5000)
    )

    assert torch.equal(small, large)


def test_images_beyond_the_first_thousands_are_new():
    images = Tetrominoes(count=4100, test_count=1).read("train", [0, 1, 4096, 4097]).images

    assert not torch.equal(images[:2], images[2:])


def test_as_many_images_as_were_published_can_be_read():
    dataset = Tetrominoes()

    batch = dataset.read("train", [0, 59_999])

    assert dataset.count("train") == 60_000
    assert batch.images.shape == (2, 3, 35, 35)


def test_the_numbers_drawn_elsewhere_are_left_alone():
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()

    Tetrominoes(count=4, test_count=1).read("train", [0])

    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)


@pytest.mark.parametrize(("per_image", "side"), [(1, 20), (2, 25), (4, 40)])
def test_there_may_be_other_numbers_of_pieces_and_other_canvases(per_image, side):
    dataset = Tetrominoes(count=8, test_count=1, per_image=per_image, side=side)

    batch = dataset.read("train", range(8))

    assert batch.images.shape[2:] == dataset.image_shape[1:] == (side, side)
    assert ((batch.instances > 0).sum((1, 2)) == 100 * per_image).all()
    assert dataset.max_objects == per_image


@pytest.mark.parametrize("pieces", ["X", "IOx", "i", ""])
def test_unknown_pieces_are_refused(pieces):
    with pytest.raises(CelstackError) as refused:
        Tetrominoes(pieces=pieces)

    assert str(refused.value) == f"pieces: must be some of IOTSZJL, not '{pieces}'"


@pytest.mark.parametrize(("per_image", "side"), [(2, 20), (5, 35), (10, 60), (30, 100)])
def test_more_pieces_than_find_a_place_are_refused(per_image, side):
    with pytest.raises(CelstackError) as refused:
        Tetrominoes(per_image=per_image, side=side)

    expected = f"per_image: {per_image} pieces are too many for side {side}"
    assert str(refused.value) == expected


def test_where_pieces_may_overlap_the_later_one_hides_the_earlier():
    dataset = Tetrominoes(count=64, overlap=True)

    batch = dataset.read("train", range(64))

    seen = [(batch.instances == number).flatten(1).sum(1) for number in (1, 2, 3)]
    assert (seen[2] == 100).all()
    assert (seen[0] < 100).any()
    assert (seen[1] < 100).any()
    assert (batch.instances > 0).equal(batch.classes > 0)


def published(batch, index):
    """Write a generated image as the publishers would, with numbers of their own."""
    image = (batch.images[index] * 255).round().byte().permute(1, 2, 0).numpy()
    masks = (batch.instances[index] == torch.arange(4)[:, None, None]).numpy()
    return scene(image, masks, shape=[0, 17, 3, 3], color=np.zeros((4, 3)))


@pytest.fixture(scope="module")
def few():
    return Tetrominoes(count=12, test_count=1).read("train", range(12))


@pytest.mark.parametrize("packed", [True, False])
def test_records_are_read_as_they_were_published(packed, few, tmp_path):
    messages = [published(few, index) for index in range(12)]
    write_records(tmp_path / "tetrominoes_train.tfrecords", messages, packed)
    dataset = Tetrominoes(count=8, test_count=2, source="records", root=tmp_path)

    train, test = dataset.read("train", range(8)), dataset.read("test", range(2))

    check_dataset(dataset)
    for field in ("images", "instances", "classes"):
        assert torch.equal(getattr(train, field), getattr(few, field)[:8])
        assert torch.equal(getattr(test, field), getattr(few, field)[8:10])


def test_folders_are_read_as_the_authors_made_them(few, tmp_path):
    for index in range(12):
        image = (few.images[index] * 255).round().byte().permute(1, 2, 0).numpy()
        other = (few.classes[index].numpy() * 13 % 20).astype(np.uint8)  # their own numbers
        files = {"images": image, "masks": few.instances[index].byte().numpy()}
        for kind, pixels in (files | {"sem_masks": other}).items():
            (tmp_path / "tetrominoes" / kind).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / "tetrominoes" / kind / f"{index}.png")
    dataset = Tetrominoes(count=10, test_count=2, source="folder", root=tmp_path)

    batch = dataset.read("train", range(10))

    check_dataset(dataset)
    for field in ("images", "instances", "classes"):
        assert torch.equal(getattr(batch, field), getattr(few, field)[:10])


def test_instances_of_a_folder_may_be_numbered_up_to_255(few, tmp_path):
    image = (few.images[0] * 255).round().byte().permute(1, 2, 0).numpy()
    ids = few.instances[0].byte().numpy()
    ids[ids == 3] = 255
    for index in (0, 1):
        for kind, pixels in {"images": image, "masks": ids, "sem_masks": ids}.items():
            (tmp_path / kind).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / kind / f"{index}.png")

    dataset = Tetrominoes(count=1, test_count=1, source="folder", root=tmp_path)
    batch = dataset.read("train", [0])

    assert batch.instances.unique().tolist() == [0, 1, 2, 255]
    assert torch.equal(batch.classes[0], few.classes[0])


def test_a_mask_that_is_no_piece_is_said(few, tmp_path):
    masks = np.zeros((4, 35, 35))
    masks[1, 3:9, 3:9] = 1
    path = tmp_path / "tetrominoes_train.tfrecords"
    write_records(path, [published(few, 0), scene(np.zeros((35, 35, 3)), masks)])

    with pytest.raises(CelstackError) as refused:
        Tetrominoes(source="records", root=tmp_path).count("train")

    assert str(refused.value) == f"{path}, record 2: one of its masks is no tetromino"


@pytest.mark.parametrize(
    "option",
    [
        {"pieces": "IO"},
        {"per_image": 2},
        {"side": 40},
        {"ground": 0.5},
        {"overlap": True},
        {"seed": 1},
    ],
)
def test_published_images_cannot_be_asked_to_be_others(option):
    with pytest.raises(CelstackError) as refused:
        Tetrominoes(source="records", **option)

    assert str(refused.value) == f'{next(iter(option))}: only for source = "generated"'

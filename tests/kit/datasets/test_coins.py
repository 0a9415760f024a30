import numpy as np
import pytest
import torch
from labels import labeled_objects

from celstack.errors import CelstackError
from celstack.testing import check_dataset
from celstack_kit.datasets.coins import Coins


@pytest.fixture(scope="module")
def plain():
    """The thousand images in the same light, of coins without tint."""
    dataset = Coins(count=1000, test_count=1, variation=0)
    return dataset, dataset.read("train", range(1000))


def coins_of(batch, most=4):
    """Return image, class and mask of every coin."""
    return labeled_objects(batch, most)


def disc(dataset, kind):
    """Return the mask of a whole coin, and its colors."""
    color, alpha = dataset.coins[kind - 1]
    return torch.from_numpy(alpha >= 0.5), torch.from_numpy(color).permute(2, 0, 1).float()


def lying(dataset, kind, seen):
    """List the whole coins that show the pixels seen, by where they are."""
    mask, _ = disc(dataset, kind)
    side, across = seen.shape[0], mask.shape[0]
    for row in range(side - across + 1):
        for column in range(side - across + 1):
            canvas = torch.zeros_like(seen)
            canvas[row : row + across, column : column + across] = mask
            if not (seen & ~canvas).any():
                yield row, column, canvas


def test_it_keeps_the_promises_of_a_dataset():
    check_dataset(Coins(count=20, test_count=5))


def test_the_table_is_the_same_in_all_images(plain):
    dataset, batch = plain
    table = torch.from_numpy(dataset.table).permute(2, 0, 1).float()

    # Edges are soft: a pixel beside a coin may have a little of it.
    near = torch.nn.functional.max_pool2d((batch.instances > 0).float(), 3, 1, 1) > 0
    wrong = (batch.images - table).abs().amax(1)

    assert wrong[~near].max() < 0.003
    assert table.std((1, 2)).min() > 0.02  # there is something to see


def test_a_coin_that_lies_alone_is_its_kind_to_the_pixel():
    dataset = Coins(count=40, test_count=1, objects=1, variation=0)
    batch = dataset.read("train", range(40))

    for image, kind, seen in coins_of(batch):
        mask, colors = disc(dataset, kind)
        rows, columns = seen.any(1).nonzero()[:, 0], seen.any(0).nonzero()[:, 0]
        box = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
        inside = mask & (torch.from_numpy(dataset.coins[kind - 1].alpha) == 1)
        assert torch.equal(seen[box], mask)
        shown = batch.images[image][:, *box]
        assert (shown - colors)[:, inside].abs().max() < 0.003


def test_the_later_of_two_coins_is_whole_and_hides_the_earlier():
    dataset = Coins(count=100, test_count=1, objects=2, variation=0)
    batch = dataset.read("train", range(100))
    hidden = 0

    for first, second in zip(*[iter(coins_of(batch, most=2))] * 2, strict=True):
        assert second[2].sum() == disc(dataset, second[1])[0].sum()
        missing = int(disc(dataset, first[1])[0].sum() - first[2].sum())
        # Whatever is missing of the earlier lies below the later.
        assert missing == 0 or any(
            (whole & second[2]).sum() == missing for *_, whole in lying(dataset, *first[1:])
        )
        hidden += missing > 0

    assert 5 < hidden < 60


def test_enough_is_seen_of_each_coin(plain):
    dataset, batch = plain

    shares = [seen.sum() / disc(dataset, kind)[0].sum() for _, kind, seen in coins_of(batch)]

    assert 0.3 <= min(shares) < 0.5
    assert max(shares) == 1


def test_kinds_are_equally_frequent(plain):
    counts = torch.bincount(torch.tensor([kind for _, kind, _ in coins_of(plain[1])]))

    expected = counts.sum() / 4
    assert counts[0] == 0
    # Chi-square with 3 degrees of freedom: less than this in 999 of 1000 collections.
    assert ((counts[1:] - expected) ** 2 / expected).sum() < 16.3


def test_one_to_four_coins_are_equally_frequent(plain):
    counts = torch.bincount(plain[1].instances.amax((1, 2)), minlength=5)

    assert counts[0] == 0
    # Chi-square with 3 degrees of freedom: less than this in 999 of 1000 collections.
    assert ((counts[1:] - 250) ** 2 / 250).sum() < 16.3


def test_light_falls_on_all_of_an_image():
    dataset = Coins(count=200, test_count=1, variation=0.2)
    batch = dataset.read("train", range(200))
    table = torch.from_numpy(dataset.table).permute(2, 0, 1).float()

    far = torch.nn.functional.max_pool2d((batch.instances > 0).float(), 3, 1, 1) == 0
    share = [(image / table)[:, here] for image, here in zip(batch.images, far, strict=True)]
    light = torch.stack([values.median() for values in share])

    assert max(float((values - values.median()).abs().max()) for values in share) < 0.03
    assert 0.79 < light.min() < 0.83
    assert 0.97 < light.max() <= 1.01


def test_a_coin_has_a_tint_of_its_own_and_is_in_the_light_of_its_image():
    dataset = Coins(count=200, test_count=1, objects=1, variation=0.2)
    batch = dataset.read("train", range(200))
    light = batch.images[:, 0, 0, 0] / dataset.table[0, 0, 0]
    tints = []

    for image, kind, seen in coins_of(batch):
        if not seen[:2, :2].any():
            mask, colors = disc(dataset, kind)
            shares = batch.images[image][:, seen] / colors[:, mask]
            tints.append(shares.median(1).values / light[image])

    tints = torch.stack(tints)
    assert 0.78 < tints.min() < 0.83
    assert 0.97 < tints.max() < 1.02
    assert (tints.amax(1) - tints.amin(1)).max() > 0.1  # channels differ


def test_kinds_differ_in_size_and_look():
    dataset = Coins()

    assert dataset.class_names == ("star", "cross", "triangle", "square")
    assert [coin.alpha.shape for coin in dataset.coins] == [
        (side, side) for side in (23, 20, 17, 14)
    ]
    for coin in dataset.coins:
        assert np.allclose(coin.alpha, coin.alpha.T, atol=0.02)
        assert 0 < coin.alpha[0, len(coin.alpha) // 2 - 2] <= 1  # it fills its box


def test_the_triangle_points_upwards():
    light = Coins().coins[2].color.sum(2)

    dark = light < 0.6 * light.max()
    inside = slice(3, -3)
    assert dark[9:12, inside].sum() > dark[5:8, inside].sum()


def test_there_may_be_fewer_kinds():
    batch = Coins(count=50, test_count=1, kinds=2).read("train", range(50))

    assert batch.classes.unique().tolist() == [0, 1, 2]


def test_the_seed_chooses_table_and_places_and_more_images_leave_the_first_as_they_are():
    few, more = Coins(count=5, test_count=5), Coins(count=300, test_count=5)
    other = Coins(count=5, test_count=5, seed=1)
    first = few.read("train", range(5))

    assert torch.equal(first.images, more.read("train", range(5)).images)
    assert not torch.equal(first.instances, other.read("train", range(5)).instances)
    assert not np.allclose(few.table, other.table)
    assert not torch.equal(first.instances, few.read("test", range(5)).instances)


@pytest.mark.parametrize("objects", [0, 7, (3, 2), (0, 2), (2, 9)])
def test_other_numbers_of_coins_are_refused_in_a_line(objects):
    with pytest.raises(CelstackError) as raised:
        Coins(objects=objects)

    said = "objects: must be 1 to 6, or the least and the most of these, not"
    assert str(raised.value) == f"{said} {objects}"

from itertools import pairwise

import pytest
import torch
from labels import labeled_objects
from PIL import Image, ImageDraw, ImageFont
from torchvision.transforms.functional import pil_to_tensor

from celstack.errors import CelstackError
from celstack.testing import check_dataset
from celstack_kit.datasets.glyphs import Glyphs


@pytest.fixture(scope="module")
def plain():
    """Two thousand lines in one ink on one paper."""
    dataset = Glyphs(count=2000, test_count=1, variation=0)
    return dataset, dataset.read("train", range(2000))


def letters_of(batch, most=6):
    """Return image, class and first and last labeled column of every letter."""
    found = []
    for image, kind, here in labeled_objects(batch, most):
        columns = here.any(0).nonzero()[:, 0].tolist()
        found.append((image, kind, columns[0], columns[-1]))
    return found


def test_it_keeps_the_promises_of_a_dataset():
    check_dataset(Glyphs(count=20, test_count=5))


def test_a_letter_is_what_the_font_draws():
    dataset = Glyphs(count=1, test_count=1, letters="b", per_line=1, variation=0)
    page = Image.new("L", (40, 40))
    font = ImageFont.load_default(20)
    ImageDraw.Draw(page).text((10, 30), "b", fill=255, font=font, anchor="ls")
    drawn = pil_to_tensor(page.crop(page.getbbox()))[0] / 255

    image = dataset.read("train", [0]).images[0]

    paper, ink = image[:, 0, 0], image.amin((1, 2))
    share = ((paper - image.permute(1, 2, 0)) / (paper - ink)).mean(2)
    rows, columns = (share > 0.01).any(1).nonzero()[:, 0], (share > 0.01).any(0).nonzero()[:, 0]
    box = share[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    torch.testing.assert_close(box, drawn, atol=0.01, rtol=0)


def test_a_letter_recurs_to_the_pixel(plain):
    seen = {}
    for image, kind, left, right in letters_of(plain[1])[:2000]:
        own = plain[1].classes[image, :, left : right + 1] == kind
        rows = own.any(1).nonzero()[:, 0]
        box = plain[1].images[image, :, rows[0] : rows[-1] + 1, left : right + 1]
        seen.setdefault(kind, set()).add((box.shape, box.numpy().tobytes()))

    assert len(seen) == 8
    # One picture a letter: all that is in its box is its own, since neighbors never reach in.
    assert {kind: len(pictures) for kind, pictures in seen.items()} == dict.fromkeys(seen, 1)


def test_pixels_of_letters_are_dark_and_all_others_light(plain):
    brightness = plain[1].images.mean(1)

    assert brightness[plain[1].instances > 0].max() < 0.52
    assert brightness[plain[1].instances == 0].min() > 0.5


def test_letters_stand_in_a_row_without_overlap(plain):
    letters = letters_of(plain[1])

    for (image, _, _, right), (next_image, _, left, _) in pairwise(letters):
        assert image != next_image or left > right


def test_letters_are_equally_frequent(plain):
    counts = torch.bincount(torch.tensor([kind for _, kind, _, _ in letters_of(plain[1])]))

    expected = counts.sum() / 8
    assert counts[0] == 0
    # Chi-square with 7 degrees of freedom: less than this in 999 of 1000 collections.
    assert ((counts[1:] - expected) ** 2 / expected).sum() < 24.3


def test_four_to_six_letters_are_equally_frequent(plain):
    counts = torch.bincount(plain[1].instances.amax((1, 2)), minlength=7)

    assert counts[:4].tolist() == [0] * 4
    # Chi-square with 2 degrees of freedom: less than this in 999 of 1000 collections.
    assert ((counts[4:] - 2000 / 3) ** 2 / (2000 / 3)).sum() < 13.8


def test_lines_begin_at_many_rows_and_columns(plain):
    there = plain[1].instances > 0

    assert len(there.any(2).int().argmax(1).unique()) > 3
    assert len(there.any(1).int().argmax(1).unique()) > 20


def test_words_are_apart_and_letters_may_touch(plain):
    letters = letters_of(plain[1])
    gaps = [
        after[2] - before[3] - 1 for before, after in pairwise(letters) if before[0] == after[0]
    ]

    assert min(gaps) == 0
    assert max(gaps) >= 5


def test_paper_and_ink_vary_as_much_as_they_may():
    batch = Glyphs(count=300, test_count=1, variation=0.2).read("train", range(300))
    ink = batch.images[:, 0].masked_fill(batch.instances == 0, 1).amin((1, 2))

    papers = batch.images[:, 0, 0, 0]
    assert 0.77 < papers.min() < 0.8
    assert 0.94 < papers.max() <= 0.98
    assert ink.min() < 0.06
    assert ink.max() > 0.1


def test_the_seed_chooses_the_collection_and_more_images_leave_the_first_as_they_are():
    few, more = Glyphs(count=5, test_count=5), Glyphs(count=300, test_count=5)
    other = Glyphs(count=5, test_count=5, seed=1)
    first = few.read("train", range(5)).images

    assert torch.equal(first, more.read("train", range(5)).images)
    assert not torch.equal(first, other.read("train", range(5)).images)
    assert not torch.equal(first, few.read("test", range(5)).images)


def test_classes_are_called_by_their_letters_and_one_named_twice_is_one():
    assert Glyphs(letters="gig").class_names == ("g", "i")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"letters": ""}, "letters: must be some that the font has; there are none"),
        ({"letters": "a b"}, "letters: must be some that the font has; ' ' is not one"),
        ({"letters": "a字"}, "letters: must be some that the font has; '字' is not one"),
        ({"letters": "a\n"}, r"letters: must be some that the font has; '\n' is not one"),
        ({"size": 40}, "size: letters of 30 pixels are too tall for 24"),
        ({"per_line": 9}, "per_line: 9 letters of 11 pixels are too many for 96"),
        (
            {"per_line": (3, 2)},
            "per_line: must be a number, or the least and the most, from 1 on, not (3, 2)",
        ),
        (
            {"per_line": 0},
            "per_line: must be a number, or the least and the most, from 1 on, not 0",
        ),
    ],
)
def test_what_cannot_be_set_is_refused_in_a_line(options, said):
    with pytest.raises(CelstackError) as raised:
        Glyphs(**options)

    assert str(raised.value) == said

import numpy as np

from celstack_kit.dataset_support.collage import Collage, Cutout

GRAY = np.full((3, 4, 3), 0.2)
WHITE = np.ones((1, 2, 3))


def cutout(*alpha):
    return Cutout(WHITE[:, : len(alpha)], np.array([alpha]))


def test_a_cutout_is_pasted_at_its_row_and_column():
    collage = Collage(GRAY)

    collage.paste(cutout(1.0, 1.0), (2, 1), class_id=7)

    image, instances, classes = collage.labeled()
    assert image[..., 0].tolist() == [[51] * 4, [51] * 4, [51, 255, 255, 51]]
    assert instances.tolist() == [[0] * 4, [0] * 4, [0, 1, 1, 0]]
    assert classes.tolist() == [[0] * 4, [0] * 4, [0, 7, 7, 0]]


def test_what_is_half_transparent_is_mixed_with_what_is_below():
    collage = Collage(GRAY)

    collage.paste(cutout(0.5, 0.25), (0, 0), class_id=1)

    image, instances, _ = collage.labeled()
    assert image[0, :3, 0].tolist() == [153, 102, 51]
    assert instances[0].tolist() == [1, 0, 0, 0]  # whoever covers half of a pixel has it


def test_a_later_cutout_hides_an_earlier_one():
    collage = Collage(GRAY)

    collage.paste(cutout(1.0, 1.0), (0, 0), class_id=1)
    collage.paste(Cutout(0 * WHITE, np.ones((1, 2))), (0, 1), class_id=2)

    image, instances, classes = collage.labeled()
    assert image[0, :, 0].tolist() == [255, 0, 0, 51]
    assert instances[0].tolist() == [1, 2, 2, 0]
    assert classes[0].tolist() == [1, 2, 2, 0]
    assert collage.visible_pixels().tolist() == [1, 2]


def test_a_cutout_that_is_hidden_wholly_is_seen_nowhere():
    collage = Collage(GRAY)

    collage.paste(cutout(1.0), (0, 0), class_id=1)
    collage.paste(cutout(1.0), (0, 0), class_id=1)

    assert collage.visible_pixels().tolist() == [0, 1]


def test_the_picture_itself_stays_as_it_is():
    picture = GRAY.copy()

    Collage(picture).paste(cutout(1.0), (0, 0), class_id=1)

    assert (picture == GRAY).all()

import numpy as np
import pytest
from tfrecords import example, scene, write_records

from celstack.errors import CelstackError
from celstack_kit.dataset_support.object_records import read_object_records

SIZE = (2, 3)
IMAGE = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
# The background, an object, and one that is not there.
MASKS = np.array([[[1, 1, 0], [1, 1, 0]], [[0, 0, 1], [0, 0, 1]], [[0, 0, 0], [0, 0, 0]]])


def read(path, convert=lambda record: record.label(record.features["shape"])):
    found = list(read_object_records(path, SIZE, convert))
    return [str(one) if isinstance(one, CelstackError) else one for one in found]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("single_bytes", [True, False])
def test_a_record_becomes_an_image_with_labels(packed, single_bytes, tmp_path):
    message = scene(IMAGE, MASKS, single_bytes, shape=[0, 7, 0])

    (found,) = read(write_records(tmp_path / "x", [message], packed))

    assert np.array_equal(found.image, IMAGE)
    assert found.instances.tolist() == [[0, 0, 1], [0, 0, 1]]
    assert found.classes.tolist() == [[0, 0, 7], [0, 0, 7]]
    assert {array.dtype for array in found} == {np.dtype(np.uint8)}


def test_the_background_has_no_class_whatever_its_record_says(tmp_path):
    (found,) = read(write_records(tmp_path / "x", [scene(IMAGE, MASKS, shape=[9, 7, 0])]))

    assert found.classes[0].tolist() == [0, 0, 7]


def test_other_features_are_handed_on(tmp_path):
    seen = []
    message = scene(IMAGE, MASKS, shape=[0, 1, 0], x=[0.5, 0.25, 0])
    path = write_records(tmp_path / "x", [message])

    read(path, lambda record: seen.append(record.features))

    assert set(seen[0]) == {"shape", "x", "visibility"}
    assert seen[0]["x"].tolist() == [0.5, 0.25, 0]
    assert seen[0]["visibility"].tolist() == [1, 1, 0]


def test_a_record_that_is_none_of_ours_is_passed_over(tmp_path):
    messages = [scene(IMAGE, MASKS, shape=[0, kind, 0]) for kind in (1, 2, 3)]
    path = write_records(tmp_path / "x", messages)

    def odd(record):
        return (
            record.label(record.features["shape"]) if record.features["shape"][1] % 2 else None
        )

    assert [found.classes.max() for found in read(path, odd)] == [1, 3]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (example(mask=IMAGE), "no image in it; is this the right file?"),
        (example(image=IMAGE.astype(np.float32), mask=IMAGE), "no image in it"),
        (example(image=IMAGE), "no mask in it"),
        (scene(IMAGE[:1], MASKS, shape=[0, 1, 0]), "an image of 9 bytes, not 2 x 3 x 3"),
        (scene(IMAGE, MASKS[:1, :1], shape=[0]), "masks of 3 bytes, which are no 2 x 3"),
        (scene(IMAGE, MASKS[:0], shape=[0]), "masks of 0 bytes, which are no 2 x 3"),
        (scene(IMAGE, MASKS, shape=[0, 1]), "classes of 2 entities, but masks of 3"),
        (scene(IMAGE, np.tile(MASKS, (90, 1, 1)), shape=[0]), "masks of 270 entities"),
        (b"\x0f", "damaged; no tf.train.Example (wire type 7 at byte 1)"),
    ],
)
def test_what_is_wrong_with_a_record_is_said_and_the_next_one_follows(message, said, tmp_path):
    good = scene(IMAGE, MASKS, shape=[0, 7, 0])
    path = write_records(tmp_path / "x", [good, message, good])

    first, error, last = read(path)

    assert error.startswith(f"{path}, record 2: {said}")
    assert first.classes.max() == last.classes.max() == 7


@pytest.mark.parametrize("odd", [np.inf, np.nan])
def test_a_number_that_is_none_is_damage(odd, tmp_path):
    path = write_records(tmp_path / "x", [scene(IMAGE, MASKS, shape=[0, odd, 0])])

    (error,) = read_object_records(path, SIZE, lambda found: int(found.features["shape"][1]))

    assert str(error).startswith(f"{path}, record 1: damaged; no tf.train.Example (cannot ")

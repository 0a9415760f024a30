import numpy as np
import pytest
import tfrecords
from PIL import Image
from tfrecords import example, scene, write_records

from celstack.data.paths import cache_dir
from celstack.errors import CelstackError
from celstack.testing import check_dataset
from celstack_kit.clevr import workers
from celstack_kit.dataset_support import image_cache as stored
from celstack_kit.dataset_support.cache_writer import CacheWriter
from celstack_kit.datasets import clevr6
from celstack_kit.datasets.clevr6 import Clevr6
from celstack_kit.formats import tfrecord

RECORDS = "clevr_with_masks_train.tfrecords"


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CELSTACK_DATA", raising=False)
    # The plain way takes a second for each of these records; other tests compare the two.
    monkeypatch.setattr(tfrecords, "masked", tfrecord.masked_crc32c)
    return tmp_path


def refusal(make):
    with pytest.raises(CelstackError) as refused:
        make()
    return str(refused.value)


# Generated


@pytest.fixture
def little(monkeypatch):
    """Let images be generated that are small enough to wait for."""
    pytest.importorskip("mitsuba")
    pytest.importorskip("mitsuba_oidn")
    monkeypatch.setattr(workers, "CHUNK_IMAGES", 2)
    small = {"side": 24, "count": 5, "test_count": 1, "samples": 4}
    return lambda **options: Clevr6(**small | options)


def test_generated_images_keep_the_promises_of_a_dataset(little):
    check_dataset(little(count=3, objects=4))


def test_images_are_those_of_their_job(little):
    batch = little(seed=7, objects=(4, 5)).read("train", range(5))

    job = workers.RenderJob(seed=7, split=0, min_objects=4, max_objects=5, samples=4, side=24)
    drawn = workers.render_image(job, 3)
    levels = (batch.images[3] * 255).round().byte().permute(1, 2, 0)
    assert np.array_equal(levels, drawn.image)
    assert np.array_equal(batch.instances[3], drawn.instances)
    assert np.array_equal(batch.classes[3], drawn.classes)


def test_what_was_rendered_before_an_interruption_is_kept(little, monkeypatch):
    class Interrupted(CacheWriter):
        def add(self, *arrays):
            super().add(*arrays)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(stored, "CacheWriter", Interrupted)
        little().count("train")
    (chunk,) = (cache_dir() / "generated").glob("clevr6-*.chunks/0-2.npz")
    with np.load(chunk) as kept:
        white = {**kept, "image": np.full_like(kept["image"], 255)}
    np.savez(chunk, **white)

    images = little().read("train", range(5)).images

    found = (images == 1).all(3).all(2).all(1)
    assert found.tolist() == [True, True, False, False, False]  # read, not rendered again
    assert not chunk.parent.exists()


def test_without_the_renderer_the_remedy_is_said(monkeypatch):
    monkeypatch.setattr(clevr6, "find_spec", lambda name: None)

    said = refusal(lambda: Clevr6(count=1).count("train"))

    text = 'generating images needs mitsuba; pip install "celstack[clevr]"'
    assert said == f"clevr6: {text}"


def test_without_the_denoiser_the_remedy_is_said(monkeypatch):
    monkeypatch.setattr(clevr6, "find_spec", lambda name: name == "mitsuba" or None)

    said = refusal(lambda: Clevr6(count=1).count("train"))

    text = 'generating images needs mitsuba_oidn; pip install "celstack[clevr]"'
    assert said == f"clevr6: {text}"


def test_the_usual_look_is_the_default():
    assert Clevr6().look == clevr6.DEFAULT_LOOK
    assert Clevr6().samples == clevr6.DEFAULT_SAMPLES


def test_images_of_another_look_are_kept_apart():
    looks = [{}, {"ground": (0.5, 0.4, 0.3)}, {"sky": 0.3}, {"lamps": 0.5}, {"denoise": False}]

    keys = [str(Clevr6(**look).cache_key()) for look in looks]

    assert len(set(keys)) == len(keys)


def test_kept_images_need_no_renderer(little, monkeypatch):
    little(count=1).count("train")
    monkeypatch.setattr(clevr6, "find_spec", lambda name: None)

    assert little(count=1).count("train") == 1


def test_there_are_six_classes_of_generated_objects():
    dataset = Clevr6()

    assert dataset.class_names == (
        *("rubber cube", "rubber sphere", "rubber cylinder"),
        *("metal cube", "metal sphere", "metal cylinder"),
    )
    assert dataset.max_objects == 6
    assert dataset.image_shape == (3, 128, 128)


def test_images_may_be_smaller_than_the_papers():
    assert Clevr6(side=64).image_shape == (3, 64, 64)
    assert Clevr6(side=64).cache_key() == {**Clevr6().cache_key(), "side": 64}


def test_an_empty_range_of_objects_is_refused():
    assert refusal(lambda: Clevr6(objects=(4, 3))) == "objects: from 4 to 3 is an empty range"


@pytest.mark.parametrize(
    "option", [{"samples": 16}, {"seed": 1}, {"sky": 0.3}, {"denoise": False}]
)
def test_options_of_the_generator_are_refused_for_published_files(option):
    (name,) = option

    assert refusal(lambda: Clevr6(source="records", **option)).startswith(f"{name}: only for")


# Published


def solids(objects, level=100):
    """The published image: bars of 20 columns, the first where the crop begins."""
    image = np.full((240, 320, 3), level, np.uint8)
    masks = np.zeros((11, 240, 320), bool)
    for entity in range(1, objects + 1):
        where = (slice(29, 100), slice(44 + 20 * entity, 64 + 20 * entity))
        masks[(entity, *where)], image[where] = True, 20 * entity
    masks[0] = ~masks[1:].any(0)
    return image, masks


def message(objects, level=100, kinds=((2, 3), (1, 3), (2, 3))):
    image, masks = solids(objects, level)
    features = np.zeros((2, 11))
    for entity in range(1, objects + 1):
        features[:, entity] = kinds[(entity - 1) % len(kinds)]
    return scene(image, masks, False, material=features[0], shape=features[1])


@pytest.fixture
def published(home):
    numbers = [(3, 0), (7, 1), (6, 2), (10, 3), (4, 4)]
    messages = [message(objects, level) for objects, level in numbers]
    return write_records(home / "data" / RECORDS, messages)


def opened(root, **options):
    return Clevr6(**{"source": "records", "root": root, "count": 2, "test_count": 1} | options)


def test_published_images_keep_the_promises_of_a_dataset(published):
    check_dataset(opened(published.parent))


def test_images_of_more_than_six_objects_are_left_out(published):
    dataset = opened(published.parent)

    train, test = dataset.read("train", [0, 1]), dataset.read("test", [0])
    levels = [round(255 * float(batch[0, -1, -1])) for batch in (*train.images, *test.images)]
    assert levels == [0, 2, 4]
    assert train.instances.amax((1, 2)).tolist() == [3, 6]


def test_the_middle_is_kept_and_resized(published):
    batch = opened(published.parent).read("train", [0])

    # Rows 29 to 100 and 20 columns from 64 on, at two thirds of their size.
    found = (batch.instances[0] == 1).nonzero()
    assert found.amin(0).tolist() == [0, 0]
    assert found.amax(0).tolist() == [46, 12]
    assert batch.images[0, :, 5, 5].tolist() == pytest.approx([20 / 255] * 3)
    assert int(batch.instances.max()) == 3


def test_images_are_smoothed_and_masks_are_not(published):
    batch = opened(published.parent).read("train", [0])

    levels = (255 * batch.images[0, 0, :40]).round().unique()
    assert len(levels) > 4
    assert batch.instances[0].unique().tolist() == [0, 1, 2, 3]


def test_a_class_is_a_material_and_a_shape(published):
    batch = opened(published.parent).read("train", [0])

    classes = [
        batch.classes[batch.instances == number].unique().tolist() for number in (1, 2, 3)
    ]
    assert classes == [[1], [2], [1]]


def test_more_pairs_than_there_are_in_clevr_are_refused(home):
    kinds = [(material, shape) for material in (1, 2) for shape in (1, 2, 3)]
    messages = [message(6, kinds=kinds), message(3, kinds=[(3, 1)])]
    path = write_records(home / "odd" / RECORDS, messages)

    said = refusal(lambda: opened(path.parent).count("train"))

    assert said == f"{path}, record 2: a material and shape beyond 6 pairs: (3, 1)"


def test_a_pair_that_is_not_in_clevr_costs_only_its_record(home):
    kinds = [(material, shape) for material in (1, 2) for shape in (1, 2, 3)]
    good, odd = message(6, kinds=kinds), message(3, kinds=[(3, 1)])
    path = write_records(home / "odd" / RECORDS, [good, odd, good, good])

    batch = opened(path.parent, skip_broken=True).read("train", [0, 1])

    assert batch.classes.unique().tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_material_and_shape_may_be_bytes(home):
    image, masks = solids(3)
    codes = np.array([0, 1, 2, 1, *[0] * 7], np.uint8)
    masks = np.where(masks, 255, 0).astype(np.uint8)
    record = example(False, image=image, mask=masks, material=codes, shape=codes)
    path = write_records(home / "bytes" / RECORDS, [record] * 3)

    assert opened(path.parent).read("train", [0]).classes.unique().tolist() == [0, 1, 2]


def test_a_record_of_another_dataset_is_refused(home):
    path = write_records(home / "odd" / RECORDS, [scene(*solids(3), False, shape=np.ones(11))])

    said = refusal(lambda: opened(path.parent).count("train"))

    text = "not a material and shape for each entity; is it the right file?"
    assert said == f"{path}, record 1: {text}"


def test_a_broken_record_is_skipped_if_so_wished(published, home):
    messages = [message(3, 0), b"nonsense", message(3, 2), message(3, 4)]
    path = write_records(home / "odd" / RECORDS, messages)

    dataset = opened(path.parent, skip_broken=True)

    assert dataset.count("train") == 2


def folder_of(root, images):
    for kind in ("images", "masks", "sem_masks"):
        (root / kind).mkdir(parents=True)
    for number, (image, masks) in enumerate(images):
        ids = (masks * np.arange(len(masks), dtype=np.uint8)[:, None, None]).max(0)
        Image.fromarray(image).save(root / "images" / f"{number}.png")
        Image.fromarray(ids).save(root / "masks" / f"{number}.png")
        Image.fromarray((ids > 0).astype(np.uint8) * 5).save(
            root / "sem_masks" / f"{number}.png"
        )
    return root


def test_folders_are_read_in_the_same_way(home):
    root = folder_of(home / "folder", [solids(3), solids(7), solids(5), solids(6)])

    dataset = opened(root, source="folder")

    check_dataset(dataset)
    batch = dataset.read("train", [0, 1])
    assert batch.instances.amax((1, 2)).tolist() == [3, 5]
    assert (batch.instances[0] == 1).nonzero().amax(0).tolist() == [46, 12]
    assert batch.classes.unique().tolist() == [0, 5]


def test_folders_of_cropped_images_are_taken_as_they_are(home):
    image, masks = solids(3)
    small = image[:128, :128], masks[:, :128, :128]
    root = folder_of(home / "folder", [small, small])

    batch = opened(root, source="folder", count=1).read("train", [0])

    levels = (255 * batch.images[0]).round().byte().permute(1, 2, 0)
    assert np.array_equal(levels, small[0])


def test_folders_of_other_sizes_are_refused(home):
    image, masks = solids(3)
    root = folder_of(home / "folder", [(image[:100], masks[:, :100])])

    said = refusal(lambda: opened(root, source="folder").count("train"))

    assert said == f"{root / 'images' / '0.png'}: it is 100 x 320, not (128, 128)"

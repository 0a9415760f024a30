from collections import Counter
from itertools import combinations, islice
from math import hypot

import attrs
import numpy as np
import pytest

from celstack_kit.clevr.layout import CLASSES, COLORS, ClevrObject, ClevrScene, sample_layouts

LOOK = ClevrScene((), camera=(7.5, -6.5, 5.35), lamps={})


def scene_of(*seed, least=3, most=6):
    return next(sample_layouts(np.random.default_rng(seed), least, most))


@pytest.fixture(scope="module")
def many():
    return [scene_of(0, index) for index in range(300)]


def test_objects_keep_a_distance_from_each_other(many):
    pairs = [pair for scene in many for pair in combinations(scene.objects, 2)]

    gaps = [hypot(a.x - b.x, a.y - b.y) - a.radius - b.radius for a, b in pairs]
    assert min(gaps) >= 0.25


def test_the_centers_of_all_objects_are_in_the_image(many):
    seen = np.concatenate([scene.project([t.center for t in scene.objects]) for scene in many])

    assert seen.min() >= 0.04
    assert seen.max() <= 0.96


def test_each_number_of_objects_is_equally_frequent(many):
    counts = Counter(len(scene.objects) for scene in many)

    assert counts.keys() == {3, 4, 5, 6}
    # Chi-square with 3 degrees of freedom: less than this in 999 of 1000 collections.
    assert sum((count - 75) ** 2 / 75 for count in counts.values()) < 16.3


@pytest.mark.parametrize(
    ("field", "values"),
    [("shape", 3), ("material", 2), ("color", 8), ("size", 2), ("class_number", 6)],
)
def test_each_kind_of_object_is_equally_frequent(many, field, values):
    objects = [thing for scene in many for thing in scene.objects]

    counts = Counter(getattr(thing, field) for thing in objects)
    expected = len(objects) / values
    assert len(counts) == values
    # Chi-square with 7 degrees of freedom: less than this in 999 of 1000 collections.
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 24.3


def test_camera_and_lamps_are_a_little_different_each_time(many):
    eyes = np.array([scene.camera for scene in many])
    keys = np.array([scene.lamps["key"] for scene in many])

    assert np.abs(eyes - (7.5, -6.5, 5.35)).max() <= 0.5
    assert eyes.std(0).min() > 0.2
    assert keys.std(0).min() > 0.4


def test_only_places_differ_from_one_arrangement_to_the_next():
    first, second = islice(sample_layouts(np.random.default_rng(4), 3, 6), 2)

    def unplaced(scene):
        objects = (attrs.evolve(thing, x=0, y=0) for thing in scene.objects)
        return attrs.evolve(scene, objects=tuple(objects))

    assert first != second
    assert unplaced(first) == unplaced(second)


def test_the_seed_decides():
    assert scene_of(1, 2) == scene_of(1, 2)
    assert scene_of(1, 2) != scene_of(1, 3)


def test_ten_objects_find_their_places():
    assert len(scene_of(0, least=10, most=10).objects) == 10


@pytest.mark.parametrize(
    ("point", "across", "down"),
    [
        ((0, 0, 0), 0, 0),
        ((1, 1, 0), 1, 0),  # to the right, seen from this side
        ((0, 0, 1), 0, -1),  # up
        ((2, -2, 0), 0, 1),  # nearer, and so further down
    ],
)
def test_where_points_are_seen(point, across, down):
    (middle,), (seen,) = LOOK.project([(0, 0, 0)]), LOOK.project([point])

    moved = np.where(np.abs(seen - middle) < 0.05, 0, np.sign(seen - middle))
    assert moved.tolist() == [across, down]


def test_the_middle_of_the_ground_is_seen_five_pixels_of_192_above_the_middle():
    np.testing.assert_allclose(LOOK.project([(0, 0, 0)]), [[0.5, 0.5 - 5 / 192]])


def test_what_is_twice_as_far_is_seen_half_as_large():
    nearer, further = (np.array(LOOK.camera) * (1 - distance) for distance in (0.5, 1.0))
    up = np.array([0, 0, 1e-3])

    sizes = [np.diff(LOOK.project([p, p + up]), axis=0)[0, 1] for p in (nearer, further)]
    assert sizes[0] / sizes[1] == pytest.approx(2, rel=1e-3)


def test_classes_are_pairs_of_material_and_shape():
    thing = ClevrObject("cube", "metal", "red", "small", 0, 0, 0)

    assert CLASSES[thing.class_number - 1] == "metal cube"
    assert len(set(CLASSES)) == 6


def test_objects_stand_on_the_ground():
    heights = {
        s: ClevrObject(s, "metal", "red", "large", 0, 0, 0).half_height
        for s in ("cube", "sphere")
    }

    assert heights["sphere"] == 0.7
    # Its corners, not its sides, reach as far as the sphere does.
    assert heights["cube"] == pytest.approx(0.495, abs=1e-3)


def test_colors_are_those_of_clevr():
    assert COLORS["gray"] == (87, 87, 87)
    assert COLORS["yellow"] == (255, 238, 51)
    assert len(COLORS) == 8

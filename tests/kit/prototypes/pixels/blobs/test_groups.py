import numpy as np

from celstack_kit.prototypes.pixels.blobs.groups import _neighbors, group


def clouds(sizes, spread=0.1, seed=0):
    """Points around places that are far apart, and the place of each."""
    random = np.random.default_rng(seed)
    places = np.repeat(np.arange(len(sizes)), sizes)
    centers = 3.0 * np.eye(len(sizes))
    points = centers[places] + spread * random.standard_normal((len(places), len(sizes)))
    return points[:, None], places


def groups_of(vectors, count, seed=0):
    return group(vectors, count, np.random.default_rng(seed))


def test_clouds_are_groups():
    vectors, places = clouds([60, 50, 40])

    found = groups_of(vectors, 3)

    kept = found >= 0
    assert kept.mean() > 0.85
    pairs = {*zip(places[kept].tolist(), found[kept].tolist(), strict=True)}
    assert len(pairs) == 3


def test_small_groups_do_not_take_the_place_of_large_ones():
    vectors, places = clouds([80, 70, 60, 15, 15])

    found = groups_of(vectors, 3)

    assert {*places[found >= 0].tolist()} == {0, 1, 2}
    assert len({*found[places == 0].tolist()} - {-1}) == 1


def test_a_chain_is_one_group():
    angles = np.linspace(0, np.pi, 150)
    chain = 5 * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    cloud = np.array([0, 0, 6]) + 0.3 * np.random.default_rng(0).standard_normal((150, 3))

    found = groups_of(np.concatenate([chain, cloud])[:, None], 2)

    assert len({*found[:150].tolist()} - {-1}) == 1
    assert {*found[:150].tolist()} & {*found[150:].tolist()} <= {-1}


def test_the_nearest_variant_counts():
    random = np.random.default_rng(0)
    first = random.standard_normal((30, 4))
    other = first[::-1].copy()

    distances, nearest = _neighbors(np.stack([first, other], axis=1))

    assert (nearest[:, 0] == np.arange(30)[::-1]).all()
    assert np.abs(distances[:, 0]).max() < 1e-9


def test_the_same_random_numbers_give_the_same_groups():
    vectors, _ = clouds([40, 40, 40], spread=0.8)

    assert (groups_of(vectors, 3, seed=5) == groups_of(vectors, 3, seed=5)).all()

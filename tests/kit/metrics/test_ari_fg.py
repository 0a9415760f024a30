import math

import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from celstack.scene import EMPTY
from celstack.testing import check_metric
from celstack_kit.metrics.ari_fg import AriFg

TWO = [[0, 1]]


def scored(*batches):
    metric = AriFg()
    for batch in batches:
        metric.update(*batch)
    return metric


def test_it_keeps_the_promises_of_a_metric():
    check_metric(AriFg())


@pytest.mark.parametrize(
    ("instances", "labels", "expected"),
    [
        ([0, 1, 1, 2, 2], [0, 1, 1, 2, 2], 1.0),
        ([0, 1, 1, 2, 2], [2, 1, 1, 2, 2], 1.0),  # the background does not matter
        ([0, 1, 1, 2, 2], [0, 2, 2, 1, 1], 1.0),  # nor do names
        ([1, 1, 2, 2], [1, 2, 1, 2], -0.5),  # worse than chance
        ([0, 0, 1, 1], [0, 0, 1, 1], 1.0),  # one object
        ([0, 0, 1, 1], [0, 0, 1, 2], 0.0),  # one object, in two layers
        ([0, 0, 0, 1], [0, 0, 0, 2], 1.0),  # one pixel
        ([1, 1, 2, 2], [1, 1, 1, 1], 0.0),
        ([1, 1, 2, 3], [1, 1, 2, 2], 4 / 7),
    ],
)
def test_values(shown, instances, labels, expected):
    metric = scored(shown([labels], TWO, instances=[instances]))

    assert metric.compute() == pytest.approx(expected, abs=1e-12)


def reassigned(shown, sprite):
    """Score two objects of two pixels; the second and the last pixel were not found.

    The image is as bright as the first layer at the second pixel, and almost as bright as
    the second layer at the last.
    """
    told = shown(
        [[1, 0, 2, 0]],
        [sprite],
        instances=[[1, 1, 2, 2]],
        images=[[0.0, 0.2, 0.0, 0.7]],
        colour=[[[0.0, 0.2, 0.0, 0.3], [0.0, 0.7, 0.0, 0.8]]],
    )
    return scored(told).compute()


def test_pixels_that_were_not_found_go_to_the_layer_of_the_nearest_colour(shown):
    assert reassigned(shown, [0, 1]) == 1.0


@pytest.mark.parametrize("sprite", [[EMPTY, 1], [0, EMPTY]])
def test_they_do_not_go_to_layers_that_are_empty(shown, sprite):
    # All pixels but one are of one layer: as good as chance.
    assert reassigned(shown, sprite) == pytest.approx(0.0)


def test_pixels_that_were_found_stay_where_they_are(shown):
    told = shown(
        [[1, 1, 2, 2]],
        TWO,
        instances=[[1, 1, 2, 2]],
        images=[[0.0, 1.0, 0.0, 1.0]],
        colour=[[[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]],
    )

    assert scored(told).compute() == 1.0


def test_distances_are_squared(judged):
    scene, rendering, batch = judged(
        TWO, [[[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]], instances=[[1, 1, 2, 2, 1]]
    )
    # From black: 0.5 in one channel, or 0.2 in each of three, which is more unless squared.
    rendering.layers[:, 0, :3, 0, 4] = 0.2
    rendering.layers[:, 1, :3, 0, 4] = torch.tensor([0.5, 0.0, 0.0])

    assert scored((scene, rendering, batch)).compute() == 1.0


@pytest.mark.parametrize(("instances", "expected"), [([1, 1, 2, 2], 0.0), ([0, 1, 1, 1], 1.0)])
def test_where_all_layers_are_empty_all_pixels_are_one(shown, instances, expected):
    colour = [[[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]]]
    told = shown([[0, 0, 0, 0]], [[EMPTY, EMPTY]], instances=[instances], colour=colour)

    assert scored(told).compute() == expected


def test_an_image_without_foreground_is_skipped_and_keeps_its_place(shown):
    good = shown([[1, 1, 2, 2]], TWO, instances=[[1, 1, 2, 2]])
    none = shown([[0, 0, 1, 2]], TWO, instances=[[0, 0, 0, 0]])
    poor = shown([[1, 1, 1, 1]], TWO, instances=[[1, 1, 2, 2]])

    metric = scored(good, none, poor)

    assert metric.compute() == 0.5
    assert metric.scores == pytest.approx([1.0, math.nan, 0.0], nan_ok=True)


def test_there_is_no_number_where_no_image_has_foreground(shown):
    assert math.isnan(scored(shown([[0, 1]], TWO, instances=[[0, 0]])).compute())


def test_it_is_a_mean_over_images_not_over_pixels_of_all(shown):
    one = shown([[1, 1, 2, 2]], TWO, instances=[[1, 1, 2, 2]])
    other = shown([[2, 2, 1, 1]], TWO, instances=[[1, 1, 2, 2]])

    assert scored(one, other).compute() == 1.0


def test_it_agrees_with_scikit_learn_on_the_plainest_transcription(judged):
    random = torch.Generator().manual_seed(0)
    images, layers, pixels = 30, 4, 40
    sprite = torch.randint(EMPTY, 2, (images, layers), generator=random)
    filled = (sprite != EMPTY)[:, :, None]
    visible = torch.rand(images, layers, pixels, generator=random).square() * filled
    colour = torch.rand(images, layers, pixels, generator=random)
    seen = torch.rand(images, pixels, generator=random)
    truth = torch.randint(0, 4, (images, pixels), generator=random)
    truth[0], truth[1], truth[2, 1:] = 1, truth[1].clamp(max=1), 0
    truth[2, 0] = 3

    told = judged(
        sprite.tolist(),
        visible.tolist(),
        colour=colour.tolist(),
        images=seen.tolist(),
        instances=truth.tolist(),
    )

    expected = []
    for image in range(images):
        labels, kept = [], []
        for pixel in range(pixels):
            if truth[image, pixel] == 0:
                continue
            shows = visible[image, :, pixel].tolist()
            label = shows.index(max(shows))
            if max(shows) <= 0.5:
                candidates = [k for k in range(layers) if sprite[image, k] != EMPTY]
                errors = [abs(colour[image, k, pixel] - seen[image, pixel]) for k in candidates]
                label = candidates[errors.index(min(errors))] if candidates else EMPTY
            labels.append(label)
            kept.append(int(truth[image, pixel]))
        expected.append(adjusted_rand_score(kept, labels))
    assert scored(told).scores == pytest.approx(expected, abs=1e-12)


def test_it_is_left_out_where_instances_are_not_known():
    assert AriFg.needs == ("instances",)

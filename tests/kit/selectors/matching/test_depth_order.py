"""Layers are moved where they fit better."""

import torch

from celstack import Decomposer
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.matching import Matching
from celstack_kit.selectors.matching.depth_order import (
    improve_depth_order,
    move_layer,
    overlaps,
)
from celstack_kit.selectors.matching.placement import Placement
from celstack_kit.selectors.matching.scene_state import SceneState, composite
from celstack_kit.transforms.position import Position


def draft(layers, order):
    """Make a draft of these layers, of an image in which they are in this order."""
    model = Decomposer(
        sprites=Pixels(count=1, size=(2, 2)),
        layer_transforms=[Position()],
        compositor=Ordered(layers=layers.shape[1]),
        selector=Matching(),
    )
    images = composite(layers[:, order], torch.zeros_like(layers[:, 0, :-1]))[0]
    model.prepare(images)
    made = SceneState(images, model, Placement(model, (2, 2)), None)
    made.layers = layers.clone()
    made.sprite = torch.arange(layers.shape[1]).expand(len(layers), -1).clone()
    return made


def three_layers():
    """Three opaque layers that all overlap, in three colors."""
    layers = torch.zeros(1, 3, 4, 6, 6)
    for number, color in enumerate((0.2, 0.6, 1.0)):
        layers[:, number, :3, number : number + 4, number : number + 4] = color
        layers[:, number, 3, number : number + 4, number : number + 4] = 1.0
    return layers


def test_any_order_of_three_layers_is_found():
    for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
        made = draft(three_layers(), order)

        moved = improve_depth_order(made, torch.arange(1))

        assert torch.equal(composite(made.layers, torch.zeros(1, 3, 6, 6))[0], made.images)
        assert moved.tolist() == [order != [0, 1, 2]]


def test_layers_that_do_not_overlap_stay_where_they_are():
    layers = three_layers()[:, [0, 2]]
    layers[:, :, 3, 2:4, 2:4] = 0.0

    made = draft(layers, [1, 0])

    assert not overlaps(layers).any()
    assert improve_depth_order(made, torch.arange(1)).tolist() == [False]


def test_only_some_images_are_touched():
    made = draft(three_layers().repeat(2, 1, 1, 1, 1), [2, 1, 0])

    improve_depth_order(made, torch.tensor([1]))

    assert made.sprite.tolist() == [[0, 1, 2], [2, 1, 0]]


def test_a_layer_is_moved_and_the_others_keep_their_order():
    order = torch.tensor([[2, 0, 1], [0, 1, 2]])

    assert move_layer(order, 0, 2).tolist() == [[2, 1, 0], [1, 2, 0]]
    assert move_layer(order, 2, 1).tolist() == [[0, 2, 1], [0, 2, 1]]

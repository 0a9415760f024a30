import pytest
import torch

from celstack.model.objective import Loss, objective, squared_error
from celstack.scene import EMPTY, Scene


def judge(images, rendered, sprite, empty_cost=0.0, area_cost=0.0, alpha=0.0):
    """Judge images of one grey row each."""
    images = torch.tensor(images)[:, None, None]
    rendered = torch.tensor(rendered)[:, None, None]
    batch, layers = len(sprite), len(sprite[0])
    scene = Scene(
        sprite=torch.tensor(sprite),
        sprite_params=torch.zeros(batch, layers, 0),
        layer_params=torch.zeros(batch, layers, 0),
        occlusion=torch.zeros(batch, layers, layers),
    )
    masks = torch.full((batch * layers, *images.shape[2:]), alpha)
    rendered.requires_grad_()
    return objective(images, scene, rendered, masks, empty_cost, area_cost), rendered


def test_the_squared_error_is_a_mean_over_the_values_of_an_image():
    error = squared_error(torch.zeros(2, 3, 1, 2), torch.tensor([1.0, 2.0]).expand(2, 3, 1, 2))

    assert error.tolist() == [2.5, 2.5]


def test_every_image_has_its_own_error():
    images = torch.tensor([1.0, 3.0]).view(2, 1, 1, 1)

    assert squared_error(images, torch.zeros(2, 1, 1, 1)).tolist() == [1.0, 9.0]


def test_the_reconstruction_term_is_a_mean_over_images():
    loss, _ = judge([[1.0], [3.0]], [[0.0], [0.0]], sprite=[[0], [0]])

    assert loss.reconstruction.item() == 5.0


def test_the_sprite_term_is_the_price_of_layers_that_are_filled():
    sprite = [[0, EMPTY, 2], [EMPTY, EMPTY, EMPTY]]

    loss, _ = judge([[0.0], [0.0]], [[0.0], [0.0]], sprite, empty_cost=0.5)

    assert loss.sprites.item() == 0.5  # two layers of two images: one each


def test_the_first_sprite_is_not_the_empty_one():
    loss, _ = judge([[0.0]], [[0.0]], sprite=[[0]], empty_cost=0.25)

    assert loss.sprites.item() == 0.25


def test_the_price_of_area_is_for_every_layer_as_far_as_it_is_opaque():
    loss, _ = judge([[0.0, 1.0]], [[0.0, 1.0]], [[0, 1, 2]], area_cost=0.5, alpha=0.25)

    assert loss.sprites.item() == pytest.approx(3 * 0.25 * 0.5)


def test_the_total_is_the_sum_of_both_terms():
    loss, _ = judge([[1.0]], [[0.0]], sprite=[[1, 1]], empty_cost=0.25)

    assert loss.total.item() == 1.5


def test_the_gradient_pulls_the_rendering_towards_the_image():
    loss, rendered = judge([[1.0, 0.0]], [[0.0, 0.5]], sprite=[[0]])

    loss.total.backward()

    assert rendered.grad.flatten().tolist() == pytest.approx([-1.0, 0.5])


def test_a_detached_loss_has_the_same_numbers_and_no_history():
    loss = Loss(torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True))

    detached = loss.detach()

    assert (detached.reconstruction.item(), detached.sprites.item()) == (1.0, 2.0)
    assert not detached.total.requires_grad

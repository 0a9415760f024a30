"""The fast training step has the loss and the gradients of the plainest one."""

import pytest
import torch

import naive
from celstack.model.decomposer import Decomposer
from celstack.model.objective import objective
from celstack_kit.compositors.occlusion import Occlusion
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.generated import Generated
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.exhaustive import Exhaustive
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.morphological import Morphological
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.projective import Projective
from celstack_kit.transforms.similarity import Similarity
from celstack_kit.transforms.tps import Tps

PRICE = 1e-3
CHAINS = {
    "smooth": {"sprite_transforms": [Projective, Tps], "layer_transforms": [Position]},
    "pixels": {"sprite_transforms": [Morphological], "layer_transforms": [Color, Position]},
    "layer": {"layer_transforms": [Color, Position]},
    "sprite": {"sprite_transforms": [Color, Affine]},
    "both": {"sprite_transforms": [Similarity], "layer_transforms": [Color, Position]},
}


def make(compositor, selector, chains, backgrounds, channels=3, sprites=None, canvas=(9, 11)):
    torch.manual_seed(0)
    made = {name: [kind() for kind in kinds] for name, kinds in CHAINS[chains].items()}
    model = Decomposer(
        sprites=sprites or Pixels(count=3, size=(5, 6), mask_sigma=2.0, jitter=0.2),
        backgrounds=Pixels(count=backgrounds, jitter=0.2) if backgrounds else None,
        background_transforms=[Color(), Affine()] if backgrounds else [],
        compositor=compositor(layers=2),
        selector=selector,
        predictor=Network(encoder=Strided(width=4, features=8), hidden=8),
        **made,
    ).double()
    images = torch.rand(4, channels, *canvas).double()
    model.prepare(images.float())
    model.double().train()
    with torch.no_grad():
        for parameter in model.predictor.parameters():
            parameter += 0.15 * torch.randn_like(parameter)
    return model, images


def naive_loss(model, images, noise, price):
    prediction = model.predict(images)
    occlusion = model.compositor.occlusion(prediction.occlusion_logits, training=True)
    total = 0.0
    for b, image in enumerate(images):
        candidates, backdrops = naive.everything(model, prediction, b, noise)
        if isinstance(model.selector, Greedy):
            sweeps = model.selector.sweeps
            choice = naive.algorithm_1(
                image, candidates, backdrops, occlusion[b], sweeps, price
            )
        else:
            choice = naive.minimum(image, candidates, backdrops, occlusion[b], price)
        total = total + naive.cost(image, candidates, backdrops, occlusion[b], *choice, price)
    return total / len(images)


def fast_loss(model, images, noise):
    scene = model.explain(images, noise)
    again, masks = model.reconstruct(scene, noise)
    return objective(images, scene, again, masks, model.selector.empty_cost or 0.0).total


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad.clone()
        for name, p in model.named_parameters()
    }


@pytest.mark.parametrize("chains", ["layer", "sprite", "both"])
@pytest.mark.parametrize("backgrounds", [0, 1, 2])
@pytest.mark.parametrize("price", [None, PRICE])
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("selector", [Greedy, Exhaustive])
@pytest.mark.parametrize("compositor", [Ordered, Occlusion])
def test_loss_and_gradients_equal_the_naive_ones(
    compositor, selector, noisy, price, backgrounds, chains
):
    options = {"sweeps": 2} if selector is Greedy else {}
    model, images = make(compositor, selector(empty_cost=price, **options), chains, backgrounds)
    noise = model.draw_noise(0.4 if noisy else 0.0)

    fast = fast_loss(model, images, noise)
    slow = naive_loss(model, images, noise, price)

    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-12)
    expected = gradients(model, slow)
    for name, gradient in gradients(model, fast).items():
        torch.testing.assert_close(gradient, expected[name], rtol=0, atol=1e-9, msg=name)


@pytest.mark.parametrize(
    ("channels", "sprites"),
    [(1, None), (3, Generated(count=3, size=(5, 6), latent=4, hidden=8))],
    ids=["greyscale", "generated"],
)
def test_the_same_holds_for_other_images_and_sprites(channels, sprites):
    model, images = make(Occlusion, Greedy(sweeps=2), "both", 1, channels, sprites)
    noise = model.draw_noise(0.4)

    fast, slow = fast_loss(model, images, noise), naive_loss(model, images, noise, None)

    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-12)
    expected = gradients(model, slow)
    for name, gradient in gradients(model, fast).items():
        torch.testing.assert_close(gradient, expected[name], rtol=0, atol=1e-9, msg=name)


@pytest.mark.parametrize("chains", ["smooth", "pixels"])
@pytest.mark.parametrize("canvas", [(9, 11), (64, 70)])
def test_the_same_holds_for_other_transforms_and_larger_canvases(chains, canvas):
    model, images = make(Occlusion, Greedy(sweeps=2), chains, 1, canvas=canvas)
    noise = model.draw_noise(0.4)

    fast, slow = fast_loss(model, images, noise), naive_loss(model, images, noise, None)

    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-12)
    expected = gradients(model, slow)
    for name, gradient in gradients(model, fast).items():
        torch.testing.assert_close(gradient, expected[name], rtol=0, atol=1e-9, msg=name)


@pytest.mark.parametrize("chains", ["smooth", "pixels", "both"])
def test_the_price_of_area_is_that_of_whole_canvases(chains):
    model, images = make(Occlusion, Greedy(sweeps=2, empty_cost=PRICE), chains, 0)
    noise = model.draw_noise(0.4)

    scene, naively = model.explain(images, noise), model.explain(images, noise)
    again, masks = model.reconstruct(scene, noise)
    fast = objective(images, scene, again, masks, 0.0, area_cost=0.3).sprites
    slow = 0.3 * model.render(naively, noise).layers[:, :, -1].mean((2, 3)).sum(1).mean()

    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-12)
    expected = gradients(model, slow)
    for name, gradient in gradients(model, fast).items():
        torch.testing.assert_close(gradient, expected[name], rtol=0, atol=1e-9, msg=name)


def test_frozen_sprites_get_no_gradient_and_the_rest_gets_the_same():
    model, images = make(Occlusion, Greedy(sweeps=2, empty_cost=PRICE), "both", 1)
    free = gradients(model, naive_loss(model, images, None, None))
    model.sprites_frozen = True

    frozen = gradients(model, fast_loss(model, images, None))

    assert not any(frozen[name].any() for name in frozen if name.startswith("sprites"))
    for name in (name for name in frozen if not name.startswith("sprites")):
        torch.testing.assert_close(frozen[name], free[name], rtol=0, atol=1e-9, msg=name)


def test_transforms_that_are_not_at_work_are_at_rest_and_get_no_gradient():
    model, images = make(Ordered, Greedy(), "both", 0)
    model.activate(["color", "position"])

    scene = model.explain(images)
    resting = scene.evolve(sprite_params=torch.zeros_like(scene.sprite_params))

    torch.testing.assert_close(model.render(scene).image, model.render(resting).image)
    got = gradients(model, fast_loss(model, images, None))
    assert not any(got[name].any() for name in got if "sprite_heads" in name)

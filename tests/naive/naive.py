"""The paper's equations, transcribed as plainly as possible: one image, one loop per index."""

from itertools import combinations, permutations, product

import torch
from torch.nn.functional import grid_sample

EMPTY = -1


def softclip(values):
    """Supplementary C.3: identity inside [0, 1], slope 0.01 outside."""
    below = 0.01 * values
    above = 1 + 0.01 * (values - 1)
    return torch.where(values < 0, below, torch.where(values > 1, above, values))


def recursive(layers, backdrop):
    """Eq. 1: each layer over the composite of those before it."""
    composite = backdrop
    for layer in layers:
        colour, alpha = layer[:-1], layer[-1]
        composite = alpha * colour + (1 - alpha) * composite
    return composite


def composite(layers, backdrop, occlusion):
    """Eq. 2, with the backdrop as a layer that is opaque and hidden by all."""
    image = torch.zeros_like(backdrop)
    for ell, layer in enumerate(layers):
        term = layer[-1] * layer[:-1]
        for j, other in enumerate(layers):
            term = (1 - occlusion[j, ell] * other[-1]) * term
        image = image + term
    term = backdrop
    for other in layers:
        term = (1 - other[-1]) * term
    return image + term


def error(image, layers, backdrop, occlusion):
    """The mean squared error of one image."""
    return (image - composite(layers, backdrop, occlusion)).square().mean()


def algorithm_1(image, candidates, backdrops, occlusion, sweeps, price):
    """Algorithm 1; with several backgrounds, each sweep begins with the best of them.

    ``candidates[ell][k]`` is sprite k on layer ell; ``price`` None: no layer may be empty.
    """
    nothing = torch.zeros_like(candidates[0][0])
    chosen = [EMPTY] * len(candidates)
    layers = [nothing for _ in candidates]
    which = 0
    for _ in range(sweeps):
        errors = [error(image, layers, backdrop, occlusion) for backdrop in backdrops]
        which = int(torch.stack(errors).argmin())
        for ell, sprites in enumerate(candidates):
            options = dict(enumerate(sprites))
            costs = {}
            for k, sprite in options.items():
                tried = [*layers[:ell], sprite, *layers[ell + 1 :]]
                costs[k] = error(image, tried, backdrops[which], occlusion) + (price or 0.0)
            if price is not None:
                tried = [*layers[:ell], nothing, *layers[ell + 1 :]]
                costs[EMPTY] = error(image, tried, backdrops[which], occlusion)
            chosen[ell] = min(costs, key=lambda k: costs[k].item())
            layers[ell] = options.get(chosen[ell], nothing)
    return chosen, which


def cost(image, candidates, backdrops, occlusion, chosen, which, price):
    """What Eq. 5 minimises, for one choice of sprites and background."""
    nothing = torch.zeros_like(candidates[0][0])
    layers = [
        nothing if k == EMPTY else sprites[k]
        for k, sprites in zip(chosen, candidates, strict=True)
    ]
    filled = sum(k != EMPTY for k in chosen)
    return error(image, layers, backdrops[which], occlusion) + (price or 0.0) * filled


def minimum(image, candidates, backdrops, occlusion, price):
    """The minimum of Eq. 5 over everything, by trying everything."""
    options = [range(0 if price is None else EMPTY, len(sprites)) for sprites in candidates]
    tries = {
        (chosen, which): cost(image, candidates, backdrops, occlusion, chosen, which, price)
        for chosen in product(*options)
        for which in range(len(backdrops))
    }
    chosen, which = min(tries, key=lambda key: tries[key].item())
    return list(chosen), which


def canvas_grid(height, width):
    """Pixel centres in units of half the longer side."""
    longer = max(height, width)
    rows = [[(2 * x + 1 - width) / longer for x in range(width)] for _ in range(height)]
    columns = [[(2 * y + 1 - height) / longer for _ in range(width)] for y in range(height)]
    axes = [torch.tensor(axis, dtype=torch.float64) for axis in (rows, columns)]
    return torch.stack(axes, dim=-1).view(1, -1, 2)


def warp(image, points, canvas, padding):
    """Sample one image at points of a canvas."""
    height, width = image.shape[-2:]
    reach = torch.tensor([width, height]).double() / max(height, width)
    grid = (points / reach).view(1, *canvas, 2)
    return grid_sample(image[None], grid, padding_mode=padding, align_corners=False)[0]


def through(chain, image, points, params):
    """Apply a chain to one image and to points, transform by transform."""
    at = 0
    pieces = []
    for transform in chain:
        pieces.append((transform, params[None, at : at + transform.num_params]))
        at += transform.num_params
    for transform, own in pieces:
        if not hasattr(transform, "pull"):
            image = transform(image[None], own)[0]
    for transform, own in reversed(pieces):
        if hasattr(transform, "pull"):
            points = transform.pull(points, own)
    return image, points


def show(model, k, sprite_params, layer_params, noise):
    """Eq. 3: sprite k on its own canvas, everywhere, with a channel of ones for the noise."""
    image = model.sprites.images()[k]
    image, _ = through(model.sprite_chain, image, canvas_grid(*model.canvas), sprite_params)
    image, points = through(model.layer_chain, image, canvas_grid(*model.canvas), layer_params)
    _, points = through(model.sprite_chain, image, points, sprite_params)
    image = torch.cat([image, torch.ones_like(image[:1])])
    warped = warp(image, points, model.canvas, "zeros")
    mask = warped[-2] if noise is None else warped[-2] + warped[-1] * noise[k]
    return torch.cat([warped[:-2], softclip(mask)[None]])


def show_backdrop(model, m, params):
    """A background on the canvas, its border continued."""
    points = canvas_grid(*model.canvas)
    image, points = through(
        model.background_chain, model.backgrounds.images()[m], points, params
    )
    return warp(image, points, model.canvas, "border")[:-1]


def everything(model, prediction, b, noise):
    """All candidates and backdrops of image b, with gradients."""
    layers, sprites = prediction.sprite_params.shape[1:3]
    candidates = [
        [
            show(
                model,
                k,
                prediction.sprite_params[b, ell, k],
                prediction.layer_params[b, ell],
                noise,
            )
            for k in range(sprites)
        ]
        for ell in range(layers)
    ]
    if model.backgrounds is None:
        return candidates, [torch.zeros_like(candidates[0][0][:-1])]
    count = prediction.background_params.shape[1]
    backdrops = [
        show_backdrop(model, m, prediction.background_params[b, m]) for m in range(count)
    ]
    return candidates, backdrops


def effect(model, k, sprite_params, layer_params):
    """What sprite k comes to look like, premultiplied, and where points of the canvas look."""
    image = model.sprites.images()[k].detach()
    image, _ = through(model.sprite_chain, image, canvas_grid(4, 4), sprite_params)
    image, points = through(model.layer_chain, image, canvas_grid(4, 4), layer_params)
    _, points = through(model.sprite_chain, image, points, sprite_params)
    return premultiplied(image), points[0]


def backdrop_effect(model, m, params):
    """The same for a background."""
    image = model.backgrounds.images()[m].detach()
    image, points = through(model.background_chain, image, canvas_grid(4, 4), params)
    return premultiplied(image), points[0]


def premultiplied(image):
    """Colours times alpha, then alpha."""
    alpha = softclip(image[-1:])
    return torch.cat([alpha * image[:-1], alpha])


def distance(predicted, found):
    """Squared distances of points, and of what is seen where it is opaque."""
    (looks, points), (wanted, places) = predicted, found
    away = sum(((p - q) ** 2).sum() for p, q in zip(points, places, strict=True)) / len(points)
    return away + ((looks - wanted) ** 2).sum() / wanted[-1].sum().clamp(min=1.0)


def teaching(model, prediction, scene, overlap, b):
    """How far the prediction for image b is from its scene: layers, order, background.

    Layers are paired at least cost by trying all permutations. The order is asked of models
    that predict it. Each term is a list, for a mean over all images.
    """
    filled = [m for m, k in enumerate(scene.sprite[b].tolist()) if k != EMPTY]
    costs = {}
    for m in filled:
        k = int(scene.sprite[b, m])
        found = effect(model, k, scene.sprite_params[b, m], scene.layer_params[b, m])
        for ell in range(model.compositor.layers):
            params = (prediction.sprite_params[b, ell, k], prediction.layer_params[b, ell])
            costs[m, ell] = distance(effect(model, k, *params), found)
    tries = permutations(range(model.compositor.layers), len(filled))
    best = min(
        tries,
        key=lambda some: sum(costs[m, ell].item() for m, ell in zip(filled, some, strict=True)),
    )
    layer = dict(zip(filled, best, strict=True))
    chance = model.compositor.occlusion(prediction.occlusion_logits, training=True)[b]
    order = []
    for i, j in combinations(filled, 2):
        if overlap[b, i, j] and model.compositor.num_logits:
            hides = chance[layer[j], layer[i]]
            order.append(-torch.log(hides if scene.occlusion[b, j, i] == 1 else 1 - hides))
    backdrop = []
    if model.backgrounds is not None:
        m = int(scene.background[b])
        predicted = backdrop_effect(model, m, prediction.background_params[b, m])
        backdrop.append(
            distance(predicted, backdrop_effect(model, m, scene.background_params[b]))
        )
    return [costs[pair] for pair in layer.items()], order, backdrop

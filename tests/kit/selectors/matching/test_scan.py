"""Matching at selected positions is matching, and finds what is there."""

import pytest
import torch

from celstack import CelstackError, Decomposer
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.matching import Matching
from celstack_kit.selectors.matching.placement import Placement, inverse_linear
from celstack_kit.selectors.matching.refinement import PoseObjective, refine_poses
from celstack_kit.selectors.matching.scan_cpu import scan
from celstack_kit.selectors.matching.scene_state import render_layers
from celstack_kit.selectors.matching.templates import LayerContext
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.light import Light
from celstack_kit.transforms.position import Position


def random_context(seed, batch=2, side=11):
    torch.manual_seed(seed)
    shape = (batch, 3, side, side)
    return LayerContext(torch.randn(shape), torch.rand(shape), torch.rand(batch, 1, side, side))


def naive_reduction(context, image, template, row, column, tints, offsets):
    """Put a template onto a canvas, solve for its colors, and compare squared errors."""
    channels, side, half = 3, context.residual.shape[2], template.shape[1] // 2
    canvas = torch.zeros(channels + 1, side + 2 * half, side + 2 * half)
    canvas[:, row : row + 2 * half, column : column + 2 * half] = template
    layer = canvas[:, half:-half, half:-half]
    color, mask = layer[:-1], layer[-1]
    total = 0.0
    for channel in range(channels):
        rest, hidden = context.residual[image, channel], context.hidden[image, channel]
        flat = mask * context.transmittance[image, 0]
        own = flat * color[channel]
        target = rest + mask * hidden
        gain, offset = 1.0, 0.0
        if tints:
            columns = torch.stack([own, flat] if offsets else [own]).flatten(1).T
            solved = torch.linalg.lstsq(columns, target.flatten()[:, None]).solution[:, 0]
            gain = float(solved[0].clamp(0, 1))
            if offsets:
                offset = float((flat * (target - gain * own)).sum() / flat.square().sum())
        change = gain * own + offset * flat - mask * hidden
        total += float((rest.square() - (rest - change).square()).sum())
    return total


@pytest.mark.parametrize(("tints", "offsets"), [(False, False), (True, False), (True, True)])
def test_scores_are_those_of_naive_matching(tints, offsets):
    context, templates = random_context(0), torch.rand(4, 4, 6, 6)
    where = torch.rand(2, 11, 11) < 0.2

    score, template, place = scan(context, where, templates, 2, tints, offsets)

    for image in range(2):
        for sprite in range(2):
            every = {
                (which, row, column): naive_reduction(
                    context, image, templates[which], row, column, tints, offsets
                )
                for which in (2 * sprite, 2 * sprite + 1)
                for row, column in where[image].nonzero().tolist()
            }
            best = max(every, key=every.get)
            found = (int(template[image, sprite]), *place[image, sprite].tolist())
            assert found == best
            assert score[image, sprite].item() == pytest.approx(every[best], rel=1e-3)


def test_nothing_is_found_where_nothing_is_searched():
    score, _, _ = scan(
        random_context(1),
        torch.zeros(2, 11, 11, dtype=bool),
        torch.rand(2, 4, 6, 6),
        2,
        True,
        True,
    )

    assert (score == -torch.inf).all()


def balls(count=2, side=24):
    """Sprites with shading: a ball that is lit from above, and a box that is lit evenly."""
    line = torch.linspace(-1, 1, side)
    ball = (line[:, None].square() + line.square() < 0.7).float()
    box = ((line.abs() < 0.7)[:, None] & (line.abs() < 0.5)).float()
    shade = (0.6 - 0.35 * line)[:, None].expand(side, side)
    color = torch.stack([shade, torch.full_like(shade, 0.9)])[:, None].expand(-1, 3, -1, -1)
    return torch.cat([color, torch.stack([ball, box])[:, None]], dim=1)[:count]


def model(layers=3, **options):
    made = Decomposer(
        sprites=Pixels(count=2, size=(24, 24)),
        sprite_transforms=[Affine()],
        layer_transforms=[Color(), Position()],
        backgrounds=Pixels(count=1),
        background_transforms=[Light(cells=4)],
        compositor=Ordered(layers=layers),
        selector=Matching(
            sweeps=3,
            search="residuals",
            offsets=True,
            sizes=[0.7, 1.0, 1.4],
            refine=8,
            empty_cost=2e-4,
            **options,
        ),
    )
    made.prepare(torch.full((2, 3, 64, 64), 0.5))
    with torch.no_grad():
        sprites = balls()
        made.sprites.colour.copy_(sprites[:, :-1])
        made.sprites.mask.copy_(sprites[:, -1:])
        made.backgrounds.colour.fill_(0.5)
    return made.eval()


POSES = torch.tensor([[18.0, 20.0, 0.1, 0.0, 0.1, 0.05], [44.0, 42.0, -0.2, 0.0, -0.05, 0.0]])
TINTS = torch.tensor([[[0.9, 0.4, 0.2], [0.05, 0.1, 0.0]], [[0.2, 0.3, 0.9], [0.0, 0.0, 0.05]]])


def painted(made, shadow=0.0):
    """An image of a ball and a box, and perhaps the shadow of the ball."""
    params = Placement(made, (24, 24), stretch=True).params(POSES, TINTS)
    image = torch.full((3, 64, 64), 0.5)
    down, across = torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="ij")
    distance = ((down - 30).square() + (across - 40).square()).sqrt()
    image = image * (1 - shadow * torch.exp(-0.5 * (distance / 9).square()))
    layers = render_layers(made, torch.tensor([0, 1]), *params)
    for layer in layers:
        image = torch.lerp(image, layer[:-1], layer[-1:])
    return image[None]


def test_stretched_and_shifted_colors_are_found():
    made = model()
    image = painted(made)

    scene = made.explain(image)

    assert sorted(scene.sprite[0].tolist()) == [-1, 0, 1]
    assert (made.render(scene).image - image).square().mean() < 1e-4


def test_a_shadow_is_light_and_not_a_layer():
    made = model()
    image = painted(made, shadow=0.25)

    scene = made.explain(image)

    assert sorted(scene.sprite[0].tolist()) == [-1, 0, 1]
    assert (made.render(scene).image - image).square().mean() < 4e-4


def test_the_refinement_recovers_stretch_and_offsets():
    made = model()
    image = painted(made)
    backdrop = torch.full_like(image, 0.5)
    context = LayerContext(image - backdrop, backdrop, torch.ones_like(image[:, :1]))
    start = POSES + torch.tensor([1.0, -1.0, 0.05, 0.0, -0.08, -0.05])
    objective = PoseObjective(
        context, torch.zeros(2, dtype=torch.long), balls(), start, tints=True, offsets=True
    )

    reduction, pose, tint = refine_poses(objective, start, 12)

    best, _, _ = refine_poses(objective, POSES, 0)
    assert (reduction > 0.99 * best).all()
    # The box, which is of one color, looks almost the same sheared and turned back.
    assert (pose - POSES)[0].abs().max() < 0.06
    assert (tint - TINTS)[0].abs().max() < 0.03


def test_an_angle_that_is_fixed_stays():
    made = model()
    image = painted(made)
    backdrop = torch.full_like(image, 0.5)
    context = LayerContext(image - backdrop, backdrop, torch.ones_like(image[:, :1]))
    start = POSES + torch.tensor([1.0, -1.0, 0.05, 0.1, 0.0, 0.0])
    objective = PoseObjective(
        context, torch.zeros(2, dtype=torch.long), balls(), start, tints=True, offsets=True
    )

    reduction, pose, _ = refine_poses(objective, start, 8, turns=False)

    assert torch.equal(pose[:, 3], start[:, 3])
    assert (reduction > refine_poses(objective, start, 0)[0]).all()


def test_a_pose_widens_shears_and_turns():
    pose = torch.tensor([[0.0, 0.0, 0.3, 0.4, 0.2, 0.1]])
    size, wide = torch.tensor(0.3).exp(), torch.tensor(0.2).exp()
    cos, sin = torch.tensor(0.4).cos(), torch.tensor(0.4).sin()
    point = torch.tensor([0.7, -0.5])
    widened = torch.stack([wide * point[0], point[1] / wide])
    sheared = torch.stack([widened[0] + 0.1 * widened[1], widened[1]])
    turned = torch.stack(
        [cos * sheared[0] - sin * sheared[1], sin * sheared[0] + cos * sheared[1]]
    )

    back = inverse_linear(pose, (-pose[:, 2]).exp())[0] @ (size * turned)

    assert back.tolist() == pytest.approx(point.tolist(), abs=1e-5)


def test_offsets_need_the_search_at_residuals():
    with pytest.raises(CelstackError, match='offsets: only with search = "residuals"'):
        Matching(offsets=True)


def test_offsets_need_a_transform_that_adds_them():
    with pytest.raises(CelstackError, match="offsets: no transform of the sprites can add"):
        Decomposer(
            sprites=Pixels(count=1, size=(8, 8)),
            layer_transforms=[Position()],
            compositor=Ordered(layers=1),
            selector=Matching(search="residuals", offsets=True),
        ).prepare(torch.rand(2, 3, 16, 16))

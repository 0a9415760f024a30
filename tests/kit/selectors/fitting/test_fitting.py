"""Fitting finds planted poses and colors, and says so in the transforms' own parameters."""

import pytest
import torch

from celstack import CelstackError, Decomposer
from celstack.geometry.sampling import pixel_centers
from celstack.model.objective import squared_error
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.fitting import Fitting
from celstack_kit.selectors.fitting.gauss_newton import MotionCosts, gauss_newton
from celstack_kit.selectors.fitting.pose_space import PoseSpace
from celstack_kit.selectors.fitting.residuals import (
    FIXED_COST,
    CompositeResiduals,
    WindowResiduals,
)
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.projective import Projective
from celstack_kit.transforms.tps import Tps

CANVAS = (22, 18)


def blobs(count, height, width, seed=0):
    """Draw smooth images that differ."""
    torch.manual_seed(seed)
    points = pixel_centers(height, width, torch.zeros(()))
    waves = torch.rand(count, 3, 4, 2) * 5
    phase = torch.rand(count, 3, 4, 1) * 6
    drawn = torch.sin(waves @ points.T + phase).mean(2)
    return (0.5 + 0.4 * drawn).view(count, 3, height, width)


def model(selector, sprite=(Color, Affine), layer=(), backgrounds=2, tinted=True, layers=1):
    """Make a model of three smooth sprites with soft masks on two smooth backgrounds."""
    made = Decomposer(
        sprites=Pixels(count=3, size=(20, 18), mask_sigma=4.0),
        compositor=Ordered(layers=layers),
        selector=selector,
        sprite_transforms=[make() for make in sprite],
        layer_transforms=[make() for make in layer],
        backgrounds=Pixels(count=backgrounds) if backgrounds else None,
        background_transforms=[Color()] if backgrounds and tinted else [],
    )
    made.prepare(torch.rand(2, 3, *CANVAS))
    with torch.no_grad():
        made.sprites.colour.copy_(blobs(3, 20, 18))
        if backgrounds:
            made.backgrounds.colour.copy_(blobs(backgrounds, *CANVAS, seed=1))
    return made.eval()


def planted(made, pose, sprite, background=None, gain=0.7, offset=0.1):
    """Make a scene of these poses, all in one color."""
    poses = PoseSpace(made)
    count = len(pose)
    of_sprite, of_layer = poses.to_params(pose)
    ones = torch.ones(count, 3)
    tint = made.sprite_chain.tint(gain * ones, offset * ones)
    scene = Fitting(steps=0).explain(torch.rand(count, 3, *CANVAS), made, None, False)
    changes = {}
    if background is not None:
        changes = {
            "background": torch.tensor(background),
            "background_params": made.background_chain.tint(0.8 * ones, 0.05 * ones),
        }
    return scene.evolve(
        sprite=torch.tensor(sprite)[:, None],
        sprite_params=(of_sprite if tint is None else of_sprite + tint)[:, None],
        layer_params=of_layer[:, None],
        **changes,
    )


POSES = torch.tensor(
    [
        [0.1, 0.05, 0.08, -0.04, 0.12, -0.06],
        [-0.12, 0.0, 0.0, 0.1, -0.05, 0.1],
        [0.0, -0.1, -0.1, 0.06, 0.1, 0.03],
    ]
)


@pytest.mark.parametrize("window", [None, 4.0])
def test_planted_sprites_are_found_where_they_are(window):
    selector = Fitting(steps=30, move_cost=0.0, tint_cost=0.0, window=window)
    made = model(selector)
    if window:  # through which masks are not seen
        made.sprites.mask.data.fill_(1.0)
    truth = planted(made, POSES, [2, 0, 1], [0, 1, 1])
    images = made.render(truth).image

    found = made.explain(images)

    assert found.sprite.flatten().tolist() == [2, 0, 1]
    assert window or found.background.tolist() == [0, 1, 1]
    torch.testing.assert_close(found.sprite_params, truth.sprite_params, atol=0.06, rtol=0.0)
    assert squared_error(images, made.render(found).image).max() < 2e-4


@pytest.mark.parametrize(
    ("sprite", "layer"),
    [((Color, Projective), ()), ((Color, Tps), ()), ((Color,), (Position,)), ((Affine,), ())],
)
def test_any_warps_are_followed_in_either_chain(sprite, layer):
    selector = Fitting(steps=30, move_cost=0.0, tint_cost=0.0)
    made = model(selector, sprite, layer, backgrounds=1)
    torch.manual_seed(3)
    pose = 0.06 * torch.randn(3, PoseSpace(made).count)
    images = made.render(planted(made, pose, [0, 1, 2], [0, 0, 0])).image

    found = made.explain(images)

    rest = Fitting(steps=0).explain(images, made, None, False)
    before = squared_error(images, made.render(rest).image)
    after = squared_error(images, made.render(found).image)
    assert found.sprite.flatten().tolist() == [0, 1, 2]
    assert (after < 0.1 * before).all()


def test_what_is_seen_in_its_best_colors_is_what_the_model_renders():
    made = model(Fitting(steps=3))
    images = blobs(4, *CANVAS, seed=5)

    scene = made.explain(images)

    sprites, poses = made.sprite_images().detach(), PoseSpace(made)
    backdrops = made.render_backgrounds(torch.zeros(1, 2, 6)).detach()[0].flatten(2)
    pose = scene.sprite_params[:, 0, 6:]
    given = torch.stack(
        [1 + scene.sprite_params[:, 0, :3], scene.sprite_params[:, 0, 3:6]], dim=2
    )
    chosen = sprites[scene.sprite[:, 0]]
    view = CompositeResiduals(
        chosen, images.flatten(2)[None], backdrops, False, (1e-4, 1e-4), given
    )
    look = view.residuals(poses.pull(pixel_centers(*CANVAS, like=images), pose)[None])
    seen = (look.tints[..., None, :] @ look.features)[0, :, :, 0] / view.weights
    rendered = made.render(scene).image.flatten(2)
    # Where colors are clipped, or a sprite's edge is in sight, a mixture is not the same.
    near = (seen - rendered).abs().flatten(1).quantile(0.9, dim=1)
    assert (near < 0.01).all()


@pytest.mark.parametrize("kind", ["window", "composite"])
def test_slopes_are_those_of_what_is_seen(kind):
    torch.set_default_dtype(torch.float64)
    try:
        made = model(Fitting()).double()
        images = blobs(2, *CANVAS, seed=5).double()
        sprites = made.sprite_images().detach()
        points = pixel_centers(*CANVAS, like=images)
        target = images.flatten(2)[:, None]
        if kind == "window":
            weights = torch.full((len(points),), len(points) ** -0.5)
            view = WindowResiduals(sprites, target, weights, True, FIXED_COST)
        else:
            backdrops = blobs(1, *CANVAS, seed=1).double().flatten(2)
            view = CompositeResiduals(
                sprites, target, backdrops, True, (FIXED_COST, FIXED_COST)
            )
        pulled = points.expand(2, 3, -1, -1) * 0.8
        look = view.residuals(pulled)
        for axis, slopes in ((0, look.across), (1, look.down)):
            step = torch.zeros(2)
            step[axis] = 1.0 / 20
            ahead, behind = view.residuals(pulled + step), view.residuals(pulled - step)
            # The pixel ahead less a pixel behind is what slopes are made of, too.
            measured = (behind.values - ahead.values) * 10
            strong = measured.abs() > measured.abs().median()
            assert (
                (slopes - measured)[strong].abs() < 0.35 * measured[strong].abs()
            ).float().mean() > 0.85
            assert (slopes * measured).sum() > 0.9 * measured.square().sum()
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("cost", [0.0, 0.3])
def test_colors_are_those_of_least_squares(cost):
    made = model(Fitting())
    images = blobs(2, *CANVAS, seed=5)
    sprites = made.sprite_images().detach()
    points = pixel_centers(*CANVAS, like=images)
    weights = torch.rand(len(points))
    weights = weights / weights.norm()
    view = WindowResiduals(sprites, images.flatten(2)[:, None], weights, True, cost)

    look = view.residuals(points.expand(2, 3, -1, -1))

    for image in range(2):
        for sprite in range(3):
            for channel in range(3):
                features = look.features[image, sprite, channel].double()
                # The price is one more row of the system for each unknown.
                rows = torch.cat([features.T, cost**0.5 * torch.eye(2).double()])
                wanted = torch.cat(
                    [
                        view.target[image, 0, channel].double(),
                        cost**0.5 * torch.tensor([1.0, 0.0]).double(),
                    ]
                )
                solution = torch.linalg.lstsq(rows, wanted[:, None]).solution[:, 0]
                found = look.tints[image, sprite, channel].double()
                torch.testing.assert_close(found, solution, atol=1e-3, rtol=1e-3)


def test_it_never_ends_worse_than_at_rest():
    made = model(Fitting())
    images = torch.rand(4, 3, *CANVAS)
    points = pixel_centers(*CANVAS, like=images)
    view = CompositeResiduals(
        made.sprite_images().detach(),
        images.flatten(2)[:, None],
        made.render_backgrounds(torch.zeros(1, 2, 6)).detach()[0].flatten(2),
        False,
        (1e-2, 1e-2),
    )

    fitted = [
        gauss_newton(view, PoseSpace(made), points, steps, MotionCosts(0.1, 0.2)).cost
        for steps in (0, 1, 4)
    ]

    assert (fitted[1] <= fitted[0]).all()
    assert (fitted[2] <= fitted[1]).all()
    assert (fitted[2] < fitted[0]).any()


def test_who_must_pay_to_move_stays():
    images = blobs(3, *CANVAS, seed=7)
    moves = [
        model(Fitting(move_cost=cost)).explain(images).sprite_params[:, 0, 6:].abs().max()
        for cost in (0.0, 1e6)
    ]

    assert moves[0] > 0.05
    assert moves[1] < 1e-3


def test_who_must_pay_to_bend_does_what_a_plain_map_can():
    images = blobs(3, *CANVAS, seed=7)
    points = pixel_centers(*CANVAS, like=images)
    plane = torch.cat([points, torch.ones(len(points), 1)], dim=1)
    bent, moved = [], []
    for cost in (0.0, 1e6):
        made = model(Fitting(move_cost=0.01, bend_cost=cost), (Color, Affine, Tps))
        pose = made.explain(images).sprite_params[:, 0, 6:]
        moves = PoseSpace(made).pull(points, pose) - points
        plain = plane @ torch.linalg.lstsq(plane.expand(3, -1, -1), moves).solution
        bent.append((moves - plain).abs().max())
        moved.append(moves.abs().max())

    assert bent[0] > 0.05
    assert bent[1] < 1e-3
    assert moved[1] > 0.02


def test_a_negative_is_found_only_by_who_inverts():
    negatives = 1 - blobs(3, 20, 18)
    images = torch.nn.functional.pad(negatives, (0, 0, 1, 1), mode="replicate")

    found = {
        inverts: model(Fitting(window=4.0, inverts=inverts, move_cost=10.0)).explain(images)
        for inverts in (True, False)
    }

    assert found[True].sprite.flatten().tolist() == [0, 1, 2]
    assert (found[True].sprite_params[:, 0, :3] < -1.5).all()
    assert (found[False].sprite_params[:, 0, :3] >= -1.0 - 1e-3).all()


def test_through_a_window_only_the_middle_is_compared():
    made = model(Fitting(window=2.0, move_cost=10.0))
    images = torch.nn.functional.pad(blobs(3, 20, 18), (0, 0, 1, 1), mode="replicate")
    spoiled = images.clone()
    spoiled[:, :, :, :3] = torch.rand(3, 3, 22, 3)
    spoiled[:, :, :, -3:] = torch.rand(3, 3, 22, 3)

    assert made.explain(images).sprite.flatten().tolist() == [0, 1, 2]
    assert made.explain(spoiled).sprite.flatten().tolist() == [0, 1, 2]


@pytest.mark.parametrize(("backgrounds", "tinted"), [(0, True), (1, False), (2, True)])
def test_images_are_explained_with_any_background_or_none(backgrounds, tinted):
    made = model(Fitting(), backgrounds=backgrounds, tinted=tinted)

    scene = made.explain(torch.rand(2, 3, *CANVAS))

    assert (scene.background is None) == (backgrounds == 0)
    assert torch.isfinite(made.render(scene).image).all()


def test_many_images_are_explained_as_one_by_one(monkeypatch):
    made = model(Fitting(steps=2))
    images = blobs(5, *CANVAS, seed=9)
    together = made.explain(images)

    monkeypatch.setattr("celstack_kit.selectors.fitting.MAX_CHUNK_VALUES", 1)
    apart = made.explain(images)

    assert together.sprite.tolist() == apart.sprite.tolist()
    torch.testing.assert_close(
        together.sprite_params, apart.sprite_params, atol=1e-3, rtol=1e-3
    )


def test_sprites_that_hide_everything_or_nothing_are_no_error():
    for level in (0.0, 1.0):
        made = model(Fitting(tint_cost=0.0))
        made.sprites.mask.data.fill_(level)
        made.sprites.colour.data.fill_(0.5)

        scene = made.explain(torch.rand(2, 3, *CANVAS))

        assert torch.isfinite(made.render(scene).image).all()


def test_no_images_are_no_error():
    assert len(model(Fitting(window=2.0)).explain(torch.rand(0, 3, *CANVAS))) == 0


def test_smaller_sprites_do_not_let_more_images_in_at_a_time(monkeypatch):
    sizes, fit = [], Fitting._fit
    for side in (4, 20):
        made = model(Fitting(steps=0))
        made.sprites = Pixels(count=3, size=(side, side))
        made.sprites.prepare(torch.rand(2, 3, *CANVAS), with_alpha=True)
        seen = []
        monkeypatch.setattr(Fitting, "_fit", lambda *a, seen=seen: (
            seen.append(len(a[1])), fit(*a))[1])  # fmt: skip
        monkeypatch.setattr("celstack_kit.selectors.fitting.MAX_CHUNK_VALUES", 200_000)
        made.explain(torch.rand(12, 3, *CANVAS))
        sizes.append(seen)

    assert sizes[0] == sizes[1]
    assert len(sizes[0]) > 1


def test_two_layers_are_refused():
    with pytest.raises(CelstackError, match="there are 2 layers; use layers = 1"):
        model(Fitting(), layers=2)

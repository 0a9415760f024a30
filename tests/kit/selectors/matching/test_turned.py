"""Turned and resized sprites are found, too."""

import math

import pytest
import torch

from celstack import EMPTY, CelstackError, Decomposer, Scene
from celstack.model.objective import squared_error
from celstack_kit.compositors.occlusion import Occlusion
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.matching import Matching
from celstack_kit.selectors.matching.placement import Placement
from celstack_kit.selectors.matching.pose_bank import DOWNSAMPLING, SIMILAR_ANGLE, PoseBank
from celstack_kit.selectors.matching.refinement import PoseObjective, refine_poses
from celstack_kit.selectors.matching.scene_state import render_layers
from celstack_kit.selectors.matching.templates import LayerContext
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.similarity import Similarity

CANVAS = (48, 48)
SIZE = (20, 20)


def arrow():
    """Draw a shape that looks the same in no two directions."""
    mask = torch.zeros(SIZE)
    mask[3:17, 8:12] = 1.0
    mask[3:8, 4:12] = 1.0
    return mask


def model(transforms=((Similarity,), (Color, Position)), layers=1, **options):
    of_sprite, of_layer = transforms
    made = Decomposer(
        sprites=Pixels(count=2, size=SIZE),
        sprite_transforms=[make() for make in of_sprite],
        layer_transforms=[make() for make in of_layer],
        compositor=Occlusion(layers=layers),
        selector=Matching(turns=12, sizes=[0.6, 0.8, 1.0], refine=8, **options),
    )
    made.prepare(torch.rand(1, 3, *CANVAS))
    with torch.no_grad():
        made.sprites.colour.fill_(1.0)
        made.sprites.mask[0, 0] = arrow()
        made.sprites.mask[1, 0] = 0.0
        made.sprites.mask[1, 0, 5:15, 5:15] = 1.0
    return made.eval()


def tint(gains):
    """Color gains without offsets."""
    return torch.stack([gains, torch.zeros_like(gains)], dim=1)


def planted(made, poses, gains, sprite=0):
    """Put one layer to an image at these poses."""
    params = Placement(made, SIZE).params(torch.tensor(poses), tint(torch.tensor(gains)))
    scene = Scene(
        sprite=torch.full((len(poses), 1), sprite),
        sprite_params=params[0][:, None],
        layer_params=params[1][:, None],
        occlusion=torch.zeros(len(poses), 1, 1),
    )
    return made.render(scene).image


POSES = [
    [24.0, 24.0, 0.0, 0.0],
    [20.3, 27.8, -0.3, 1.0],
    [30.0, 14.5, -0.45, math.pi],
    [14.2, 33.1, -0.1, -2.2],
]
GAINS = [[1.0, 0.2, 0.5], [0.4, 0.8, 0.1], [0.9, 0.9, 0.3], [0.5, 0.5, 0.5]]


@pytest.mark.parametrize(
    "transforms",
    [((Similarity,), (Color, Position)), ((), (Color, Similarity)), ((Affine, Color), ())],
)
def test_a_planted_pose_is_found(transforms):
    made = model(transforms)
    images = planted(made, POSES, GAINS)

    found = made.explain(images)

    assert found.sprite[:, 0].tolist() == [0, 0, 0, 0]
    error = squared_error(images, made.render(found).image)
    assert (error < 0.02 * squared_error(images, torch.zeros_like(images))).all()


def test_a_pose_says_where_how_large_and_how_far_turned_a_sprite_is():
    made = model()

    image = planted(made, [[30.0, 16.0, math.log(0.5), math.pi / 2]], [[1.0, 1.0, 1.0]], 0)[0]

    # The arrow points up and its flag is on the left: turned clockwise, it points right.
    seen = image[0].detach() > 0.5
    rows, columns = seen.nonzero().unbind(1)
    assert int(columns.max() - columns.min()) + 1 == pytest.approx(7, abs=1)
    assert int(rows.max() - rows.min()) + 1 == pytest.approx(4, abs=1)
    assert float(columns.float().mean()) > 29.5
    assert float(rows.float().mean()) < 16.0


def test_two_turned_sprites_that_overlap_are_both_found_in_their_order():
    made = model(layers=2, sweeps=4)
    back, front = (
        planted(made, [pose], [[1.0, 1.0, 1.0]], kind)
        for pose, kind in zip(
            ([20.0, 22.0, 0.0, 0.4], [22.0, 25.0, -0.1, 1.1]), (0, 1), strict=True
        )
    )
    red, blue = (
        torch.tensor(color)[:, None, None] for color in ([0.9, 0.1, 0.1], [0.1, 0.2, 0.9])
    )
    images = torch.where(front > 0.5, blue, torch.where(back > 0.5, red, 0.0))

    found = made.explain(images)

    error = squared_error(images, made.render(found).image)
    assert (error < 0.1 * squared_error(images, torch.zeros_like(images))).all()
    assert found.sprite.tolist() == [[0, 1]]


def test_a_small_sprite_inside_a_large_one_is_found_in_front_of_it():
    made = model(layers=2, sweeps=3, empty_cost=1e-5)
    with torch.no_grad():
        made.sprites.mask[1] = 1.0
    large = planted(made, [[24.0, 24.0, 0.0, 0.3]], [[1.0, 1.0, 1.0]], 1)
    small = planted(made, [[23.0, 25.0, math.log(0.65), 2.0]], [[1.0, 1.0, 1.0]], 0)
    red, blue = (
        torch.tensor(color)[:, None, None] for color in ([0.9, 0.1, 0.1], [0.1, 0.2, 0.9])
    )
    images = torch.where(small > 0.5, blue, torch.where(large > 0.5, red, 0.0))

    found = made.explain(images)

    assert found.sprite.tolist() == [[1, 0]]
    error = squared_error(images, made.render(found).image)
    assert (error < 0.1 * squared_error(images, torch.zeros_like(images))).all()


def test_a_bank_looks_in_all_directions():
    made = model()
    sprites = made.sprites.images().detach()
    bank = PoseBank(sprites, CANVAS, turns=12, sizes=[0.7, 1.0])
    angle, size = 5 * 2 * math.pi / 12, 0.7
    images = planted(made, [[26.0, 22.0, math.log(size), angle]], [[1.0, 1.0, 1.0]])
    around = LayerContext(images, torch.zeros_like(images), torch.ones_like(images[:, :1]))

    saved, poses = bank.search(around)

    assert saved[0, :, 0].argmax() == 0
    x, y, log_size, turn = poses[0, 0, 0].tolist()
    assert (x, y) == pytest.approx((26.0, 22.0), abs=DOWNSAMPLING)
    assert (math.exp(log_size), turn) == pytest.approx((size, angle))


def test_a_bank_also_tells_the_best_pose_at_quite_another_angle():
    made = model()
    bank = PoseBank(made.sprites.images().detach(), CANVAS, turns=12, sizes=[0.7, 1.0])
    images = planted(made, [[26.0, 22.0, 0.0, 1.0]], [[1.0, 1.0, 1.0]])
    around = LayerContext(images, torch.zeros_like(images), torch.ones_like(images[:, :1]))

    saved, poses = bank.search(around)

    assert saved.shape == (1, 2, 2)
    assert (saved[..., 0] >= saved[..., 1]).all()
    turned = poses[0, :, 0, 3] - poses[0, :, 1, 3]
    assert (turned.cos() <= math.cos(SIMILAR_ANGLE)).all()


def test_a_bank_without_other_angles_tells_one_pose():
    made = model()
    bank = PoseBank(made.sprites.images().detach(), CANVAS, turns=1, sizes=[0.7, 1.0])
    around = LayerContext(*(torch.rand(1, n, *CANVAS) for n in (3, 3, 1)))

    saved, poses = bank.search(around)

    assert saved.shape == (1, 2, 1)
    assert poses.shape == (1, 2, 1, 4)


def test_refining_saves_as_much_as_it_says_and_never_less_than_before():
    made = model()
    sprites = made.sprites.images().detach()
    images = planted(made, POSES, GAINS).detach()
    around = LayerContext(images, 0.1 * torch.rand_like(images), torch.rand_like(images[:, :1]))
    pose = torch.tensor(POSES) + torch.tensor([1.0, -1.0, 0.1, 0.2])
    everyone, first = torch.arange(4), torch.zeros(4, dtype=torch.int64)
    closeup = PoseObjective(around, everyone, sprites[first], pose, tints=True)

    before, after = (refine_poses(closeup, pose, steps) for steps in (0, 6))

    for saved, where, gains in (before, after):
        shown = render_layers(made, first, *Placement(made, SIZE).params(where, gains))
        torch.testing.assert_close(
            around.error_reduction(shown).detach(), saved, atol=1e-2, rtol=1e-3
        )
    assert (after[0] > before[0]).all()


def test_refining_finds_places_between_pixels():
    torch.manual_seed(0)
    made = Decomposer(
        sprites=Pixels(count=1, size=SIZE),
        layer_transforms=[Similarity()],
        compositor=Occlusion(layers=1),
        selector=Matching(refine=6),
    )
    made.prepare(torch.rand(1, 3, *CANVAS))
    images = planted(made, [[20.4, 21.7, 0.03, 0.05]], [[1.0, 1.0, 1.0]])

    found = made.explain(images)

    assert (squared_error(images, made.render(found).image) < 1e-6).all()


def test_nothing_is_found_where_there_is_nothing():
    made = model(empty_cost=1e-4)

    assert (made.explain(torch.zeros(2, 3, *CANVAS)).sprite == EMPTY).all()


def test_later_sweeps_go_on_from_where_sprites_are():
    # Two steps leave much to do, and the bank does not know more the next time.
    errors = []
    for sweeps in (1, 2, 6):
        made = model(sweeps=sweeps)
        made.selector.refine = 2
        images = planted(made, POSES, GAINS)
        errors.append(squared_error(images, made.render(made.explain(images)).image))

    once, twice, often = errors
    assert (twice <= once + 1e-6).all()
    assert often.mean() < 0.5 * once.mean()


def test_sizes_stay_between_the_least_and_the_largest():
    made = model()
    sprites = made.sprites.images().detach()[:1]
    images = planted(made, [[24.0, 24.0, 0.3, 0.0]], [[1.0, 1.0, 1.0]]).detach()
    around = LayerContext(images, torch.zeros_like(images), torch.ones_like(images[:, :1]))
    pose = torch.tensor([[24.0, 24.0, 0.0, 0.0]])
    closeup = PoseObjective(around, torch.arange(1), sprites, pose, tints=True)

    _, free, _ = refine_poses(closeup, pose, 8)
    _, bound, _ = refine_poses(closeup, pose, 8, log_sizes=(-0.5, 0.1))

    assert float(free[0, 2]) == pytest.approx(0.3, abs=0.03)
    assert float(bound[0, 2]) == pytest.approx(0.1)


def test_a_closeup_of_every_second_pixel_promises_about_the_same():
    made = model()
    sprites = made.sprites.images().detach()[:1]
    images = planted(made, POSES[:1], GAINS[:1]).detach()
    around = LayerContext(images, torch.zeros_like(images), torch.ones_like(images[:, :1]))
    pose = torch.tensor(POSES[:1])

    whole, half = (
        refine_poses(
            PoseObjective(around, torch.arange(1), sprites, pose, True, stride), pose, 0
        )[0]
        for stride in (1, 2)
    )

    assert float(half) == pytest.approx(float(whole), rel=0.1)


@pytest.mark.parametrize(("size", "length"), [(1e38, "2e+39"), (10.0, "200"), (1e-3, "0.02")])
def test_sizes_that_no_canvas_shows_are_refused_before_there_is_a_run(size, length):
    made = model()
    made.use_selector(Matching(sizes=[1.0, size]))

    with pytest.raises(CelstackError) as refused:
        made.set_image_shape((3, *CANVAS))

    assert str(refused.value) == (
        f"sizes: {size:g} makes sprites of 20 pixels {length} pixels long; take sizes from "
        "0.05 to 9.6, for a canvas of 48 pixels"
    )


def test_the_largest_and_the_smallest_size_are_accepted():
    made = model()
    made.use_selector(Matching(sizes=[1 / 20, 4 * 48 / 20]))

    made.set_image_shape((3, *CANVAS))


def test_more_turns_than_anybody_needs_are_refused():
    with pytest.raises(CelstackError, match=r"turns=.* at most 720"):
        Matching(turns=2**63 - 1)

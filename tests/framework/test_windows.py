"""A window holds every pixel from which a sprite is seen."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from celstack.sampling import canvas_points, coverage, look_up, sees
from celstack.windows import find_windows, points_at, repeat
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.projective import Projective
from celstack_kit.transforms.similarity import Similarity
from celstack_kit.transforms.tps import Tps

WARPS = {"affine": Affine, "position": Position, "projective": Projective,
         "similarity": Similarity, "tps": Tps}  # fmt: skip


def window_of(warp, params, size, canvas, groups=None):
    like = torch.zeros(0)

    def pull(points):
        return warp.pull(repeat(points, len(params) // len(points)), params)

    return find_windows(pull, groups or len(params), canvas, size, like=like)


@pytest.mark.parametrize("name", WARPS)
@given(
    seed=st.integers(0, 10_000),
    spread=st.sampled_from([0.01, 0.2, 0.6]),
    canvas=st.tuples(st.integers(1, 100), st.integers(1, 100)),
    size=st.tuples(st.integers(1, 30), st.integers(1, 30)),
)
@settings(max_examples=40, deadline=None)
def test_nothing_is_seen_from_outside(name, seed, spread, canvas, size):
    torch.manual_seed(seed)
    warp = WARPS[name]()
    params = spread * torch.randn(3, warp.num_params)

    pixels = window_of(warp, params, size, canvas)

    everywhere = canvas_points(*canvas, like=params).expand(3, -1, -1)
    ones = torch.ones(3, 1, *size)
    shown = look_up(ones, warp.pull(everywhere, params), "zeros")[:, 0]
    inside = torch.zeros_like(shown).scatter(1, pixels, 1.0)
    assert not shown[inside == 0].any()


def test_a_small_sprite_has_a_small_window():
    pixels = window_of(Position(), torch.zeros(1, 3), size=(8, 8), canvas=(32, 32))

    # Half the canvas, and half a pixel of the sprite (one of the canvas) on each side.
    assert pixels.shape[1] == 18 * 18


def test_windows_of_a_group_hold_all_its_sprites():
    params = torch.tensor([[0.0, 0.5, 0.0], [0.0, -0.5, 0.0]])

    alone = window_of(Position(), params, (8, 8), (32, 32))
    together = window_of(Position(), params, (8, 8), (32, 32), groups=1)

    assert alone.shape[1] < together.shape[1]
    assert set(alone.flatten().tolist()) <= set(together.flatten().tolist())


def test_a_sprite_that_is_nowhere_still_has_a_window():
    far = torch.tensor([[0.0, 100.0, 100.0]])

    assert window_of(Position(), far, (8, 8), (32, 32)).shape == (1, 1)


def test_whole_canvases_share_one_copy_of_their_points():
    everywhere = canvas_points(2, 3, like=torch.zeros(0))

    shared = points_at(everywhere, torch.arange(6).expand(4, -1))

    assert shared.shape == (4, 6, 2)
    assert shared.stride(0) == 0
    assert repeat(shared, 3).shape == (12, 6, 2)
    assert repeat(shared, 3).stride(0) == 0


def test_repeated_points_stay_with_their_canvas():
    points = torch.arange(8.0).view(2, 2, 2)

    torch.testing.assert_close(repeat(points, 2), points[[0, 0, 1, 1]])


@given(seed=st.integers(0, 10_000), size=st.tuples(st.integers(1, 9), st.integers(1, 9)))
@settings(max_examples=100, deadline=None)
def test_coverage_is_what_an_image_of_ones_would_show(seed, size):
    torch.manual_seed(seed)
    points = 1.5 * torch.randn(2, 30, 2).double()

    covered = coverage(points, size)

    ones = torch.ones(2, 1, *size).double()
    torch.testing.assert_close(covered, look_up(ones, points, "zeros")[:, 0])
    assert not covered[~sees(points, size)].any()

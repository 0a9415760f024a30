"""A window holds every pixel from which a sprite is seen."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from celstack.geometry.sampling import pixel_centers, sample_points
from celstack.geometry.windows import Windows, enclosing_windows
from celstack.model.sprite_warp import SpriteWarp, find_windows, repeat, warp_sprites
from celstack.model.transform_chain import TransformChain
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.projective import Projective
from celstack_kit.transforms.similarity import Similarity
from celstack_kit.transforms.tps import Tps

WARPS = {"affine": Affine, "position": Position, "projective": Projective,
         "similarity": Similarity, "tps": Tps}  # fmt: skip


def sight_of(warp, params, groups=None, by_matrix=True):
    def pull(points):
        return warp.pull(repeat(points, len(params) // len(points)), params)

    return SpriteWarp(groups or len(params), pull, warp.matrix(params) if by_matrix else None)


def windows_of(warp, params, size, canvas, groups=None, by_matrix=True):
    sight = sight_of(warp, params, groups, by_matrix)
    return find_windows(sight, canvas, size, like=torch.zeros(0))


def pixels_in(windows):
    marked = torch.zeros(len(windows), *windows.canvas)
    windows.add(marked, torch.ones(len(windows), windows.height, windows.width))
    return marked


@pytest.mark.parametrize("by_matrix", [True, False])
@pytest.mark.parametrize("name", WARPS)
@given(
    seed=st.integers(0, 10_000),
    spread=st.sampled_from([0.01, 0.2, 0.6, 2.0]),
    canvas=st.tuples(st.integers(1, 100), st.integers(1, 100)),
    size=st.tuples(st.integers(1, 30), st.integers(1, 30)),
)
@settings(max_examples=40, deadline=None)
def test_nothing_is_seen_from_outside(name, by_matrix, seed, spread, canvas, size):
    torch.manual_seed(seed)
    warp = WARPS[name]()
    # Searching a lattice relies on warps being smooth: wild ones only by their matrices.
    spread = spread if by_matrix and name != "tps" else min(spread, 0.6)
    params = spread * torch.randn(3, warp.num_params)

    inside = pixels_in(windows_of(warp, params, size, canvas, by_matrix=by_matrix))

    everywhere = pixel_centers(*canvas, like=params).expand(3, -1, -1)
    shown = sample_points(torch.ones(3, 1, *size), warp.pull(everywhere, params), "zeros")[:, 0]
    assert not shown[inside.flatten(1) == 0].any()


@pytest.mark.parametrize("name", WARPS)
@given(
    seed=st.integers(0, 10_000),
    canvas=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    groups=st.sampled_from([2, 6]),
)
@settings(max_examples=40, deadline=None)
def test_what_is_found_by_a_matrix_is_what_its_pull_finds(name, seed, canvas, size, groups):
    torch.manual_seed(seed)
    warp = WARPS[name]().double()
    params = 0.4 * torch.randn(6, warp.num_params).double()
    images = torch.rand(6, 2, *size).double()

    windows, found = warp_sprites(images, sight_of(warp, params, groups), canvas)

    everywhere = pixel_centers(*canvas, like=params).expand(6, -1, -1)
    expected = sample_points(images, warp.pull(everywhere, params), "zeros").unflatten(
        2, canvas
    )
    spread = windows.of([n * groups // 6 for n in range(6)]).spread(found)
    torch.testing.assert_close(spread, expected)


def test_a_small_sprite_has_a_small_window():
    for by_matrix in (True, False):
        rest = torch.zeros(1, 3)
        windows = windows_of(Position(), rest, (8, 8), (32, 32), by_matrix=by_matrix)

        # Half the canvas, and half a pixel of the sprite (one of the canvas) on each side.
        assert (windows.height, windows.width) == (18, 18)


def test_windows_of_a_group_hold_all_its_sprites():
    params = torch.tensor([[0.0, 0.5, 0.0], [0.0, -0.5, 0.0]])

    alone = pixels_in(windows_of(Position(), params, (8, 8), (32, 32)))
    together = pixels_in(windows_of(Position(), params, (8, 8), (32, 32), groups=1))

    assert together.sum() > alone[0].sum()
    assert (together[0] >= alone.amax(0)).all()


def test_a_sprite_that_is_nowhere_still_has_a_window():
    far = torch.tensor([[0.0, 100.0, 100.0]])

    windows = windows_of(Position(), far, (8, 8), (32, 32))

    assert (windows.height, windows.width) == (1, 1)


@pytest.mark.parametrize("third_row", [[0.0, 0.0, -1.0], [1.5, 0.0, 0.0]])
def test_a_map_that_knows_no_bounds_is_seen_from_everywhere(third_row):
    params = torch.tensor([[0.0] * 6 + third_row])

    windows = windows_of(Projective(), params, (8, 8), (20, 30))

    assert windows.are_whole


def test_a_box_is_cut_off_where_the_canvas_ends():
    low, high = torch.tensor([[-3.0, 1.2]]), torch.tensor([[2.9, 90.0]])

    windows = enclosing_windows(low, high, (5, 7))

    assert (windows.tops, windows.lefts) == ([2], [0])
    assert (windows.height, windows.width) == (3, 3)


def test_cutting_takes_what_was_pasted_and_leaves_the_rest():
    windows = Windows((3, 4), 2, 3, tops=[0, 1], lefts=[1, 0])
    inside = torch.rand(2, 5, 2, 3)
    maps = torch.zeros(2, 5, 3, 4)

    windows.paste(maps, inside)

    assert torch.equal(windows.cut(maps), inside)
    assert torch.equal(maps, windows.spread(inside))
    assert maps[0, :, :, 0].any() == False  # noqa: E712
    assert maps[1, :, 0].any() == False  # noqa: E712


def test_windows_of_views_into_larger_maps_are_found_as_well():
    windows = Windows((3, 4), 2, 2, tops=[0, 1], lefts=[2, 1])
    maps = torch.arange(2.0 * 5 * 3 * 4).view(2, 5, 3, 4)

    part = windows.cut(maps[:, 2])

    assert torch.equal(part[0], maps[0, 2, 0:2, 2:4])
    assert torch.equal(part[1], maps[1, 2, 1:3, 1:3])


def test_repeated_points_stay_with_their_canvas():
    points = torch.arange(8.0).view(2, 2, 2)

    torch.testing.assert_close(repeat(points, 2), points[[0, 0, 1, 1]])


def test_whole_canvases_go_on_sharing_one_copy_of_their_points():
    shared = torch.zeros(1, 6, 2).expand(4, -1, -1)

    assert repeat(shared, 3).shape == (12, 6, 2)
    assert repeat(shared, 3).stride(0) == 0


@pytest.mark.parametrize(("layer_transforms", "pulls"), [([], 1), ([Position()], 2)])
def test_windows_are_searched_only_where_layers_place_their_sprites(layer_transforms, pulls):
    class CountingTps(Tps):
        pulls = 0

        def pull(self, points, params):
            self.pulls += 1
            return super().pull(points, params)

    layer_chain, sprite_chain = (
        TransformChain(layer_transforms),
        TransformChain([tps := CountingTps()]),
    )
    layer_chain.prepare(3)
    sprite_chain.prepare(3)
    layer_params, sprite_params = torch.zeros(2, layer_chain.num_params), torch.zeros(4, 32)
    warp = SpriteWarp.from_chains(layer_chain, layer_params, sprite_chain, sprite_params)

    windows, _ = warp_sprites(torch.rand(4, 4, 9, 9), warp, (20, 20))

    assert tps.pulls == pulls
    assert windows.are_whole == (not layer_transforms)

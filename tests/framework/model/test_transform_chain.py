import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.nn.functional import pad

from celstack import Transform, Warp
from celstack.geometry.homography import to_3x3
from celstack.geometry.sampling import pixel_centers, sample_canvas
from celstack.model.transform_chain import TransformChain
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.projective import Projective
from celstack_kit.transforms.similarity import Similarity
from celstack_kit.transforms.tps import Tps


class Add(Transform):
    num_params = 1

    def forward(self, images, params):
        return images + params[:, :, None, None]


class Times(Transform):
    num_params = 1

    def forward(self, images, params):
        return images * (1 + params[:, :, None, None])


class Shift(Warp):
    """Move right and down."""

    num_params = 2

    def pull(self, points, params):
        return points - params[:, None]


class Grow(Warp):
    """Make bigger."""

    num_params = 1

    def pull(self, points, params):
        return points / (1 + params[:, None])


def prepared(*transforms: Transform, channels: int = 3) -> TransformChain:
    """Make a chain that is ready."""
    chain = TransformChain(transforms)
    chain.prepare(channels)
    return chain


def test_pixels_change_from_first_to_last():
    images, params = torch.ones(1, 1, 1, 1), torch.tensor([[1.0, 2.0]])

    assert prepared(Add(), Times()).change_pixels(images, params).item() == (1 + 1) * 3
    assert prepared(Times(), Add()).change_pixels(images, params).item() == 1 * 2 + 2


def test_the_last_warp_is_undone_first():
    right_edge = torch.tensor([[[1.0, 0.0]]])

    # Doubled and then moved by a half, what is now at 1 was at 0.5 and came from 0.25.
    moved_last = prepared(Grow(), Shift()).pull(right_edge, torch.tensor([[1.0, 0.5, 0.0]]))
    # Moved and then doubled, what is now at 1 was at 0.5 and came from 0.
    moved_first = prepared(Shift(), Grow()).pull(right_edge, torch.tensor([[0.5, 0.0, 1.0]]))

    assert moved_last.flatten().tolist() == [0.25, 0.0]
    assert moved_first.flatten().tolist() == [0.0, 0.0]


def test_pixels_and_points_take_their_own_parameters_from_one_row():
    chain = prepared(Add(), Shift(), Times(), Grow())
    params = torch.tensor([[0.5, 0.25, -0.25, 1.0, 3.0]])

    pixel = chain.change_pixels(torch.ones(1, 1, 1, 1), params)
    point = chain.pull(torch.tensor([[[1.0, 1.0]]]), params)

    assert chain.num_params == 5
    assert pixel.item() == 3.0
    assert point.flatten().tolist() == [0.0, 0.5]


def test_a_chain_is_sampled_once_so_there_and_back_is_without_blur():
    images = torch.rand(1, 4, 5, 8)
    points = pixel_centers(5, 8, like=images)[None]
    half_a_pixel = 1 / 8
    params = torch.tensor([[half_a_pixel, half_a_pixel, -half_a_pixel, -half_a_pixel]])
    chain = prepared(Shift(), Shift())

    shown = sample_canvas(images, chain.pull(points, params), (5, 8), outside="zeros")

    torch.testing.assert_close(shown, images, atol=1e-6, rtol=0.0)
    # One transform after the other would have sampled twice, and blurred.
    twice = chain.transforms[1](chain.transforms[0](images, params[:, :2]), params[:, 2:])
    assert (twice - images).abs().max() > 0.1


@given(st.lists(st.sampled_from([Shift, Grow]), max_size=4), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=50)
def test_a_chain_is_its_pulls_one_after_the_other(kinds, seed):
    generator = torch.Generator().manual_seed(seed)
    chain = prepared(*(kind() for kind in kinds))
    params = [torch.rand(2, kind.num_params, generator=generator) for kind in kinds]
    points = torch.rand(2, 5, 2, generator=generator)

    pulled = chain.pull(points, torch.cat([torch.zeros(2, 0), *params], dim=1))

    for transform, own in reversed(list(zip(chain, params, strict=True))):
        points = transform.pull(points, own)
    assert torch.equal(pulled, points)


@given(st.lists(st.sampled_from([Add, Times]), max_size=4), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=50)
def test_a_chain_changes_pixels_as_its_transforms_would(kinds, seed):
    generator = torch.Generator().manual_seed(seed)
    chain = prepared(*(kind() for kind in kinds))
    params = torch.rand(2, len(kinds), generator=generator)
    images = torch.rand(2, 2, 3, 3, generator=generator)

    changed = chain.change_pixels(images, params)

    for number, transform in enumerate(chain):
        images = transform(images, params[:, number : number + 1])
    assert torch.equal(changed, images)


def test_an_empty_chain_changes_nothing():
    chain = prepared()
    images, points = torch.rand(2, 4, 3, 3), torch.rand(2, 9, 2)

    assert chain.num_params == 0
    assert torch.equal(chain.change_pixels(images, torch.zeros(2, 0)), images)
    assert torch.equal(chain.pull(points, torch.zeros(2, 0)), points)


def test_what_is_not_active_stays_in_its_rest_pose_and_learns_nothing():
    chain = prepared(Shift(), Grow())
    params = torch.tensor([[0.5, 0.0, 1.0]], requires_grad=True)
    point = torch.tensor([[[1.0, 0.0]]])

    chain.activate(["grow"])
    seen = chain.pull(point, params)
    seen.sum().backward()

    assert seen.flatten().tolist() == [0.5, 0.0]
    assert params.grad[0, :2].tolist() == [0.0, 0.0]
    assert params.grad[0, 2] != 0


class Half(Warp):
    """Show the sprite at half its size, and shifted; half its size is its rest pose."""

    num_params = 2
    rest_is_identity = False

    def pull(self, points, params):
        return 2 * (points - params[:, None])


def test_what_rests_is_not_called():
    class Once(Shift):
        def pull(self, points, params):
            raise AssertionError("called")

    class Tint(Add):
        def forward(self, images, params):
            raise AssertionError("called")

    chain = prepared(Once(), Tint(), Grow())
    chain.activate(["grow"])
    points, params = torch.rand(2, 3, 2), torch.rand(2, 4)

    assert torch.equal(chain.pull(points, params), points / (1 + params[:, None, 3:]))
    assert torch.equal(
        chain.change_pixels(torch.ones(2, 4, 1, 1), params), torch.ones(2, 4, 1, 1)
    )


def test_a_rest_pose_that_changes_something_is_kept():
    chain = prepared(Half())
    chain.activate([])
    params = torch.ones(1, 2, requires_grad=True)

    seen = chain.pull(torch.tensor([[[0.5, 0.0]]]), params)

    assert seen.flatten().tolist() == [1.0, 0.0]
    assert not seen.requires_grad
    assert chain.has_warp()


def test_a_chain_whose_warps_all_rest_moves_nothing():
    chain = prepared(Shift(), Add())

    chain.activate(["add"])

    assert not chain.has_warp()


def test_loaded_weights_say_which_transforms_work():
    chain, other = prepared(Shift(), Grow()), prepared(Shift(), Grow())
    chain.activate(["grow"])

    other.load_state_dict(chain.state_dict())

    assert other.active == [False, True]


def test_none_makes_all_of_them_active_again():
    chain = prepared(Shift(), Grow())
    chain.activate([])
    assert chain.activity.tolist() == [0.0, 0.0, 0.0]

    chain.activate(None)

    assert chain.activity.tolist() == [1.0, 1.0, 1.0]


def test_channels_reach_every_transform_before_parameters_are_counted():
    class PerChannel(Add):
        def prepare(self, channels):
            self.num_params = channels

    assert prepared(PerChannel(), Shift(), channels=5).num_params == 7


def test_gradients_are_true_through_a_chain():
    chain = prepared(Grow(), Shift(), Grow())
    points = torch.rand(2, 3, 2, dtype=torch.float64, requires_grad=True)
    params = torch.rand(2, 4, dtype=torch.float64, requires_grad=True)

    assert gradcheck(chain.pull, (points, params))


class Tint(Times):
    def tint(self, gains, offsets=None):
        return gains - 1


class Turn(Warp):
    """Turn by an angle, clockwise on screen."""

    num_params = 1

    def pull(self, points, params):
        cos, sin = params.cos()[:, 0], params.sin()[:, 0]
        return points @ torch.stack([cos, -sin, sin, cos], dim=-1).view(-1, 2, 2)

    def matrix(self, params):
        cos, sin = params.cos()[:, 0], params.sin()[:, 0]
        return pad(torch.stack([cos, sin, -sin, cos], dim=-1).view(-1, 2, 2), (0, 1))

    def params_from_matrix(self, matrix):
        return torch.atan2(matrix[:, 0, 1], matrix[:, 0, 0])[:, None]


class Put(Shift):
    """Move, when told where to."""

    def matrix(self, params):
        return torch.cat([torch.eye(2).expand(len(params), -1, -1), -params[..., None]], dim=2)

    def params_from_matrix(self, matrix):
        return -torch.linalg.solve(matrix[:, :, :2], matrix[:, :, 2:])[:, :, 0]


def test_a_map_is_shared_out_from_the_last_warp_to_the_first():
    chain = prepared(Turn(), Put())
    wanted = torch.tensor([[0.5, 0.25, -0.75]])

    params, rest = chain.params_from_matrix(chain.matrix(wanted))

    torch.testing.assert_close(params, wanted)
    torch.testing.assert_close(rest, torch.eye(2, 3)[None], atol=1e-6, rtol=0.0)


def test_what_no_warp_can_follow_is_left():
    chain = prepared(Put())
    matrix = torch.tensor([[[2.0, 0.0, 1.0], [0.0, 2.0, 0.0]]])

    params, rest = chain.params_from_matrix(matrix)

    assert params.tolist() == [[-0.5, 0.0]]
    # First the shift, then the rest: together they are the matrix.
    torch.testing.assert_close(rest, torch.tensor([[[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]]))


def test_a_warp_that_is_not_at_work_or_cannot_be_told_stays_at_rest():
    chain = prepared(Grow(), Put())
    chain.activate([])

    params, rest = chain.params_from_matrix(torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]]))

    assert params.tolist() == [[0.0, 0.0, 0.0]]
    assert rest.tolist() == [[[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]]


def test_the_first_transform_that_can_tint_does():
    gains = torch.tensor([[0.25]])

    assert prepared(Add(), Tint(), Tint()).tint(gains).tolist() == [[0.0, -0.75, 0.0]]
    assert prepared(Add()).tint(gains) is None


def test_a_tint_that_is_not_at_work_is_none():
    chain = prepared(Tint())
    chain.activate([])

    assert chain.tint(torch.tensor([[0.25]])) is None


@pytest.mark.parametrize("kinds", [[], [Position], [Projective, Similarity, Color, Affine],
                                   [Affine, Projective]])  # fmt: skip
def test_a_chain_of_matrices_is_one_matrix(kinds):
    torch.manual_seed(0)
    chain = prepared(*(kind() for kind in kinds))
    params = 0.2 * torch.randn(3, chain.num_params)
    points = torch.rand(3, 5, 2)

    matrix = chain.matrix(params)

    assert matrix.shape[1] == (3 if Projective in kinds else 2)
    u, v, z = (to_3x3(matrix) @ torch.cat([points, torch.ones(3, 5, 1)], 2).mT).unbind(1)
    found = torch.stack([u / z, v / z], dim=2)
    torch.testing.assert_close(found, chain.pull(points, params))


def test_a_chain_with_a_bend_is_no_matrix():
    chain = prepared(Affine(), Tps())

    assert chain.matrix(torch.zeros(1, chain.num_params)) is None

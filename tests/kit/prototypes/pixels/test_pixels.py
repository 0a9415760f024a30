import math

import pytest
import torch

from celstack.errors import CelstackError
from celstack.testing import check_prototype
from celstack_kit.prototypes.pixels import Pixels

SAMPLE = torch.zeros(2, 3, 5, 7)


def prepared(with_alpha=True, sample=SAMPLE, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        pixels = Pixels(**{"count": 2, **options})
        pixels.prepare(sample, with_alpha)
        return pixels


def test_it_keeps_the_promises_of_a_prototype():
    check_prototype(Pixels(count=3, size=(4, 5), jitter=0.1))


def test_without_a_size_sprites_are_as_large_as_the_canvas():
    assert prepared().images().shape == (2, 4, 5, 7)


def test_a_size_is_height_then_width():
    assert prepared(size=(2, 3)).images().shape == (2, 4, 2, 3)


def test_gray_images_have_one_color_and_alpha():
    assert prepared(sample=torch.zeros(1, 1, 4, 4)).images().shape == (2, 2, 4, 4)


def test_appearance_starts_as_a_constant():
    colors = prepared(appearance=0.3).images()[:, :3]

    torch.testing.assert_close(colors, torch.full((2, 3, 5, 7), 0.3))


def test_a_mask_starts_as_a_bell_around_the_middle():
    mask = prepared(size=(3, 4), mask_sigma=2.0).images()[1, 3]

    def bell(down, right):
        return math.exp(-(down**2 + right**2) / (2 * 2.0**2))

    near, far = bell(0, 0.5), bell(0, 1.5)
    assert mask[1].tolist() == pytest.approx([far, near, near, far])
    near, far = bell(1, 0.5), bell(1, 1.5)
    assert mask[0].tolist() == mask[2].tolist() == pytest.approx([far, near, near, far])


def test_the_alpha_of_backgrounds_is_one_and_is_not_learned():
    backgrounds = prepared(with_alpha=False)

    assert (backgrounds.images()[:, 3] == 1).all()
    assert [name for name, _ in backgrounds.named_parameters()] == ["colour"]


def test_without_jitter_sprites_start_alike():
    first, second = prepared().images()

    assert torch.equal(first, second)


def test_with_jitter_no_two_sprites_start_alike():
    first, second = prepared(jitter=0.01).images()

    assert (first != second).any(2).any(1).all()  # in every color and in alpha
    assert (first - second).abs().max() < 0.1


def test_colors_are_clipped_softly_and_alpha_is_not():
    pixels = prepared(size=(1, 1))
    with torch.no_grad():
        pixels.colour[:] = torch.tensor([-1.0, 0.5, 2.0])[:, None, None]
        pixels.mask[:] = 2.0

    assert pixels.images()[0].flatten().tolist() == pytest.approx([-0.01, 0.5, 1.01, 2.0])


def test_colors_beyond_white_still_learn():
    pixels = prepared(appearance=3.0)

    pixels.images().sum().backward()

    assert pixels.colour.grad.flatten()[0].item() == pytest.approx(0.01)


@pytest.mark.parametrize(
    "options", [{"count": 0}, {"size": (0, 4)}, {"mask_sigma": 0.0}, {"jitter": -0.1}]
)
def test_what_makes_no_sense_is_refused(options):
    with pytest.raises(CelstackError, match=next(iter(options))):
        Pixels(**{"count": 1, **options})


def test_silhouettes_keep_the_promises_of_a_prototype():
    check_prototype(Pixels(count=3, size=(4, 5), jitter=0.1, learn_colors=False))


def test_only_the_masks_of_silhouettes_learn():
    sprites = prepared(learn_colors=False, appearance=0.3, jitter=0.1)
    optimizer = torch.optim.Adam(sprites.parameters(), lr=0.1)
    before = sprites.images().detach()

    (sprites.images() - 0.7).square().sum().backward()
    optimizer.step()

    after = sprites.images().detach()
    # No noise either: it would stay there for ever.
    torch.testing.assert_close(after[:, :3], torch.full((2, 3, 5, 7), 0.3))
    assert (after[:, 3] != before[:, 3]).all()


@pytest.mark.parametrize("learn_colors", [True, False])
def test_allocated_colors_learn_if_prepared_ones_do(learn_colors):
    prepared, allocated = (Pixels(count=2, learn_colors=learn_colors) for _ in range(2))

    prepared.prepare(torch.rand(4, 3, 8, 10), with_alpha=True)
    allocated.allocate((3, 8, 10), with_alpha=True)

    learns = {name: p.requires_grad for name, p in allocated.named_parameters()}
    assert learns == {name: p.requires_grad for name, p in prepared.named_parameters()}

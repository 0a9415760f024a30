"""How pixels and generated images begin."""

import pytest
import torch

from celstack_kit.prototypes.generated import Generated
from celstack_kit.prototypes.pixels import Pixels


@pytest.fixture
def sample():
    """Six images of two kinds: dark and bright, with a little noise."""
    torch.manual_seed(0)
    levels = torch.tensor([0.2, 0.2, 0.2, 0.8, 0.8, 0.8]).view(6, 1, 1, 1)
    return levels + 0.01 * torch.randn(6, 3, 8, 8)


def started(sample, with_alpha=True, **options):
    pixels = Pixels(**options)
    pixels.prepare(sample, with_alpha)
    return pixels.images().detach()


def test_a_constant_start_is_constant(sample):
    images = started(sample, count=2, appearance=0.3)

    assert images[:, :3].unique().tolist() == pytest.approx([0.3])


def test_a_mean_start_is_the_mean_of_the_images(sample):
    images = started(sample, count=2, start="mean", with_alpha=False)

    torch.testing.assert_close(images[0, :3], sample.mean(0))
    torch.testing.assert_close(images[1, :3], sample.mean(0))


def test_a_sample_start_shows_different_images(sample):
    images = started(sample, count=6, start="sample")[:, :3]

    found = {int((image - sample).square().flatten(1).sum(1).argmin()) for image in images}
    assert found == set(range(6))


def test_a_sample_start_may_ask_for_more_images_than_there_are(sample):
    assert started(sample, count=9, start="sample").shape[0] == 9


def test_a_kmeans_start_finds_the_two_kinds(sample):
    images = started(sample, count=2, start="kmeans")[:, :3]

    levels = sorted(image.mean().item() for image in images)
    assert levels == pytest.approx([0.2, 0.8], abs=0.02)


def test_images_are_resized_to_sprites_of_another_size(sample):
    images = started(sample, count=2, start="mean", size=(4, 5))

    assert images.shape == (2, 4, 4, 5)
    assert images[:, :3].mean().item() == pytest.approx(0.5, abs=0.02)


def test_masks_start_as_a_bell_or_opaque(sample):
    bell = started(sample, count=1, size=(9, 9), mask_sigma=2.0)[0, -1]
    opaque = started(sample, count=1, mask="opaque")[0, -1]

    assert bell[4, 4] == 1.0
    # exp(-((4 - 2) / 2)^2 / 2) along one axis.
    assert bell[4, 2].item() == pytest.approx(0.6065, abs=1e-4)
    assert bell[2, 2].item() == pytest.approx(0.6065**2, abs=1e-4)
    assert opaque.unique().tolist() == [1.0]


def test_grayscale_sprites_have_one_color_and_alpha(sample):
    assert started(sample[:, :1], count=2).shape == (2, 2, 8, 8)


def test_generated_images_differ_by_their_latents_alone(sample):
    torch.manual_seed(0)
    sprites = Generated(count=2, size=(4, 4), latent=3, hidden=8)
    sprites.prepare(sample, with_alpha=True)
    with torch.no_grad():
        sprites.latents[1] = sprites.latents[0]

    images = sprites.images()

    assert images.shape == (2, 4, 4, 4)
    torch.testing.assert_close(images[0], images[1])


@pytest.mark.parametrize(
    ("old", "new"), [("lookalikes", "invariant_kmeans"), ("neighbours", "spectral")]
)
def test_names_of_starts_in_recipes_of_0_1_0_mean_the_same(old, new):
    torch.manual_seed(1)
    sample = torch.rand(12, 3, 8, 8)
    images = []
    for start in (old, new):
        torch.manual_seed(2)
        pixels = Pixels(count=2, start=start)
        pixels.prepare(sample, with_alpha=True)
        images.append((pixels.sample_size, pixels.images().detach()))

    assert images[0][0] == images[1][0]
    assert torch.equal(images[0][1], images[1][1])

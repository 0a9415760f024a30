"""Plain parts of every kind but selectors: minimal implementations, to test others with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from celstack.hookspecs import hookimpl
from celstack.interfaces.compositor import Compositor
from celstack.interfaces.dataset import Batch, Dataset
from celstack.interfaces.encoder import Encoder
from celstack.interfaces.metric import Metric
from celstack.interfaces.observer import Observer
from celstack.interfaces.predictor import (
    ActiveTransforms,
    Outline,
    Prediction,
    Predictor,
)
from celstack.interfaces.prototype import Prototype
from celstack.interfaces.transform import Transform, Warp
from celstack.scene import Rendering, Scene


class PlainDataset(Dataset):
    """Images of one bright square on noise."""

    image_shape = (3, 8, 10)
    max_objects = 1

    def count(self, split: str) -> int:
        """Return more for training than for testing."""
        return 16 if split == "train" else 8

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Generate each image from a seed that depends on its index alone."""
        images, instances = [], []
        for index in indices:
            own = torch.Generator().manual_seed(1000 * self.splits.index(split) + index)
            image = 0.2 * torch.rand(self.image_shape, generator=own)
            truth = torch.zeros(self.image_shape[1:], dtype=torch.int64)
            top, left = torch.randint(5, (2,), generator=own).tolist()
            image[:, top : top + 3, left : left + 3] = 0.9
            truth[top : top + 3, left : left + 3] = 1
            images.append(image)
            instances.append(truth)
        return Batch(torch.stack(images), torch.stack(instances))


class PlainPrototype(Prototype):
    """Pixels that start at random, as large as the canvas."""

    def __init__(self, count: int = 3) -> None:
        super().__init__()
        self.count = count

    def prepare(self, sample: Float[Tensor, "N C H W"], with_alpha: bool) -> None:
        """Make the pixels."""
        channels = sample.shape[1] + int(with_alpha)
        self.pixels = nn.Parameter(torch.rand(self.count, channels, *sample.shape[2:]))
        self.with_alpha = with_alpha

    def images(self) -> Float[Tensor, "K D h w"]:
        """Return the pixels, with an alpha of 1 where they have none of their own."""
        if self.with_alpha:
            return self.pixels
        return torch.cat([self.pixels, torch.ones_like(self.pixels[:, :1])], dim=1)

    def per_image(self) -> list[nn.Parameter]:
        """List the pixels."""
        return [self.pixels]


class PlainTransform(Transform):
    """Brighten all colors."""

    num_params = 1

    def forward(
        self, images: Float[Tensor, "n D h w"], params: Float[Tensor, "n 1"]
    ) -> Float[Tensor, "n D h w"]:
        """Add the parameter to colors, not to alpha."""
        brighter = images[:, :-1] + params[:, :, None, None]
        return torch.cat([brighter, images[:, -1:]], dim=1)


class PlainWarp(Warp):
    """Shift right and down."""

    num_params = 2

    def pull(
        self, points: Float[Tensor, "n m 2"], params: Float[Tensor, "n 2"]
    ) -> Float[Tensor, "n m 2"]:
        """Subtract the shift: the inverse of the motion."""
        return points - params[:, None]

    def matrix(self, params: Float[Tensor, "n 2"]) -> Float[Tensor, "n 2 3"]:
        """Return the same map as a matrix."""
        return torch.cat(
            [torch.eye(2).to(params).expand(len(params), 2, 2), -params[..., None]], 2
        )

    def params_from_matrix(self, matrix: Float[Tensor, "n 2 3"]) -> Float[Tensor, "n 2"]:
        """Keep the point that is mapped to the center."""
        return -torch.linalg.solve(matrix[:, :, :2], matrix[:, :, 2:])[:, :, 0]


class PlainCompositor(Compositor):
    """Lay each layer over those before it."""

    def __init__(self, layers: int = 2) -> None:
        self.layers = layers

    def occlusion(
        self,
        logits: Float[Tensor, "B N"],
        training: bool,  # noqa: ARG002
    ) -> Float[Tensor, "B L L"]:
        """Let later layers hide earlier ones."""
        return logits.new_ones(len(logits), self.layers, self.layers).tril(-1)

    def compose(
        self,
        layers: Float[Tensor, "B L D H W"],
        backdrop: Float[Tensor, "B C H W"],
        occlusion: Float[Tensor, "B L L"],
    ) -> tuple[Float[Tensor, "B C H W"], Float[Tensor, "B L H W"]]:
        """Transcribe Eq. 2."""
        alpha = layers[:, :, -1]
        through = 1 - occlusion[:, :, :, None, None] * alpha[:, :, None]
        visible = alpha * through.prod(1)
        image = (visible[:, :, None] * layers[:, :, :-1]).sum(1)
        return image + (1 - alpha).prod(1)[:, None] * backdrop, visible


class PlainEncoder(Encoder):
    """One linear layer."""

    num_features = 5

    def prepare(self, image_shape: tuple[int, int, int]) -> None:
        """Make the layer."""
        channels, height, width = image_shape
        self.linear = nn.Linear(channels * height * width, self.num_features)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B F"]:
        """Encode."""
        features: Tensor = self.linear(images.flatten(1))
        return features


class PlainPredictor(Predictor):
    """Predict weights times the mean of the image; the weights start at zero."""

    def prepare(self, outline: Outline) -> None:
        """Create the weights."""
        layers = outline.layers
        self.sprite = nn.Parameter(torch.zeros(layers, outline.sprites, outline.sprite_params))
        self.layer = nn.Parameter(torch.zeros(layers, outline.layer_params))
        self.background = nn.Parameter(
            torch.zeros(outline.backgrounds, outline.background_params)
        )
        self.order = nn.Parameter(torch.zeros(outline.occlusion_logits))
        self.at_work = (True, True, True)

    def activate(self, active: ActiveTransforms) -> None:
        """Store which chains have an active transform."""
        self.at_work = (any(active.sprite), any(active.layer), any(active.background))

    def forward(self, images: Float[Tensor, "B C H W"]) -> Prediction:
        """Multiply; the weights of an inactive chain are not used."""
        mean = images.flatten(1).mean(1)
        numbers = (self.sprite, self.layer, self.background)
        sprite, layer, background = (
            own if active else torch.zeros_like(own)
            for own, active in zip(numbers, self.at_work, strict=True)
        )
        return Prediction(
            mean[:, None, None, None] * sprite,
            mean[:, None, None] * layer,
            mean[:, None, None] * background,
            mean[:, None] * self.order,
        )

    def per_sprite(self) -> list[tuple[nn.Parameter, int]]:
        """List the weights of sprites, whose second axis runs over sprites."""
        return [(self.sprite, 1)]


class PlainMetric(Metric):
    """The share of pixels whose instance is right."""

    needs = ("instances",)

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Discard all pixels."""
        self.right, self.seen = 0, 0

    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:  # noqa: ARG002
        """Count the pixels of a batch."""
        assert batch.instances is not None
        self.right += int((rendering.instances() == batch.instances).sum())
        self.seen += batch.instances.numel()

    def compute(self) -> float:
        """Return the share."""
        return self.right / self.seen


class PlainObserver(Observer):
    """Count steps."""

    def __init__(self) -> None:
        self.steps = 0

    @hookimpl
    def celstack_step_finished(self) -> None:
        """Count one more."""
        self.steps += 1

"""Strided: a small convolutional encoder for images up to about 64 pixels."""

from typing import Annotated

from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor, nn

from celstack import Encoder, hookimpl


class Strided(Encoder):
    """Four convolutions of stride 2, then a linear layer, all with batch normalization.

    Unlike global pooling, the linear layer keeps the positions of objects.
    """

    def __init__(
        self, width: Annotated[int, Ge(1)] = 32, features: Annotated[int, Ge(1)] = 128
    ) -> None:
        super().__init__()
        self.width = width
        self.num_features = features

    def prepare(self, image_shape: tuple[int, int, int]) -> None:
        """Build the network."""
        channels, height, width = image_shape
        layers: list[nn.Module] = []
        for _ in range(4):
            convolution = nn.Conv2d(channels, self.width, 3, stride=2, padding=1, bias=False)
            # Without normalization, mostly black images have nearly equal features at first,
            # and the loss falls fastest by making every sprite vanish.
            layers += [convolution, nn.BatchNorm2d(self.width), nn.ReLU()]
            channels, height, width = self.width, (height + 1) // 2, (width + 1) // 2
        linear = nn.Linear(channels * height * width, self.num_features, bias=False)
        layers += [nn.Flatten(), linear, nn.BatchNorm1d(self.num_features), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B F"]:
        """Encode."""
        features: Tensor = self.layers(images)
        return features


@hookimpl
def celstack_encoders() -> dict[str, type[Strided]]:
    """Let recipes say ``use = "strided"``."""
    return {"strided": Strided}

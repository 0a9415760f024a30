"""Strided: a small convolutional encoder for images up to about 64 pixels."""

from typing import Annotated

from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor, nn

from celstack import Encoder, hookimpl


class Strided(Encoder):
    """Four convolutions, each halving the image, then a linear layer, all normalized.

    It keeps where things are, which pooling over the whole image would forget.
    """

    def __init__(
        self, width: Annotated[int, Ge(1)] = 32, features: Annotated[int, Ge(1)] = 128
    ) -> None:
        super().__init__()
        self.width = width
        self.num_features = features

    def prepare(self, image_shape: tuple[int, int, int]) -> None:
        """Make the convolutions."""
        channels, height, width = image_shape
        layers: list[nn.Module] = []
        for _ in range(4):
            convolution = nn.Conv2d(channels, self.width, 3, stride=2, padding=1, bias=False)
            # Without normalization, images that are mostly black look all the same at first,
            # and the quickest way to a lower loss is to make every sprite vanish.
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

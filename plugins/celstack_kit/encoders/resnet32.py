"""ResNet-32: the small residual network for images up to 64 pixels."""

from collections import OrderedDict
from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad, relu

from celstack import Encoder, hookimpl

WIDTHS = (16, 32, 64)
BLOCKS = 5


class Resnet32(Encoder):
    """Three stages of five basic blocks, 16, 32 and 64 channels, without parameters in the
    shortcuts, as for CIFAR (paper, supplementary C.1).

    Features are averaged over ``pool`` x ``pool`` cells: 1 gives 64 features, 4 gives 1024.
    """  # noqa: D205

    def __init__(self, pool: Annotated[int, Ge(1)] = 1) -> None:
        super().__init__()
        self.pool = pool

    def prepare(self, image_shape: tuple[int, int, int]) -> None:
        """Build the network, with Kaiming normal initialization."""
        self.num_features = WIDTHS[-1] * self.pool**2
        first = _convolution(image_shape[0], WIDTHS[0], stride=1)
        blocks: list[nn.Module] = []
        inputs = WIDTHS[0]
        for stage, width in enumerate(WIDTHS):
            for block in range(BLOCKS):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(_Block(inputs, width, stride))
                inputs = width
        self.layers = nn.Sequential(
            OrderedDict(
                first=first,
                norm=nn.BatchNorm2d(WIDTHS[0]),
                relu=nn.ReLU(inplace=True),
                blocks=nn.Sequential(*blocks),
                pool=nn.AdaptiveAvgPool2d(self.pool),
                flatten=nn.Flatten(),
            )
        )

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B F"]:
        """Return the features of a batch."""
        features: Tensor = self.layers(images)
        return features


class _Block(nn.Module):
    """The basic block whose shortcut subsamples pixels and pads channels with zeros."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = _convolution(inputs, width, stride)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = _convolution(width, width, stride=1)
        self.second_norm = nn.BatchNorm2d(width)
        self.stride = stride
        self.extra = (width - inputs) // 2

    def forward(self, images: Float[Tensor, "B I H W"]) -> Float[Tensor, "B O h w"]:
        changed = relu(self.first_norm(self.first(images)), inplace=True)
        changed = self.second_norm(self.second(changed))
        if self.extra:
            images = images[:, :, :: self.stride, :: self.stride]
            images = pad(images, (0, 0, 0, 0, self.extra, self.extra))
        return torch.relu_(changed + images)


def _convolution(inputs: int, outputs: int, stride: int) -> nn.Conv2d:
    layer = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
    nn.init.kaiming_normal_(layer.weight)
    return layer


@hookimpl
def celstack_encoders() -> dict[str, type[Resnet32]]:
    """Let recipes say ``use = "resnet32"``."""
    return {"resnet32": Resnet32}

"""ResNet-18: torchvision's, for images larger than 64 pixels."""

from typing import Annotated

from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor, nn

from celstack import Encoder, hookimpl


class Resnet18(Encoder):
    """ResNet-18 without its classifier, randomly initialized (supplementary C.1).

    Features are averaged over ``pool`` x ``pool`` cells: 1 gives 512 features, 2 gives 2048.
    """

    def __init__(self, pool: Annotated[int, Ge(1)] = 1) -> None:
        super().__init__()
        self.pool = pool

    def prepare(self, image_shape: tuple[int, int, int]) -> None:
        """Build the network, with another first layer for images without three channels."""
        from torchvision.models import resnet18

        self.num_features = 512 * self.pool**2
        network = resnet18(weights=None)
        if image_shape[0] != 3:
            network.conv1 = nn.Conv2d(image_shape[0], 64, 7, stride=2, padding=3, bias=False)
        network.avgpool = nn.AdaptiveAvgPool2d(self.pool)
        network.fc = nn.Identity()
        self.network = network

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B F"]:
        """Return the features of a batch."""
        features: Tensor = self.network(images)
        return features


@hookimpl
def celstack_encoders() -> dict[str, type[Resnet18]]:
    """Let recipes say ``use = "resnet18"``."""
    return {"resnet18": Resnet18}

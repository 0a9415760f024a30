"""Network: a shared encoder, and heads that predict all parameters."""

from typing import Annotated

from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor, nn

from celstack import Encoder, Outline, Prediction, Predictor, hookimpl


class Network(Predictor):
    """One encoder for everything, and a head each for sprites, layers, backgrounds and order.

    A head has two hidden layers of ``hidden`` units (paper, supplementary C.1); its last
    layer starts at zero, so that all transforms start in their rest pose.
    """

    def __init__(self, encoder: Encoder, hidden: Annotated[int, Ge(1)] = 128) -> None:
        super().__init__()
        self.encoder = encoder
        self.hidden = hidden

    def prepare(self, outline: Outline) -> None:
        """Make encoder and heads."""
        self.outline = outline
        self.encoder.prepare(outline.image_shape)
        self.sprite_head = self._head(outline.layers * outline.sprites * outline.sprite_params)
        self.layer_head = self._head(outline.layers * outline.layer_params)
        self.background_head = self._head(outline.backgrounds * outline.background_params)
        self.occlusion_head = self._head(outline.occlusion_logits)

    def _head(self, outputs: int) -> nn.Module:
        if not outputs:
            return _Nothing()
        last = nn.Linear(self.hidden, outputs)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        first = nn.Linear(self.encoder.num_features, self.hidden)
        return nn.Sequential(
            first, nn.ReLU(), nn.Linear(self.hidden, self.hidden), nn.ReLU(), last
        )

    def forward(self, images: Float[Tensor, "B C H W"]) -> Prediction:
        """Encode once, predict everything."""
        features = self.encoder(images)
        batch, sizes = len(images), self.outline
        sprite = self.sprite_head(features)
        layer = self.layer_head(features)
        background = self.background_head(features)
        return Prediction(
            sprite.view(batch, sizes.layers, sizes.sprites, sizes.sprite_params),
            layer.view(batch, sizes.layers, sizes.layer_params),
            background.view(batch, sizes.backgrounds, sizes.background_params),
            self.occlusion_head(features),
        )

    def per_sprite(self) -> list[tuple[nn.Parameter, int]]:
        """List nothing: the heads of this plain version are shared by all sprites."""
        return []


class _Nothing(nn.Module):
    """A head with nothing to predict."""

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B 0"]:
        return features[:, :0]


@hookimpl
def celstack_predictors() -> dict[str, type[Network]]:
    """Let recipes say ``use = "network"``."""
    return {"network": Network}

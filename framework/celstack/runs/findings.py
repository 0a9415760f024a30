"""Findings of the health check, and what each kind means."""

from __future__ import annotations

from typing import NamedTuple

MEANINGS = {
    "vanished-weights": (
        "The weights of a layer have shrunk to less than a hundredth of their initial size. "
        "They no longer receive gradients while weight decay continues, so their prediction "
        "is permanently the same for all images. Look for a part that a stage uses but that "
        "nothing depends on, for sprites that are never selected, or lower weight_decay."
    ),
    "exploding-weights": (
        "The weights of a layer have grown to more than a thousand times their initial size. "
        "Lower the learning rate of that part (encoder_rate, head_rate, prototype_rate)."
    ),
    "zero-gradient": (
        "A parameter is part of the loss, but its gradient is exactly zero: it does not "
        "affect the reconstruction, and only weight decay changes it. In an encoder these "
        "are dead units; lower the learning rate, or restart with another seed."
    ),
    "exploding-gradient": (
        "The root mean square of a gradient is above 100; it is usually below 1. Lower the "
        "learning rates, and check that images are between 0 and 1."
    ),
    "not-learning": (
        "A parameter has a gradient but does not change: its learning rate is zero, or too "
        "small for its floating-point precision. Check the rates, and the stage's factors."
    ),
    "moved-at-rest": (
        "A part that the stage does not use, or freezes, has changed nevertheless. This is a "
        "bug of the part or of Celstack, not of your recipe: please report it."
    ),
    "constant-transform": (
        "An active transform has the same parameters for all images, so it explains none of "
        "the differences between them. If a network predicts it, its heads are dead (see "
        "vanished-weights); otherwise the images do not need it: remove it."
    ),
    "unused-sprite": (
        "A sprite is never selected, and sprites are not reassigned: it learns nothing. With "
        "training.reassign_every it is reinitialized as a copy of another; if it stays "
        "unused, there are more sprites than kinds of objects."
    ),
    "empty-layer": (
        "A layer is empty in a whole batch, so its heads learn nothing. There may be more "
        "layers than objects; if not, train longer with frozen sprites (a first stage with "
        "freeze_sprites, in which no layer may be empty), or lower selector.empty_cost."
    ),
    "transparent-sprite": (
        "The mask of a sprite is transparent everywhere. It is invisible and receives hardly "
        "any gradient. With training.reassign_every it is reinitialized; otherwise lower "
        "prototype_rate, or start with a larger mask_sigma."
    ),
}
"""The explanation of each kind of finding."""


class Finding(NamedTuple):
    """A problem found by the health check: its kind, the part, and a measured value."""

    kind: str
    part: str
    detail: str

    def __str__(self) -> str:
        return f"{self.part}: {self.kind.replace('-', ' ')} ({self.detail})"

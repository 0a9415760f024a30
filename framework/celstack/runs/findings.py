"""What the health check of a run can find, and what each finding means."""

from __future__ import annotations

from typing import NamedTuple

MEANINGS = {
    "vanished-weights": (
        "The weights of a layer have shrunk to less than a hundredth of their first size. "
        "No gradient reaches them any more, and weight decay goes on: what they predict is "
        "the same for all images, for good. Look for a part that a stage uses but that "
        "nothing depends on, for sprites that are never selected, or lower weight_decay."
    ),
    "exploding-weights": (
        "The weights of a layer have grown to more than a thousand times their first size. "
        "Lower the learning rate of that part (encoder_rate, head_rate, prototype_rate)."
    ),
    "zero-gradient": (
        "A parameter takes part in the loss, and its gradient is exactly zero: nothing that "
        "it does changes the reconstruction, and weight decay alone moves it. In an encoder "
        "these are dead units; lower the rate, or start again with another seed."
    ),
    "exploding-gradient": (
        "The root mean square of a gradient is above 100; it is usually below 1. Lower the "
        "learning rates, and look for images that are not between 0 and 1."
    ),
    "not-learning": (
        "A parameter has a gradient and does not change: its learning rate is zero, or too "
        "small for the precision of its numbers. Check the rates, and the factors of the stage."
    ),
    "moved-at-rest": (
        "A part that the stage leaves out, or freezes, has changed all the same. That is a "
        "fault of the part or of Celstack, not of your recipe: please report it."
    ),
    "constant-transform": (
        "A transform at work has the same parameters for all images, so it explains nothing "
        "of what differs between them. If a network predicts it, its heads are dead (see "
        "vanished-weights); or nothing in the images asks for it: then leave it out."
    ),
    "unused-sprite": (
        "A sprite is never selected, and none is reassigned: it learns nothing. With "
        "training.reassign_every it starts again as a copy of another; if it stays unused, "
        "there are more sprites than kinds of objects."
    ),
    "empty-layer": (
        "A layer stays empty in a whole batch, so its heads learn nothing. There may be more "
        "layers than objects; if not, place frozen sprites for longer (a first stage with "
        "freeze_sprites, in which no layer may be empty), or lower selector.empty_cost."
    ),
    "transparent-sprite": (
        "The mask of a sprite is transparent everywhere. It shows nothing and gets hardly any "
        "gradient. With training.reassign_every it starts again; otherwise lower "
        "prototype_rate, or begin with a larger mask_sigma."
    ),
}
"""What the health check can find, and what each finding means."""


class Finding(NamedTuple):
    """Something that is not as it should be: its kind, which part it is, and a number."""

    kind: str
    part: str
    detail: str

    def __str__(self) -> str:
        return f"{self.part}: {self.kind.replace('-', ' ')} ({self.detail})"

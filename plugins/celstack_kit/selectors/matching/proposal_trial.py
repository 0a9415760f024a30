"""Accept the proposals that lower the objective on images other than their own."""

from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import Decomposer
from celstack_kit.selectors.matching.proposals import Proposals, find_rotated_duplicates

MIN_RELATIVE_REDUCTION = 0.02
"""Minimum decrease of the objective, as a share of it, for replacing a sprite in use."""


class ProposalTrial:
    """Tries proposals as sprites of a copy of the model, and measures the objective.

    The proposal always explains the image that it was cut out of, whether or not it recurs, so
    that image is left out of its score. ``accepted`` maps sprites to the proposals that are
    to replace them.
    """

    def __init__(
        self, decomposer: Decomposer, images: Float[Tensor, "B C H W"], proposals: Proposals
    ) -> None:
        self.copy, self.images = deepcopy(decomposer), images
        self.sprites, self.source = proposals
        self.remaining = list(range(len(self.sprites)))
        self.accepted: dict[int, Tensor] = {}

    def fill_unused(self, unused: list[int]) -> None:
        """Replace unused sprites, one after the other, by the best proposals."""
        for target in unused[: len(self.remaining)]:
            without = self._objective(target, torch.zeros_like(self.sprites[0]))
            self._accept(target, int(self._reductions(target, without).argmax()))

    def replace_duplicate(self) -> None:
        """Replace at most one sprite that has a duplicate, if the objective decreases enough.

        All members of duplicate pairs are tried, since the one used less may be the better
        one. Only one is replaced at a time: proposals are sharp, so all sprites that are still
        blurred would be replaced by them.
        """
        duplicates = find_rotated_duplicates(self.copy.sprite_images())
        members = {sprite for pair in duplicates for sprite in pair}
        targets = sorted(members - {*self.accepted})
        if not (targets and self.remaining):
            return
        objective = self._objective()
        reductions = torch.stack([self._reductions(target, objective) for target in targets])
        best = int(reductions.argmax())
        if reductions.flatten()[best] > MIN_RELATIVE_REDUCTION * objective.sum():
            count = len(self.remaining)
            self._accept(targets[best // count], best % count)

    def _reductions(self, target: int, objective: Float[Tensor, " B"]) -> Float[Tensor, " n"]:
        """Return the decrease of the objective for each remaining proposal as this sprite."""
        before = deepcopy(self.copy.sprites.state_dict())
        reductions = torch.stack(
            [objective - self._objective(target, self.sprites[n]) for n in self.remaining]
        )
        self.copy.sprites.load_state_dict(before)
        return reductions.scatter(1, self.source[self.remaining, None], 0.0).sum(1)

    def _accept(self, target: int, position: int) -> None:
        self.accepted[target] = self.sprites[self.remaining.pop(position)]
        self.copy.sprites.redraw(target, self.accepted[target])

    def _objective(
        self, target: int = 0, proposal: Float[Tensor, "D h w"] | None = None
    ) -> Float[Tensor, " B"]:
        """Return the objective of each image, with a proposal in place of a sprite if given."""
        if proposal is not None:
            self.copy.sprites.redraw(target, proposal)
        scene = self.copy.explain(self.images)
        errors = (self.copy.render(scene).image - self.images).square().flatten(1).mean(1)
        return errors + (self.copy.price or 0.0) * scene.filled.sum(1)

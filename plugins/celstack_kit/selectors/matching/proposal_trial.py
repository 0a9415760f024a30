"""Trial: whether drawings would make better sprites."""

from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor

from celstack import Decomposer
from celstack_kit.selectors.matching.proposals import Drawings, find_turned_twins

WORTH = 0.02
"""A sprite that is used is given up if that saves more than this share of what is left."""


class Trial:
    """A copy of a model, in which drawings take the places of sprites, to see what they save.

    Whatever is drawn explains the image that it was drawn from, however little it is an
    object that recurs; so it is tried on all others.
    """

    def __init__(
        self, decomposer: Decomposer, images: Float[Tensor, "B C H W"], drawings: Drawings
    ) -> None:
        self.copy, self.images = deepcopy(decomposer), images
        self.looks, self.source = drawings
        self.left = list(range(len(self.looks)))
        self.chosen: dict[int, Tensor] = {}

    def fill(self, unused: list[int]) -> None:
        """Let unused sprites, in turn, become the drawings that save most."""
        for target in unused[: len(self.left)]:
            without = self._costs(target, torch.zeros_like(self.looks[0]))
            self._take(target, int(self._saved(target, without).argmax()))

    def replace_twin(self) -> None:
        """Give up one sprite of those that look like others, if a drawing is worth more.

        Which one it should be is tried, too: the one used less may be the better one. It is
        only one at a time, because drawings are sharp, and sprites that have yet to become so
        would all be given up for them.
        """
        twins = find_turned_twins(self.copy.sprite_images())
        targets = sorted({sprite for pair in twins for sprite in pair} - {*self.chosen})
        if not (targets and self.left):
            return
        costs = self._costs()
        saved = torch.stack([self._saved(target, costs) for target in targets])
        best = int(saved.argmax())
        if saved.flatten()[best] > WORTH * costs.sum():
            self._take(targets[best // len(self.left)], best % len(self.left))

    def _saved(self, target: int, costs: Float[Tensor, " B"]) -> Float[Tensor, " n"]:
        """Return what each drawing that is left would save if it were this sprite."""
        before = deepcopy(self.copy.sprites.state_dict())
        saved = torch.stack([costs - self._costs(target, self.looks[n]) for n in self.left])
        self.copy.sprites.load_state_dict(before)
        return saved.scatter(1, self.source[self.left, None], 0.0).sum(1)

    def _take(self, target: int, place: int) -> None:
        self.chosen[target] = self.looks[self.left.pop(place)]
        self.copy.sprites.redraw(target, self.chosen[target])

    def _costs(
        self, target: int = 0, drawing: Float[Tensor, "D h w"] | None = None
    ) -> Float[Tensor, " B"]:
        """Return what explaining each image costs, with another sprite if it is given."""
        if drawing is not None:
            self.copy.sprites.redraw(target, drawing)
        scene = self.copy.explain(self.images)
        errors = (self.copy.render(scene).image - self.images).square().flatten(1).mean(1)
        return errors + (self.copy.price or 0.0) * scene.filled.sum(1)

"""Matching: compute where sprites are, instead of learning to predict it."""

from typing import Annotated

import torch
from annotated_types import Ge, Gt, Interval
from jaxtyping import Float
from torch import Tensor

from celstack import CelstackError, Decomposer, Scene, Selector, hookimpl
from celstack_kit.selectors.matching.background import fit_backdrop
from celstack_kit.selectors.matching.coordinate_descent import explain_again, fill
from celstack_kit.selectors.matching.depth_order import find_order
from celstack_kit.selectors.matching.placement import Placing, can_place
from celstack_kit.selectors.matching.proposal_trial import Trial
from celstack_kit.selectors.matching.proposals import draw_missing, enlarge, find_twins
from celstack_kit.selectors.matching.scene_state import Draft
from celstack_kit.selectors.matching.search import Search, Turned, Upright

DRAWINGS = 8
"""From how many images sprites are drawn, for one to be chosen."""


class Matching(Selector):
    """Search for the sprite, place and color that explain most, layer by layer.

    Sprites are held against what is not explained yet, at all places of the canvas and as
    large as they are; the gains of their colors, at most 1, follow in closed form. In each of
    ``sweeps`` sweeps every layer is taken out and explained again, and layers that overlap
    are put in the order that fits better; ``training_sweeps`` of them will do for learning.
    With ``empty_cost``, the price lambda of Eq. 5, a layer may stay empty.

    What is put first decides much. With more than one of ``starts``, images are also explained
    beginning with the sprite that comes second, and so on, and the best scene is kept; not so
    while learning, which can do with the first.

    Sprites are also looked for in ``turns`` angles around the circle and in all ``sizes``, if
    these are given: first at half the resolution, then closely, with ``refine`` steps of Gauss
    and Newton, between the angles and between the least and the largest size. Without them,
    ``refine`` looks for places between the pixels.

    No predictor is needed: only sprites and backgrounds learn. A transform must be able to
    ``place`` sprites, such as position; one that can ``tint`` them, such as color, lets
    their colors vary.
    """

    def __init__(
        self,
        sweeps: Annotated[int, Ge(1)] = 2,
        training_sweeps: Annotated[int, Ge(1)] | None = None,
        empty_cost: Annotated[float, Ge(0)] | None = None,
        starts: Annotated[int, Interval(ge=1, le=3)] = 1,
        turns: Annotated[int, Ge(1)] = 1,
        sizes: list[Annotated[float, Gt(0)]] | None = None,
        refine: Annotated[int, Ge(0)] = 0,
    ) -> None:
        if sizes is not None and not sizes:
            raise CelstackError("sizes: there must be at least one, such as 1.0")
        self.sweeps = sweeps
        self.training_sweeps = training_sweeps or sweeps
        self.empty_cost = empty_cost
        self.starts = starts
        self.turns = turns
        self.sizes = sizes
        self.refine = refine

    def check(self, decomposer: Decomposer) -> None:
        """Refuse a model that cannot be told where sprites are, or sprites too large for it."""
        if not can_place(decomposer):
            raise CelstackError(
                f"{self.name} says where sprites are; add a transform that can be told, "
                "such as a position"
            )
        size = getattr(decomposer.sprites, "size", None)
        if size is not None and decomposer.channels:
            Placing(decomposer, size)

    @torch.no_grad()
    def explain(
        self,
        images: Float[Tensor, "B C H W"],
        decomposer: Decomposer,
        noise: Float[Tensor, "K H W"] | None,
        allow_empty: bool,
    ) -> Scene:
        """Begin in one way or more, and keep the scenes that explain best."""
        sprites = decomposer.sprite_images()
        placing = Placing(decomposer, (sprites.shape[2], sprites.shape[3]))
        search = self._search(sprites, placing)
        price = (self.empty_cost or 0.0) * images[0].numel() if allow_empty else None
        starts = 1 if decomposer.training else min(self.starts, len(sprites))
        sweeps = self.training_sweeps if decomposer.training else self.sweeps
        draft, *others = (
            _sweep(Draft(images, decomposer, placing, noise), search, price, sweeps, rank)
            for rank in range(starts)
        )
        for other in others:
            draft.take_better(other, price or 0.0)
        return draft.scene()

    def _search(self, sprites: Float[Tensor, "K D h w"], placing: Placing) -> Search:
        """Choose how to search."""
        if not self._turns:
            return Upright(sprites, placing, self.refine)
        return Turned(sprites, placing, self.turns, self.sizes or [1.0], self.refine)

    @property
    def _turns(self) -> bool:
        """Whether sprites are looked for at angles and in sizes other than their own."""
        return self.turns > 1 or self.sizes is not None

    @torch.no_grad()
    def twins(self, decomposer: Decomposer) -> list[tuple[int, int]]:
        """List the pairs of sprites that look alike when shifted.

        Turned sprites never fit to the pixel, so those that look alike are put to the test
        instead: see ``missed``.
        """
        return [] if self._turns else find_twins(decomposer.sprite_images())

    @torch.no_grad()
    def missed(
        self,
        images: Float[Tensor, "B C H W"],
        scene: Scene,
        decomposer: Decomposer,
        unused: list[int],
    ) -> dict[int, Float[Tensor, "D h w"]]:
        """Draw sprites from what is explained worst, and choose those that explain most.

        One of two turned sprites that look alike is given up, if a drawing is worth more.
        """
        if not (unused or self._turns):
            return {}
        sprites = decomposer.sprite_images()
        size = (sprites.shape[2], sprites.shape[3])
        tints = Placing(decomposer, size).tints
        count = max(DRAWINGS, len(unused))
        drawn = draw_missing(images, scene, decomposer, count, size, tints)
        if self._turns:
            drawn = drawn._replace(looks=enlarge(drawn.looks))
        trial = Trial(decomposer, images, drawn)
        trial.fill(unused)
        if self._turns:
            trial.replace_twin()
        return trial.chosen


def _sweep(draft: Draft, search: Search, price: float | None, sweeps: int, rank: int) -> Draft:
    """Explain layer after layer, again and again, until nothing changes."""
    some = torch.arange(len(draft.images), device=draft.images.device)
    for sweep in range(sweeps):
        changed = fit_backdrop(draft, some)
        if sweep:
            changed |= explain_again(draft, some, search, price)
        changed |= fill(draft, some, search, price, 0 if sweep else rank)
        changed |= find_order(draft, some)
        some = some[changed]
        if not len(some):
            break
    return draft


@hookimpl
def celstack_selectors() -> dict[str, type[Matching]]:
    """Let recipes say ``use = "matching"``."""
    return {"matching": Matching}

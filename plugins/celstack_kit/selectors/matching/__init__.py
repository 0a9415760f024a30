"""Matching: find sprites by template matching, without a predictor."""

from typing import Annotated, Literal

import torch
from annotated_types import Ge, Gt, Interval
from jaxtyping import Float
from torch import Tensor

from celstack import CelstackError, Decomposer, Scene, Selector, hookimpl
from celstack_kit.selectors.matching.background import fit_background
from celstack_kit.selectors.matching.coordinate_descent import (
    drop_shadows,
    fill_empty_layers,
    update_layers,
)
from celstack_kit.selectors.matching.depth_order import improve_depth_order
from celstack_kit.selectors.matching.placement import Placement, supports_placement
from celstack_kit.selectors.matching.pose_bank import PoseBank
from celstack_kit.selectors.matching.proposal_trial import ProposalTrial
from celstack_kit.selectors.matching.proposals import (
    find_shifted_duplicates,
    propose_from_residuals,
    zoom_to_content,
)
from celstack_kit.selectors.matching.scan_bank import ScanBank
from celstack_kit.selectors.matching.scene_state import SceneState
from celstack_kit.selectors.matching.search import PoseSearch, SpriteSearch, TranslationSearch

MIN_PROPOSALS = 8
"""Number of proposals made, even if fewer sprites are to be replaced."""
MAX_CANVASES = 4
"""Scaled sprites may be so many times longer than the canvas: beyond, little of them shows."""


class Matching(Selector):
    """Minimize the squared error over sprites, poses and colors by coordinate descent.

    Layer by layer, the residual is cross-correlated with all sprites, at all positions of the
    canvas and at the sprites' own scale; color gains, at most 1, follow in closed form. In each
    of ``sweeps`` sweeps every layer is optimized with the others fixed, and the depth order of
    overlapping layers is improved; training uses ``training_sweeps``. With ``empty_cost``, the
    price lambda of Eq. 5, a layer may stay empty.

    The result depends on the first sprite. With ``starts`` above 1, the search is repeated with
    the second best sprite first, and so on, and the best scene is kept. Training uses one.

    Given ``turns`` or ``sizes``, sprites are also searched for at that many angles and at these
    scales: first at half the resolution, then refined by ``refine`` Gauss-Newton steps, with
    the scale between the smallest and the largest of ``sizes``. Otherwise ``refine`` is the
    number of steps to subpixel positions.

    With ``search = "residuals"``, sprites are searched for only where something differs from
    background and other layers by more than noise, which takes less time the less there is.
    Sprites may then be stretched and sheared a little, if a transform can, such as affine.
    With ``offsets``, colors have an offset besides their gain, so that a highlight stays white
    on a colored body. If a transform of the background can be fitted to images, such as
    light, layers that it explains as well are emptied: shadows.

    No predictor is needed: only sprites and backgrounds have parameters. One of the transforms
    must implement ``params_from_matrix``, such as position; one that implements ``tint``,
    such as color, lets colors vary.
    """

    def __init__(
        self,
        sweeps: Annotated[int, Ge(1)] = 2,
        training_sweeps: Annotated[int, Ge(1)] | None = None,
        empty_cost: Annotated[float, Ge(0)] | None = None,
        starts: Annotated[int, Interval(ge=1, le=3)] = 1,
        # More than two for every degree only take memory, which grows with their square.
        turns: Annotated[int, Interval(ge=1, le=720)] = 1,
        sizes: list[Annotated[float, Gt(0)]] | None = None,
        refine: Annotated[int, Ge(0)] = 0,
        search: Literal["everywhere", "residuals"] = "everywhere",
        offsets: bool = False,
    ) -> None:
        if sizes is not None and not sizes:
            raise CelstackError("sizes: there must be at least one, such as 1.0")
        if offsets and search != "residuals":
            raise CelstackError('offsets: only with search = "residuals"')
        self.sweeps = sweeps
        self.training_sweeps = training_sweeps or sweeps
        self.empty_cost = empty_cost
        self.starts = starts
        self.turns = turns
        self.sizes = sizes
        self.refine = refine
        self.search = search
        self.offsets = offsets

    def check(self, decomposer: Decomposer) -> None:
        """Raise CelstackError if no transform can place the sprites."""
        if not supports_placement(decomposer):
            raise CelstackError(
                f"{self.name} computes where sprites are; add a transform that can place them, "
                "such as position"
            )
        if not decomposer.channels:
            return
        size = decomposer.sprites.size
        if size is not None:
            placement = Placement(decomposer, size)
            if self.offsets and not placement.can_shift_colors:
                raise CelstackError(
                    "offsets: no transform of the sprites can add them; add one that can, "
                    "such as color"
                )
        self._check_sizes(max(size or decomposer.canvas), max(decomposer.canvas))

    def _check_sizes(self, length: int, canvas: int) -> None:
        """Raise CelstackError if a size makes sprites of this length too small or large."""
        smallest, largest = 1 / length, MAX_CANVASES * canvas / length
        for size in self.sizes or []:
            if not smallest <= size <= largest:
                raise CelstackError(
                    f"sizes: {size:g} makes sprites of {length} pixels {size * length:g} "
                    f"pixels long; take sizes from {smallest:.2g} to {largest:.2g}, for a "
                    f"canvas of {canvas} pixels"
                )

    @torch.no_grad()
    def explain(
        self,
        images: Float[Tensor, "B C H W"],
        decomposer: Decomposer,
        noise: Float[Tensor, "K H W"] | None,
        allow_empty: bool,
    ) -> Scene:
        """Run coordinate descent from one or more starts, and keep the best scenes."""
        sprites = decomposer.sprite_images()
        size = (sprites.shape[2], sprites.shape[3])
        placement = Placement(decomposer, size, stretch=self.search == "residuals")
        search = self._make_search(sprites, placement)
        price = (self.empty_cost or 0.0) * images[0].numel() if allow_empty else None
        starts = 1 if decomposer.training else min(self.starts, len(sprites))
        sweeps = self.training_sweeps if decomposer.training else self.sweeps
        state, *others = (
            _run_sweeps(
                SceneState(images, decomposer, placement, noise), search, price, sweeps, rank
            )
            for rank in range(starts)
        )
        for other in others:
            state.take_better(other, price or 0.0)
        return state.scene()

    def _make_search(
        self, sprites: Float[Tensor, "K D h w"], placement: Placement
    ) -> SpriteSearch:
        """Return the search over translations alone, or over all poses."""
        if not self._varies_pose:
            return TranslationSearch(sprites, placement, self.refine)
        sizes, tints = self.sizes or [1.0], placement.can_tint
        bank: PoseBank | ScanBank
        if self.search == "residuals":
            bank = ScanBank(sprites, self.turns, sizes, tints, self.offsets)
        else:
            bank = PoseBank(sprites, placement.canvas, self.turns, sizes, tints)
        # Everywhere, sprites at one angle may still turn a little, as in earlier versions.
        turns = self.turns > 1 or self.search == "everywhere"
        return PoseSearch(sprites, placement, bank, sizes, self.refine, self.offsets, turns)

    @property
    def _varies_pose(self) -> bool:
        """Whether sprites are searched for at other angles or scales than their own."""
        return self.turns > 1 or self.sizes is not None or self.search == "residuals"

    @torch.no_grad()
    def find_duplicates(self, decomposer: Decomposer) -> list[tuple[int, int]]:
        """Return the pairs of sprites that are equal up to a translation.

        Sprites that are rotated are never equal to the pixel: whether one of two similar ones
        should be replaced, ``propose_sprites`` tries.
        """
        return [] if self._varies_pose else find_shifted_duplicates(decomposer.sprite_images())

    @torch.no_grad()
    def propose_sprites(
        self,
        images: Float[Tensor, "B C H W"],
        scene: Scene,
        decomposer: Decomposer,
        unused: list[int],
    ) -> dict[int, Float[Tensor, "D h w"]]:
        """Propose sprites from the images explained worst, and return those that help most.

        If sprites are rotated, one of two duplicates may be replaced, too.
        """
        if not (unused or self._varies_pose):
            return {}
        sprites = decomposer.sprite_images()
        size = (sprites.shape[2], sprites.shape[3])
        tints = Placement(decomposer, size).can_tint
        count = max(MIN_PROPOSALS, len(unused))
        proposals = propose_from_residuals(images, scene, decomposer, count, size, tints)
        if self._varies_pose:
            proposals = proposals._replace(sprites=zoom_to_content(proposals.sprites))
        trial = ProposalTrial(decomposer, images, proposals)
        trial.fill_unused(unused)
        if self._varies_pose:
            trial.replace_duplicate()
        return trial.accepted


def _run_sweeps(
    state: SceneState, search: SpriteSearch, price: float | None, sweeps: int, rank: int
) -> SceneState:
    """Run sweeps of coordinate descent on all images, until they converge.

    The sweep optimizes background, layers that are filled, empty layers, and depth order. The
    first sprite of all is the one of this rank by error reduction.
    """
    indices = torch.arange(len(state.images), device=state.images.device)
    for sweep in range(sweeps):
        changed = fit_background(state, indices)
        if sweep:
            changed |= drop_shadows(state, indices, price)
            changed |= update_layers(state, indices, search, price)
        changed |= fill_empty_layers(state, indices, search, price, 0 if sweep else rank)
        changed |= improve_depth_order(state, indices)
        indices = indices[changed]
        if not len(indices):
            break
    return state


@hookimpl
def celstack_selectors() -> dict[str, type[Matching]]:
    """Let recipes say ``use = "matching"``."""
    return {"matching": Matching}

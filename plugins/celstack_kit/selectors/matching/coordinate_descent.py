"""Sweep: explain the layers of drafts one after the other."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from celstack import EMPTY
from celstack_kit.selectors.matching.scene_state import Draft
from celstack_kit.selectors.matching.search import Choice, Search
from celstack_kit.selectors.matching.templates import Around

COVERED = 0.5
"""Pixels of which less shows through all layers count as covered."""


def explain_again(
    draft: Draft, some: Int[Tensor, " n"], search: Search, price: float | None
) -> Bool[Tensor, " n"]:
    """Take out every layer that is there, one at a time, and explain it again at its depth.

    Return in which images any layer changed.
    """
    changed = torch.zeros_like(some, dtype=torch.bool)
    for layer in reversed(range(draft.sprite.shape[1])):
        there = (draft.sprite[some, layer] != EMPTY).nonzero()[:, 0]
        if not len(there):
            continue
        here = some[there]
        around = draft.around(layer, here)
        choice = search(around, (draft.sprite[here, layer], draft.pose[here, layer]))
        changed[there] |= draft.offer(layer, here, around, choice, price)
    return changed


def fill(
    draft: Draft, some: Int[Tensor, " n"], search: Search, price: float | None, rank: int = 0
) -> Bool[Tensor, " n"]:
    """Put sprites on empty layers while that helps; return in which images it did.

    What explains most is seldom hidden, so what comes later is looked for behind all that is
    there. But where more is unexplained on the layers than can be explained behind them,
    something must be in front, and is looked for there. The first sprite of all may be of
    another ``rank`` than the best.
    """
    changed = torch.zeros_like(some, dtype=torch.bool)
    going = torch.arange(len(some), device=some.device)
    draft.sort(some, draft.sprite[some] != EMPTY)
    for _ in range(draft.sprite.shape[1]):
        # Empty layers come first, so the first is behind all, wherever it will go.
        going = going[draft.sprite[some[going], 0] == EMPTY]
        if not len(going):
            break
        here = some[going]
        around, choice, in_front = _behind_or_in_front(draft, here, search, rank)
        rank = 0
        put = draft.offer(0, here, around, choice, price)
        depth = (draft.sprite[here] != EMPTY).long()
        depth[:, 0] += put & in_front
        draft.sort(here, depth)
        changed[going] |= put
        going = going[put]
    return changed


def _behind_or_in_front(
    draft: Draft, some: Int[Tensor, " n"], search: Search, rank: int
) -> tuple[Around, Choice, Bool[Tensor, " n"]]:
    """Return what one more layer finds, what explains most of it, and where it is in front."""
    behind = draft.around(0, some)
    choice = search(behind, rank=rank)
    covered = behind.residual.square() * (behind.left < COVERED)
    doubtful = (covered.flatten(1).sum(1) > choice.saved).nonzero()[:, 0]
    in_front = torch.zeros_like(some, dtype=torch.bool)
    if len(doubtful):
        front = draft.around(draft.sprite.shape[1], some[doubtful])
        other = search(front)
        better = other.saved > choice.saved[doubtful]
        in_front[doubtful] = better
        for ours, theirs in zip((*behind, *choice), (*front, *other), strict=True):
            ours[doubtful[better]] = theirs[better]
    return behind, choice, in_front

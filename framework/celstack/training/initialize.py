"""Build the untrained model of a run."""

from __future__ import annotations

import torch

from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Assembly


def init_model(assembly: Assembly) -> Decomposer:
    """Build a model and initialize its parameters, which depend on nothing but the seed.

    Prototypes are initialized from a random sample of training images.
    """
    torch.manual_seed(assembly.seed)
    decomposer = assembly.decomposer()
    count = assembly.dataset.count("train")
    prototypes = [decomposer.sprites, decomposer.backgrounds]
    sample_size = max(part.sample_size for part in prototypes if part is not None)
    sample = torch.randperm(count)[:sample_size].tolist()
    decomposer.prepare(assembly.dataset.read("train", sample).images)
    return decomposer

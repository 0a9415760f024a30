"""Whether predicted angles are the true ones, for a run on generated Multi-dSprites.

    python tests/benchmarks/angles.py RUN

For every test object that nothing hides, the true angle is read off its mask, which is one of
240 drawings, and the predicted one off the warp of the layer that covers it best. A square
looks the same after a quarter of a turn and an ellipse after half of one; so angles are
multiplied by 4, 2 and 1. Printed is how far both agree: the length of the mean of
exp(i (predicted - true)), which is 1 if they differ by a constant; if they have nothing to do
with each other, it is about as large as chance, 1 / sqrt(objects). Rows of few objects say
nothing.
"""

import math
import sys
from pathlib import Path

import numpy as np
import torch

from celstack.runs.open import open_run
from celstack_kit.datasets.multi_dsprites.shapes import NAMES, TURNS, DrawnShapes

SYMMETRY = {"square": 4, "ellipse": 2, "heart": 1}


def cropped(mask: np.ndarray) -> np.ndarray:
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def drawings() -> dict[tuple[int, tuple[int, ...], bytes], float]:
    """Return the angle of every drawing by its shape and pixels."""
    known = {}
    for shape, scales in enumerate(DrawnShapes().windows):
        for turns in scales:
            for turn, window in enumerate(turns):
                mask = cropped(window)
                known.setdefault((shape, mask.shape, mask.tobytes()), TURNS[turn])
    return known


def agreement(one: np.ndarray, other: np.ndarray) -> float:
    return float(abs(np.exp(1j * (one - other)).mean()))


@torch.no_grad()
def main() -> None:
    opened = open_run(Path(sys.argv[1]))
    model, assembly = opened.decomposer, opened.assembly
    batch = assembly.dataset.read("test", range(assembly.dataset.count("test")))
    scene = model.explain(batch.images)
    rendering = model.render(scene)
    matrix = model.sprite_chain.matrix(scene.sprite_params.flatten(0, 1))
    # The warp says where the canvas looks: the sprite is turned the other way.
    angles = -torch.atan2(matrix[:, 1, 0], matrix[:, 0, 0]).view(scene.sprite.shape)
    known = drawings()
    pairs: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for image, (instances, classes) in enumerate(
        zip(batch.instances.numpy(), batch.classes.numpy(), strict=True)
    ):
        for instance in range(1, instances.max() + 1):
            mask = instances == instance
            if not mask.any():
                continue
            shape = int(classes[mask][0]) - 1
            seen = cropped(mask)
            angle = known.get((shape, seen.shape, seen.tobytes()))
            visible = rendering.visible[image].numpy() > 0.5
            overlap = (visible & mask).sum((1, 2)) / (visible | mask).sum((1, 2)).clip(1)
            layer = int(overlap.argmax())
            if angle is not None and overlap[layer] > 0.5:
                key = (NAMES[shape], int(scene.sprite[image, layer]))
                pairs.setdefault(key, []).append((float(angles[image, layer]), angle))
    titles = f"{'shape':<8} {'sprite':>6} {'objects':>8} {'spread':>7}"
    print(f"{titles} {'agreement':>10} {'chance':>7}")
    total = 0.0
    for (shape, sprite), found in sorted(pairs.items()):
        predicted, true = SYMMETRY[shape] * np.array(found).T
        spread = math.degrees(np.std(predicted / SYMMETRY[shape]))
        agree, chance = agreement(predicted, true), 1 / math.sqrt(len(found))
        total += agree * len(found)
        row = f"{shape:<8} {sprite:>6} {len(found):>8} {spread:>6.0f}°"
        print(f"{row} {agree:>10.3f} {chance:>7.3f}")
    objects = sum(map(len, pairs.values()))
    print(f"all, weighted by objects: {total / max(objects, 1):.3f} of {objects} objects")


if __name__ == "__main__":
    main()

"""Draw what a run has learned: its sprites, and images taken apart.

    python tests/benchmarks/pictures.py RUN FILE.png [--sprites-only]

The first rows have the sprites on grey, enlarged; below are examples as in
``examples.png`` of a run. With ``--sprites-only`` no image of the dataset is shown.
"""

import sys
from pathlib import Path

import torch
from PIL import Image

from celstack.evaluation.visualize import draw_examples, draw_sprites
from celstack.runs.open import open_run

GREY = (128, 128, 128)
GAP = 4
WIDTH, PER_ROW = 1000, 10


def sheet(pictures: list[Image.Image]) -> Image.Image:
    """Lay sprites out in rows of ten."""
    factor = max(2, WIDTH // PER_ROW // pictures[0].width)
    wide, tall = (factor * side + GAP for side in pictures[0].size)
    columns, rows = min(PER_ROW, len(pictures)), -(-len(pictures) // PER_ROW)
    whole = Image.new("RGB", (columns * wide + GAP, rows * tall + GAP), GREY)
    for number, picture in enumerate(pictures):
        large = picture.resize((wide - GAP, tall - GAP), Image.Resampling.NEAREST)
        place = (number % PER_ROW * wide + GAP, number // PER_ROW * tall + GAP)
        whole.paste(large, place, large)
    return whole


def main() -> None:
    folder, target, *options = sys.argv[1:]
    torch.set_num_threads(1)
    opened = open_run(Path(folder))
    sprites = sheet(draw_sprites(opened.decomposer))
    if options == ["--sprites-only"]:
        sprites.save(target, optimize=True)
        return
    examples = draw_examples(opened.decomposer, opened.assembly).convert("RGB")
    size = (max(sprites.width, examples.width), sprites.height + examples.height)
    whole = Image.new("RGB", size, "white")
    whole.paste(sprites, (0, 0))
    whole.paste(examples, (0, sprites.height))
    whole.quantize(192).save(target, optimize=True)


if __name__ == "__main__":
    main()

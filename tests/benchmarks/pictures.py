"""Draw what a run has learned: its sprites, and images taken apart.

    python tests/benchmarks/pictures.py RUN FILE.png [--sprites-only]

The first row has the sprites on grey, their size doubled or more; below are examples as in
``examples.png`` of a run. With ``--sprites-only`` no image of the dataset is shown.
"""

import sys
from pathlib import Path

import torch
from PIL import Image

from celstack.openrun import open_run
from celstack.pictures import draw_examples, draw_sprites

GREY = (128, 128, 128)
GAP = 4
WIDTH = 1000


def row(pictures: list[Image.Image]) -> Image.Image:
    factor = max(2, WIDTH // 10 // pictures[0].width)
    large = [p.resize((factor * p.width, factor * p.height), 0) for p in pictures]
    width = sum(p.width + GAP for p in large) + GAP
    strip = Image.new("RGB", (width, large[0].height + 2 * GAP), GREY)
    left = GAP
    for picture in large:
        strip.paste(picture, (left, GAP), picture)
        left += picture.width + GAP
    return strip


def main() -> None:
    folder, target, *options = sys.argv[1:]
    torch.set_num_threads(1)
    opened = open_run(Path(folder))
    sprites = row(draw_sprites(opened.decomposer))
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

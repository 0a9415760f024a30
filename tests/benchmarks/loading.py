"""Whether loading keeps up with learning.

    CELSTACK_DATA=... python tests/benchmarks/loading.py [RECIPE ...]

Prints, for every bundled recipe but the ablations, how many images a second its loader gives,
how many its training step takes, and the ratio, measured alternately. Recipes whose data is
not on this machine are left out, and said so. Of CLEVR6 only 64 images are rendered; the image
folder is one of JPEGs that this command writes, 640 x 480.
"""

import itertools
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
from PIL import Image

from celstack.data.loader import shuffled_batches
from celstack.errors import CelstackError
from celstack.recipe.assembly import Assembly
from celstack.recipe.build import assemble
from celstack.recipe.load import bundled_names, read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog
from celstack.system import tune_allocator
from celstack.training.initialize import init_model
from celstack.training.optimizer import build_optimizer
from celstack.training.steering import begin_stage
from celstack.training.step import take_step

ROUNDS = 3
FEWER = {"paper/clevr6.toml": ["dataset.count=64", "dataset.test_count=1"]}


def measure(assembly: Assembly) -> tuple[float, float, float]:
    """Return images a second, loaded and learned from, and the ratio of the two."""
    training = assembly.training
    decomposer = init_model(assembly).train()
    begin_stage(decomposer, assembly.stages[-1])
    optimizer = build_optimizer(decomposer, training)
    batches = shuffled_batches(
        assembly.dataset, "train", training.batch_size, assembly.seed, training.workers
    )
    images = next(batches).images
    take_step(decomposer, optimizer, images, training.mask_noise)
    loaded, learned = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        count = sum(len(batch) for batch in itertools.islice(batches, 10))
        loaded.append(count / (time.perf_counter() - begin))
        begin = time.perf_counter()
        take_step(decomposer, optimizer, images, training.mask_noise)
        learned.append(len(images) / (time.perf_counter() - begin))
    ratios = [fast / slow for fast, slow in zip(loaded, learned, strict=True)]
    return median(loaded), median(learned), median(ratios)


def write_images(folder: Path) -> None:
    random = np.random.default_rng(0)
    for number in range(128):
        coarse = Image.fromarray(random.integers(256, size=(12, 16, 3), dtype=np.uint8))
        coarse.resize((640, 480), Image.Resampling.BICUBIC).save(folder / f"{number}.jpg")


def main() -> None:
    tune_allocator()
    catalog = Catalog()
    names = sys.argv[1:] or [n for n in bundled_names() if not n.startswith("ablations/")]
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; images a second")
    print(f"{'recipe':<28} {'loaded':>9} {'learned':>9} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder))
        for name in names:
            changed = [*FEWER.get(name, []), "observers=[]"]
            if name == "paper/instagram.toml":
                changed.append(f"dataset.root={folder}")
            try:
                assembly = assemble(resolve(read_recipe(name, changed), catalog), catalog)
                loaded, learned, ratio = measure(assembly)
            except CelstackError as error:
                print(f"{name:<28} left out: {error}")
                continue
            print(f"{name:<28} {loaded:9.0f} {learned:9.0f} {ratio:7.1f}", flush=True)


if __name__ == "__main__":
    main()

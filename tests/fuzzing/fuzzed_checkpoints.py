"""Checkpoints: files that are damaged, sound files of mutated members, and of other states."""

import io
import zipfile

import torch
from mutations import Values, copied, mutated_bytes, mutated_nest
from trial import Kind

from celstack.recipe.build import assemble
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog
from celstack.runs.checkpoint import read_checkpoint
from celstack.runs.directory import RunDirectory
from celstack.runs.open import open_run
from celstack.training.initialize import init_model
from celstack.training.loop import run, take_step
from celstack.training.optimizer import build_optimizer
from celstack.training.run_state import RunState
from celstack.training.steering import begin_stage

RECIPE = """\
dataset = { use = "tetrominoes", count = 2, test_count = 1, per_image = 1, side = 20 }
sprites = { use = "pixels", count = 2, size = [8, 8] }
compositor = { use = "ordered", layers = 1 }
selector = "greedy"
predictor = { use = "network", encoder = { use = "strided", width = 2, features = 4 } }
transforms.layer = ["position"]
stages = [{ steps = 2 }]
metrics = ["mse", "ari"]
evaluation.images = 1
training.batch_size = 1
"""
WORDS = ["0.1.0", "0.0.9", "99.0", "", "{}", "{", "null", "Adam"]
KEYS = ["step", "state", "param_groups", "lr", "betas", "params", "cpu", "exp_avg", 0, 1]


class StateValues(Values):
    """Values that a checkpoint could hold, which are tensors more often than not."""

    def __call__(self, random, depth=2):
        return tensor(random) if random.random() < 0.5 else super().__call__(random, depth)


def tensor(random):
    """Return a tensor of any shape and type, or one that only looks like much."""
    shape = [random.choice((0, 1, 2, 3, 8)) for _ in range(random.randint(0, 4))]
    kinds = (torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8, torch.bool)
    made = torch.ones(shape, dtype=random.choice((*kinds, torch.complex64)))
    changes = (
        lambda: made,
        lambda: made.to_sparse(),
        lambda: made.to("meta"),
        lambda: torch.ones(1).expand(2**40),
        lambda: torch.full((), float("nan")),
        lambda: torch.nn.Parameter(torch.ones(2)),
        lambda: made.t() if made.ndim == 2 else made,
    )
    return random.choice(changes)()


def tiny_run(folder):
    """Run a tiny recipe; return its directory and what it was assembled to."""
    recipe = folder / "my.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    catalog = Catalog()
    resolved = resolve(read_recipe(str(recipe)), catalog)
    assembly = assemble(resolved, catalog)
    directory = RunDirectory(folder / "run")
    directory.folder.mkdir()
    directory.save_recipe(resolved)
    run(assembly, directory)
    return directory, assembly


class Checkpoints(Kind):
    """A run opens them, goes on from them, and takes a step."""

    def __init__(self, folder):
        super().__init__(folder)
        self.directory, self.assembly = tiny_run(folder)
        self.path = self.directory.folder / "checkpoint.pt"
        self.whole = self.path.read_bytes()
        self.log = (self.directory.folder / "log.jsonl").read_bytes()
        self.state = torch.load(self.path, weights_only=True)
        with zipfile.ZipFile(self.path) as archive:
            self.members = {name: archive.read(name) for name in archive.namelist()}
        self.values = StateValues(WORDS, [*self.state, *KEYS])
        self.images = self.assembly.dataset.read("train", [0]).images
        self.known = set(self.directory.folder.iterdir())

    def attempt(self, random):
        self.path.write_bytes(self.made(random))
        (self.directory.folder / "log.jsonl").write_bytes(self.log)
        if random.random() < 0.2:
            opened = open_run(self.directory.folder)
            with torch.no_grad():
                opened.decomposer.explain(self.images)
            return
        read_checkpoint(self.path)
        decomposer = init_model(self.assembly).train()
        begin_stage(decomposer, self.assembly.stages[0])
        optimizer = build_optimizer(decomposer, self.assembly.training)
        state = RunState(decomposer, optimizer, self.directory)
        state.resume()
        try:
            with state.atomic_step():
                loss, _ = take_step(decomposer, optimizer, self.images, 0.0)
                state.count_step(loss, "on")
            state.save()
        finally:
            self.directory.close()

    def leftovers(self):
        return sorted(set(self.directory.folder.iterdir()) - self.known)

    def made(self, random):
        choice = random.random()
        if choice < 0.35:
            return mutated_bytes(random, self.whole)
        if choice < 0.6:
            return self.packed(random)
        state = copied(self.state)
        if choice < 0.7:
            state["version"] = random.choice(WORDS)
        else:
            mutated_nest(random, state, self.values)
        file = io.BytesIO()
        try:
            torch.save(state, file)
        except (RuntimeError, ValueError, TypeError):
            return mutated_bytes(random, self.whole)  # what cannot be saved is nobody's file
        return file.getvalue()

    def packed(self, random):
        """Pack mutated members so that all of their checksums are right."""
        members = dict(self.members)
        pickles = [name for name in members if name.endswith(".pkl")]
        for _ in range(random.randint(1, 2)):
            name = random.choice([*members])
            name = name if random.random() < 0.5 else random.choice(pickles)
            members[name] = mutated_bytes(random, members[name])
        kind = random.choice((zipfile.ZIP_STORED,) * 9 + (zipfile.ZIP_DEFLATED,))
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", kind) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return file.getvalue()

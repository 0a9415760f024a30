"""Scene files, mutated as tables and as texts."""

import json

import torch
from mutations import Values, mutated_bytes, mutated_nest, mutated_text
from trial import Kind

from celstack.export.scene_json import read_scene, scene_to_json
from celstack.testing.model import PlainSelector, plain_decomposer

WORDS = ["celstack scene", "PlainWarp", "PlainTransform", "NaN", "null"]
PIECES = ['"', "[", "]", "{", "}", ",", ":", "NaN", "-", "1e999", "null", '"sprite"', "0"]

PARAMETERS = (0.0, 1.0, -1.0, 0.1, -100, 1e3, 1e6, -1e6, 1e-30)


class SceneFiles(Kind):
    """A model of plain parts reads them, and renders what it accepts."""

    def __init__(self, folder):
        super().__init__(folder)
        torch.manual_seed(0)
        self.decomposer = plain_decomposer(PlainSelector(), with_background=True)
        self.decomposer.prepare(torch.rand(2, 3, 8, 8))
        self.decomposer.eval()
        with torch.no_grad():
            scene = self.decomposer.explain(torch.rand(1, 3, 8, 8))
        self.text = scene_to_json(scene, self.decomposer)
        table = json.loads(self.text)
        self.values = Values(WORDS, [*table, *table["layers"][0], "number", "params"])

    def attempt(self, random):
        path, choice = self.folder / "scene.json", random.random()
        if choice < 0.3:
            path.write_text(json.dumps(self.moved(random)), encoding="utf-8")
        elif choice < 0.6:
            table = mutated_nest(random, json.loads(self.text), self.values)
            path.write_text(json.dumps(table), encoding="utf-8")
        elif choice < 0.8:
            path.write_text(mutated_text(random, self.text, PIECES), encoding="utf-8")
        else:
            path.write_bytes(mutated_bytes(random, self.text.encode()))
        scene = read_scene(path, self.decomposer)
        with torch.no_grad():
            assert self.decomposer.render(scene).image.isfinite().all()

    def moved(self, random):
        """Give transforms other parameters, of which most are allowed."""
        table = json.loads(self.text)
        for layer in table["layers"]:
            layer["sprite"] = random.choice((None, 0, 1, 2, 2, 3))
            for numbers in (*layer["sprite_params"].values(), *layer["layer_params"].values()):
                for place in range(len(numbers)):
                    numbers[place] = random.choice(PARAMETERS)
        return table

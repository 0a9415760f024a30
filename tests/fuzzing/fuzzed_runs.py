"""What else lies in the folder of a run: its recipe in full, its log, its scores."""

import json
import tomllib

import tomli_w
from fuzzed_checkpoints import tiny_run
from mutations import Values, mutated_bytes, mutated_nest, mutated_text
from trial import Kind

from celstack.files import write_atomic
from celstack.report.run_info import read_run_info
from celstack.report.scores import class_matrix, format_image_scores, read_sprite_stats
from celstack.report.training_log import read_training_log
from celstack.runs.comparison import as_markdown, compare
from celstack.runs.finished import read_finished
from celstack.runs.used_packages import read_used_packages

PIECES = ['"', "[", "]", "{", "}", ",", "=", "NaN", "null", "\n", "1e999", "0"]
WORDS = ["train", "test", "ari", "mse", "tetrominoes"]
LONE = "\ud800"
"""Half a character: JSON can spell it, and no file of text can hold it."""


class RunFiles(Kind):
    """Tables and reports read them; what is printed or written of them can be encoded."""

    def __init__(self, folder):
        super().__init__(folder)
        directory, _ = tiny_run(folder)
        self.run = directory.folder
        names = [path.name for path in self.run.iterdir() if path.suffix in (".json", ".toml")]
        self.files = {name: (self.run / name).read_bytes() for name in [*names, "log.jsonl"]}
        table = tomllib.loads(self.files["resolved.toml"].decode())
        keys = [*table, "use", "split", "images", "us", "ari"]
        self.values, self.json_values = (
            Values(WORDS, keys),
            Values([*WORDS, LONE], [*keys, LONE]),
        )

    def attempt(self, random):
        for name, data in self.files.items():
            (self.run / name).write_bytes(data)
        for name in random.sample([*self.files], 2):
            (self.run / name).write_bytes(self.mutated(random, name))
        self.read(random)

    def read(self, random):
        finished = read_finished(self.run)
        table = as_markdown(compare([finished, finished], each=True))
        write_atomic(self.folder / "table.md", table)
        read_run_info(self.run, read_training_log(self.run / "log.jsonl"))
        read_used_packages(self.run)
        format_image_scores(self.run, ["ari"])
        stats = read_sprite_stats(self.run)
        if stats is not None:
            class_matrix(stats)

    def mutated(self, random, name):
        data, choice = self.files[name], random.random()
        if choice < 0.3 or name.endswith(".png"):
            return mutated_bytes(random, data)
        if choice < 0.6:
            return mutated_text(random, data.decode(), PIECES).encode()
        if name.endswith(".json"):
            return json.dumps(mutated_nest(random, json.loads(data), self.json_values)).encode()
        if name.endswith(".toml"):
            table = tomllib.loads(data.decode())
            table["published"] = {"us": {"ari": 1.0}}
            return tomli_w.dumps(mutated_nest(random, table, self.values)).encode()
        lines = [json.loads(line) for line in data.splitlines()]
        mutated = mutated_nest(random, lines, self.json_values)
        return "\n".join(map(json.dumps, mutated)).encode()

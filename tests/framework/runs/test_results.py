"""What is written into a run folder is computed elsewhere than where it is written."""

import ast
import inspect
import json

from PIL import Image

from celstack.evaluation import SpriteStats
from celstack.runs import directory as writer
from celstack.runs.directory import RunDirectory
from celstack.runs.open import open_run
from celstack.runs.results import RunResults, collect_results


def test_the_run_directory_neither_scores_nor_draws():
    imported = [
        node.module
        for node in ast.walk(ast.parse(inspect.getsource(writer)))
        if isinstance(node, ast.ImportFrom)
    ]

    assert not [name for name in imported if name.startswith("celstack.evaluation")]
    assert not [name for name in imported if name.startswith("celstack.model")]
    assert "celstack.runs.examples" not in imported


def test_it_writes_what_it_is_given(tmp_path):
    dot = Image.new("L", (1, 1), 7)
    results = RunResults(
        scores={"mse": 0.5},
        metadata={"split": "test"},
        image_scores={"mse": [0.5]},
        sprites=[dot, dot],
        example_sheet=dot,
        sprite_stats={"images": 1},
        examples={"00-best-4.png": dot},
        best_sprites=dot,
    )

    RunDirectory(tmp_path).save_results(results)

    pictures = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png")}
    sprites = {"sprites/00.png", "sprites/01.png"}
    assert pictures == {"best.png", "examples.png", "examples/00-best-4.png", *sprites}
    stored = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    assert stored == {
        "census": {"images": 1},
        "evaluation": {"split": "test"},
        "metrics": {"mse": 0.5},
        "scores": {"mse": [0.5]},
    }


def test_examples_and_best_sprites_need_statistics(small_run):
    opened = open_run(small_run)
    collected = collect_results(opened.decomposer, opened.assembly, {})
    stats = SpriteStats(opened.decomposer.sprites.count)
    stats.images = 3

    counted = collect_results(opened.decomposer, opened.assembly, {}, stats)

    assert (collected.sprite_stats, collected.examples) == (None, {})
    assert counted.sprite_stats == {"images": 3, "usage": [0, 0]}
    assert [*counted.examples] == ["00-random-0.png", "01-random-1.png", "02-random-2.png"]
    assert counted.best_sprites is None  # no sprite was used

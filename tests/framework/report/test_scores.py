import json
import shutil

import pytest

from celstack.errors import CelstackError
from celstack.report.scores import (
    MAX_CLASSES,
    StoredSpriteStats,
    class_matrix,
    format_image_scores,
    read_scores,
    read_sprite_stats,
)

PUBLISHED = {"the paper": {"ari": 99.8}}


def test_scores_stand_above_published_ones(fake_run):
    scores = read_scores(fake_run(metrics={"ari": 0.5}, published=PUBLISHED))

    assert scores.heading == ["", "images", "ari (%)"]
    cells = [(row.cells, row.published) for row in scores.rows]
    assert cells == [
        (["this run", "64 of test", "50.0"], False),
        (["the paper", "", "99.8"], True),
    ]


def test_a_run_that_is_not_finished_has_no_scores(fake_run):
    folder = fake_run()
    (folder / "metrics.json").unlink()

    assert read_scores(folder) is None


def test_classes_are_in_the_order_of_their_sprites():
    stats = StoredSpriteStats(
        images=4,
        usage=[1, 2, 3],
        unit="pixels",
        classes=["background", "a", "b"],
        counts=[[8, 0, 0, 2], [0, 0, 5, 5], [1, 3, 0, 0]],
        names=["b", "a", None],
    )

    matrix = class_matrix(stats)

    assert matrix.columns == [None, 1, 0, 2]
    shares = {name: [cell.share for cell in cells] for name, cells in matrix.rows}
    assert shares == {
        "background": [0.8, 0.0, 0.0, 0.2],
        "a": [0.0, 0.5, 0.0, 0.5],
        "b": [0.25, 0.0, 0.75, 0.0],
    }
    matched = [[cell.matched for cell in cells] for _, cells in matrix.rows]
    assert matched == [[False] * 4, [False, True, False, False], [False, False, True, False]]


def test_of_very_many_classes_the_rarest_are_left_out():
    count = MAX_CLASSES + 5
    counts = [[0, number + 1] for number in range(count)]
    stats = StoredSpriteStats(9, [1], "images", [f"c{n}" for n in range(count)], counts, [None])

    matrix = class_matrix(stats)

    assert matrix.left_out == 5
    assert [name for name, _ in matrix.rows] == [f"c{n}" for n in range(5, count)]


def test_without_ground_truth_there_is_no_matrix():
    assert class_matrix(StoredSpriteStats(images=3, usage=[1, 2])) is None


def test_the_census_of_a_run_is_read(small_run):
    stats = read_sprite_stats(small_run)

    assert stats.images == 16
    assert len(stats.usage) == 2
    assert stats.classes[0] == "background"


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"odd": 1}', '{"usage": [1], "classes": ["a"], "counts": [[1]]}']
)
def test_a_damaged_census_is_told(tmp_path, text):
    (tmp_path / "census.json").write_text(text)

    with pytest.raises(CelstackError, match=r"census\.json: is damaged"):
        read_sprite_stats(tmp_path)


def test_the_scores_of_images_are_spelt(small_run, tmp_path):
    folder = shutil.copytree(small_run, tmp_path / "run")
    (folder / "scores.json").write_text(json.dumps({"ari": [0.5, None], "mse": [0.25, 0.5]}))

    assert format_image_scores(folder, ["ari"]) == {0: "ari 50.0%, mse 0.250", 1: "mse 0.500"}

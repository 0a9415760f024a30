from collections import Counter

import numpy as np
import pytest
import torch
from PIL import Image

from celstack.errors import CelstackError
from celstack.runs.directory import EXAMPLES
from celstack.runs.examples import (
    Example,
    choose_examples,
    example_file_names,
    find_stored,
    read_stored,
)

NAN = float("nan")


def numbers(examples, kind):
    return [example.number for example in examples if example.kind == kind]


def test_of_shares_more_is_better_and_of_errors_less():
    shares = choose_examples({"ari": [0.1, 0.9, 0.5, 0.4]}, ["ari"], 4)
    errors = choose_examples({"mse": [0.1, 0.9, 0.5, 0.4]}, [], 4)

    assert (numbers(shares, "best"), numbers(shares, "worst")) == ([1], [0])
    assert (numbers(errors, "best"), numbers(errors, "worst")) == ([0], [1])


def test_shares_count_first_and_errors_decide_between_equals():
    scores = {"mse": [0.1, 0.3, 0.2, 0.4], "ari": [0.5, 1.0, 1.0, 0.5]}

    chosen = choose_examples(scores, ["ari"], 4)

    assert (numbers(chosen, "best"), numbers(chosen, "worst")) == ([2], [3])


def test_the_best_and_the_worst_come_first_in_their_kind():
    chosen = choose_examples({"ari": [n / 99 for n in range(100)]}, ["ari"], 100)

    assert numbers(chosen, "best") == [99, 98, 97, 96, 95, 94, 93, 92]
    assert numbers(chosen, "worst") == [0, 1, 2, 3, 4, 5, 6, 7]


def test_thirty_two_images_are_chosen_none_twice():
    chosen = choose_examples({"ari": [0.5] * 100}, ["ari"], 100)

    assert Counter(e.kind for e in chosen) == {"best": 8, "worst": 8, "random": 16}
    assert len({e.number for e in chosen}) == 32
    assert chosen == choose_examples({"ari": [0.5] * 100}, ["ari"], 100)


def test_an_image_without_a_score_is_neither_best_nor_worst():
    chosen = choose_examples({"ari": [NAN, 0.2, 0.3, 0.4, 0.5]}, ["ari"], 5)

    assert 0 in numbers(chosen, "random")


def test_without_scores_all_are_random():
    assert {e.kind for e in choose_examples({}, [], 3)} == {"random"}
    assert len(choose_examples({}, [], 3)) == 3


def test_what_is_stored_is_found_in_its_order(tmp_path):
    examples = [Example("best", 7), Example("best", 2), Example("random", 100_000)]
    (tmp_path / EXAMPLES).mkdir()
    for name in [*example_file_names(examples), "notes.png", "a-b-c.png"]:
        Image.new("RGB", (3, 2), "red").save(tmp_path / EXAMPLES / name)

    assert list(find_stored(tmp_path)) == examples


@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_is_read_as_it_was_stored(tmp_path, channels):
    pixels = np.arange(2 * 3 * channels, dtype=np.uint8).reshape(2, 3, channels)
    Image.fromarray(pixels[..., 0] if channels == 1 else pixels).save(tmp_path / "a.png")

    image = read_stored(tmp_path / "a.png", (channels, 2, 3))

    assert torch.equal(image, torch.from_numpy(pixels).permute(2, 0, 1) / 255)


@pytest.mark.parametrize(
    ("content", "said"), [(b"no image", "cannot be read"), (None, "expected 5 x 4 pixels")]
)
def test_what_cannot_be_used_is_told(tmp_path, content, said):
    path = tmp_path / "a.png"
    path.write_bytes(content) if content else Image.new("RGB", (2, 2)).save(path)

    with pytest.raises(CelstackError, match=said):
        read_stored(path, (3, 4, 5))

"""What the buttons do, and what they say when they cannot."""

import json

import pytest
import torch
from PIL import Image

from celstack.export.scene_json import scene_from_json
from celstack.scene import EMPTY
from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.identity import Identity
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.projective import Projective
from celstack_kit.transforms.similarity import Similarity
from celstack_kit.transforms.tps import Tps


@pytest.fixture
def made(shapes):
    return shapes([Color(), Similarity()], background=[Color()])


@pytest.fixture
def editor(made, at_rest, edited, drive):
    """An editor of a green bar behind a red square."""
    return drive(edited(made, at_rest(made, [1, 0, EMPTY])))


def select(editor, layer):
    name = f"Object {layer + 1}:"
    editor.page.locator(".editor-objects button", has_text=name).click()
    editor.settle()


def listed(editor):
    return editor.page.locator(".editor-objects button").all_inner_texts()


def set_color(editor, name, value):
    editor.page.locator(f"input[data-do={name}]").fill(value)
    editor.settle()


def test_objects_are_listed_from_the_front(editor):
    assert listed(editor) == ["Object 2: sprite 0", "Object 1: sprite 1"]


def test_an_object_is_swapped_for_another_sprite(editor):
    select(editor, 1)

    editor.page.click("button[title='sprite 2']")
    editor.settle()

    assert editor.scene()["layers"][1]["sprite"] == 2
    assert editor.picture()[20, 20].argmax() == 2
    assert editor.page.get_attribute("button[title='sprite 2']", "aria-pressed") == "true"


def test_an_object_is_hidden_and_shown_again(editor):
    before = editor.picture()
    select(editor, 1)

    editor.do("hide")

    assert editor.scene()["layers"][1]["sprite"] is None
    assert editor.picture()[16, 16].argmax() == 1
    assert "Object 2: sprite 0 (hidden)" in listed(editor)
    editor.do("hide")
    assert torch.equal(editor.picture(), before)


def test_an_object_is_deleted(editor):
    select(editor, 1)

    editor.do("delete")

    assert editor.scene()["layers"][1]["sprite"] is None
    assert listed(editor) == ["Object 1: sprite 1"]
    assert editor.selected() is None


def test_an_object_is_added_in_front_and_in_the_middle(editor):
    editor.drag((8, 15), (8, 21))
    select(editor, 0)

    editor.do("add")

    assert editor.selected() == 2
    assert listed(editor)[0] == "Object 3: sprite 1"
    bar = editor.mask(2).view(32, 32)
    assert torch.equal(bar.any(1).nonzero().flatten(), torch.arange(13, 19))
    assert editor.picture()[16, 16].argmax() == 1


def test_there_are_no_more_objects_than_layers(editor):
    editor.do("add")
    editor.do("add")

    assert len(listed(editor)) == 3
    assert editor.said() == "All 3 layers of this model are in use."
    assert editor.page.is_visible("text=All 3 layers of this model are in use. >> nth=0")


def test_the_first_object_of_an_empty_scene_is_in_the_rest_pose(made, at_rest, edited, drive):
    editor = drive(edited(made, at_rest(made, [EMPTY] * 3)))

    editor.do("add")

    assert editor.scene()["layers"][0]["sprite"] == 0
    assert editor.mask(0).sum() == 144


@pytest.mark.parametrize(
    ("start", "steps", "front"),
    [
        (1, ["back"], 0),
        (0, ["front"], 0),
        (0, ["forward"], 0),
        (1, ["backward"], 0),
        (1, ["backward", "forward"], 1),
        (1, ["forward"], 1),
    ],
)
def test_objects_go_behind_and_in_front(start, steps, front, editor):
    select(editor, start)

    for step in steps:
        editor.do(step)

    assert listed(editor)[0].startswith(f"Object {front + 1}")
    seen = editor.picture()[16, 16].argmax().item()
    assert seen == {0: 1, 1: 0}[front]  # the bar is green, the square is red


def test_one_step_passes_one_object(made, at_rest, edited, drive):
    editor = drive(edited(made, at_rest(made, [0, 1, 2])))
    select(editor, 0)

    editor.do("forward")

    assert [line[7] for line in listed(editor)] == ["3", "1", "2"]
    editor.do("forward")
    assert [line[7] for line in listed(editor)] == ["1", "3", "2"]


@pytest.mark.parametrize("color", ["#2060e0", "#ffffff", "#000000"])
def test_an_object_is_recolored(color, editor):
    select(editor, 1)

    set_color(editor, "color", color)

    wanted = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    assert (editor.picture()[16, 16] - torch.tensor(wanted)).abs().max() <= 2
    assert (editor.picture()[16, 7].argmax()) == 1  # the other object is as it was


def test_the_background_is_changed_and_recolored(editor):
    editor.page.click("button[title='Background 1']")
    before = editor.picture()[2, 2]
    set_color(editor, "backdrop", "#402010")
    colored = editor.picture()
    editor.page.click("button[title='No background']")

    assert (before - round(0.75 * 255)).abs().max() <= 2
    assert (colored[2, 2] - torch.tensor([0x40, 0x20, 0x10])).abs().max() <= 2
    assert editor.picture()[2, 2].tolist() == [0, 0, 0]
    assert editor.scene()["background"] is None


def test_each_example_keeps_its_own_changes(made, scenes, edited, drive):
    editor = drive(edited(made, scenes(made, count=2)))
    first = editor.picture()
    editor.page.click("button[title='example 1']")
    second = editor.picture()
    editor.page.focus("[data-part=stage]")
    editor.press("n", "Delete")
    changed = editor.picture()

    editor.page.click("button[title='example 0']")

    assert torch.equal(editor.picture(), first)
    assert editor.page.get_attribute("[data-do=undo]", "aria-disabled") == "true"
    editor.page.click("button[title='example 1']")
    assert torch.equal(editor.picture(), changed)
    editor.do("reset")
    assert torch.equal(editor.picture(), second)


def test_who_is_faster_than_the_screen_acts_on_the_scene_that_is_open(editor):
    # Where no frame is painted, as in a tab that nobody looks at, nothing waits for one.
    moved = editor.page.evaluate(
        """() => {
            window.requestAnimationFrame = () => 1;
            const editor = window.celstack.editor;
            editor.stage.rendering = null;
            editor.open(0);
            editor.act("next");
            editor.act("larger");
            return editor.stage.rendering !== null;
        }"""
    )

    assert moved


def test_a_color_is_not_taken_from_the_hands_of_who_chooses_it(made, at_rest, edited, drive):
    with torch.no_grad():
        # Two shades, of which the brighter cannot follow to white.
        made.sprites.colour[0, 0, 10:16] = 0.3
    editor = drive(edited(made, at_rest(made, [1, 0, EMPTY])))
    select(editor, 1)

    set_color(editor, "color", "#ffffff")

    assert editor.page.input_value("input[data-do=color]") == "#ffffff"
    editor.page.focus("[data-part=stage]")
    editor.press("ArrowLeft")
    assert editor.page.input_value("input[data-do=color]") < "#ffffff"


def test_a_color_is_found_in_one_gesture_and_undone_at_once(editor):
    before = editor.picture()
    select(editor, 1)
    editor.page.locator("input[data-do=color]").evaluate(
        """(input) => ["#ff0000", "#00ff00", "#0000ff"].forEach((value) => {
            input.value = value;
            input.dispatchEvent(new Event("input", { bubbles: true }));
        })"""
    )
    assert editor.picture()[16, 16].argmax() == 2

    editor.do("undo")

    assert torch.equal(editor.picture(), before)


def test_the_original_is_shown_instead(editor):
    editor.do("compare")
    assert editor.page.is_visible("[data-part=original]")
    editor.do("compare")
    assert not editor.page.is_visible("[data-part=original]")


@pytest.mark.parametrize(
    "change", [lambda e: e.drag((12, 12), (14, 14)), lambda e: e.press("n", "ArrowRight")]
)
def test_who_changes_the_scene_sees_it_and_no_longer_the_original(change, editor):
    editor.page.focus("[data-part=stage]")
    editor.do("compare")

    change(editor)

    assert not editor.page.is_visible("[data-part=original]")
    assert editor.page.get_attribute("[data-do=compare]", "aria-pressed") == "false"


def test_what_is_saved_is_what_python_reads_and_renders(made, scenes, edited, drive, tmp_path):
    editor = drive(edited(made, scenes(made, count=1), ["a scene: ☃/1"]))
    editor.page.focus("[data-part=stage]")
    editor.press("n", "Shift+ArrowRight", "+", "]", "PageDown", "n", "h")
    editor.page.click("button[title='Background 1']")
    with editor.page.expect_download() as saved:
        editor.do("json")
    saved.value.save_as(tmp_path / "scene.json")
    with editor.page.expect_download() as pictured:
        editor.do("png")
    pictured.value.save_as(tmp_path / "scene.png")

    scene = scene_from_json((tmp_path / "scene.json").read_text(), made, "scene.json")

    with torch.no_grad():
        wanted = (made.render(scene).image[0].clamp(0, 1) * 255).round().permute(1, 2, 0)
    shown = torch.tensor(list(Image.open(tmp_path / "scene.png").convert("RGB").tobytes()))
    assert (shown.view(32, 32, 3) - wanted).abs().max() <= 2
    assert torch.equal(editor.picture(), shown.view(32, 32, 3))
    assert EMPTY in scene.sprite
    assert saved.value.suggested_filename == "a_scene_1.json"
    assert pictured.value.suggested_filename == "a_scene_1.png"


def test_a_scene_that_was_not_touched_is_saved_as_it_was(made, scenes, edited, drive, tmp_path):
    scene = scenes(made, count=1)
    data = edited(made, scene)
    editor = drive(data)
    with editor.page.expect_download() as saved:
        editor.do("json")

    saved.value.save_as(tmp_path / "scene.json")

    assert (
        json.loads((tmp_path / "scene.json").read_text())
        == data["data"]["examples"][0]["scene"]
    )


@pytest.mark.parametrize(
    ("transforms", "cannot"),
    [
        ([Position()], {"rotated", "recolored"}),
        ([Color(), Position()], {"rotated"}),
        ([Similarity()], {"recolored"}),
        ([Affine()], {"recolored"}),
        ([Projective()], {"recolored"}),
        ([Tps()], {"recolored"}),
        ([Similarity(), Position()], {"recolored"}),
        ([Identity()], {"moved", "resized", "rotated", "recolored"}),
        ([], {"moved", "resized", "rotated", "recolored"}),
    ],
)
def test_what_transforms_cannot_do_is_off_with_a_reason(
    transforms, cannot, shapes, at_rest, edited, drive
):
    made = shapes(transforms)
    editor = drive(edited(made, at_rest(made, [0, EMPTY, EMPTY])))
    select(editor, 0)
    controls = {
        "moved": "left", "resized": "larger", "rotated": "clockwise", "recolored": "color",
    }  # fmt: skip

    off = {
        what
        for what, name in controls.items()
        if editor.page.get_attribute(f"[data-do={name}]", "aria-disabled") == "true"
    }

    assert off == cannot
    reasons = editor.page.inner_text("[data-reason-for=selection]")
    assert {what for what in controls if f"cannot be {what}" in reasons} == cannot
    if "rotated" in cannot:
        before = editor.picture()
        editor.do("clockwise")
        assert editor.said().startswith("Objects of this model cannot be rotated")
        assert torch.equal(editor.picture(), before)

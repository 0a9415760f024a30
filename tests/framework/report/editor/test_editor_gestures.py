"""Objects are taken by pointers, fingers and keys, and the picture follows."""

import math

import pytest
import torch

from celstack.scene import EMPTY
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.similarity import Similarity


@pytest.fixture
def one(shapes, at_rest, edited):
    """An editor of one red square in the middle; it fills columns and rows 10 to 21."""
    made = shapes([Color(), Similarity()])
    return edited(made, at_rest(made, [0, EMPTY, EMPTY]))


@pytest.fixture
def two(shapes, at_rest, edited):
    """An editor of a blue corner and, behind it, a green bar."""
    made = shapes([Similarity()])
    return edited(made, at_rest(made, [1, 2, EMPTY]))


def test_a_click_selects_what_is_seen_there_and_no_box_around_it(two, drive):
    editor = drive(two)
    picked = []
    for pixel in [(12, 11), (20, 14), (20, 20), (19, 11), (13, 15)]:
        editor.click(*pixel)
        picked.append(editor.selected())

    # The corner has a notch, in which first the bar and then nothing is seen.
    assert picked == [1, 0, 1, None, 1]


@pytest.mark.parametrize("front", [0, 1])
def test_a_click_selects_what_is_in_front(front, shapes, at_rest, edited, drive):
    made = shapes([Similarity()])
    scene = at_rest(made, [1, 0, EMPTY])
    if front == 0:
        scene = scene.evolve(occlusion=scene.occlusion.mT)
    editor = drive(edited(made, scene))

    editor.click(16, 16)

    assert editor.selected() == front


def test_a_drag_moves_the_object_by_as_many_pixels(one, drive):
    editor = drive(one)
    before = editor.mask(0).view(32, 32)

    editor.drag((12, 12), (17, 9))

    after = editor.mask(0).view(32, 32)
    assert torch.equal(after, before.roll((-3, 5), dims=(0, 1)))
    red, grey = editor.picture()[10, 25].tolist(), editor.picture()[20, 11].tolist()
    assert red[0] > 200 and red[1] < 60
    assert grey[0] == grey[1] == grey[2]


def test_a_drag_that_begins_beside_objects_moves_nothing(one, drive):
    editor = drive(one)
    before = editor.picture()

    editor.drag((2, 2), (12, 12))

    assert torch.equal(editor.picture(), before)


def test_undo_restores_the_picture_and_redo_takes_it_away_again(one, drive):
    editor = drive(one)
    first = editor.picture()
    editor.drag((12, 12), (17, 9))
    moved = editor.picture()

    editor.do("undo")
    undone = editor.picture()
    editor.do("redo")

    assert torch.equal(undone, first)
    assert torch.equal(editor.picture(), moved)
    assert not torch.equal(first, moved)


def test_one_handle_resizes_about_the_middle(one, drive):
    editor = drive(one)
    editor.click(16, 16)

    editor.drag((21.5, 21.5), (26.8, 26.8))

    wide = editor.mask(0).view(32, 32).any(0).nonzero().flatten()
    assert (wide[0].item(), wide[-1].item()) == (5, 26)


def test_the_other_handle_turns(shapes, at_rest, edited, drive):
    made = shapes([Similarity()])
    editor = drive(edited(made, at_rest(made, [1, EMPTY, EMPTY])))
    before = editor.mask(0).view(32, 32)
    editor.click(16, 16)

    # The bar's upper right corner goes a quarter of the way round, clockwise.
    editor.drag((25.5, 12.5), (18.5, 25.5))

    after = editor.mask(0).view(32, 32)
    assert (after ^ before.T).sum() <= 4
    angle = editor.scene()["layers"][0]["layer_params"]["similarity"][1]
    assert angle == pytest.approx(math.pi / 2, abs=0.05)


def test_two_fingers_move_resize_and_turn(one, drive):
    editor = drive(one, has_touch=True, viewport={"width": 390, "height": 844})
    session = editor.page.context.new_cdp_session(editor.page)

    def touch(kind, *pixels):
        points = [editor.where(*pixel) for pixel in pixels]
        points = [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", (12, 16))
    touch("touchStart", (12, 16), (20, 16))
    touch("touchMove", (16, 10), (16, 26))
    touch("touchEnd")
    editor.settle()

    log_scale, angle, *_ = editor.scene()["layers"][0]["layer_params"]["similarity"]
    assert log_scale == pytest.approx(math.log(2), abs=0.05)
    assert angle == pytest.approx(math.pi / 2, abs=0.05)


def test_a_finger_drags_an_object_and_not_the_page(one, drive):
    editor = drive(one, has_touch=True, viewport={"width": 390, "height": 500})
    session = editor.page.context.new_cdp_session(editor.page)
    start, end = editor.where(14, 14), editor.where(14, 8)
    scrolled = editor.page.evaluate("scrollY")

    for kind, at in [("touchStart", start), ("touchMove", end), ("touchEnd", None)]:
        points = [{"x": at[0], "y": at[1]}] if at else []
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    editor.settle()

    down = editor.scene()["layers"][0]["layer_params"]["similarity"][3]
    assert down == pytest.approx(-6 / 16, abs=0.01)
    assert editor.page.evaluate("scrollY") == scrolled


@pytest.mark.parametrize(
    ("keys", "index", "change"),
    [
        (["ArrowRight"], 2, 1 / 16),
        (["ArrowLeft", "ArrowLeft"], 2, -2 / 16),
        (["ArrowDown"], 3, 1 / 16),
        (["Shift+ArrowUp"], 3, -8 / 16),
        (["+"], 0, math.log(1.06)),
        (["-"], 0, -math.log(1.06)),
        (["]"], 1, math.pi / 36),
        (["["], 1, -math.pi / 36),
    ],
)
def test_keys_move_resize_and_turn(keys, index, change, one, drive):
    editor = drive(one)
    editor.page.focus("[data-part=stage]")

    editor.press("n", *keys)

    found = editor.scene()["layers"][0]["layer_params"]["similarity"]
    wanted = [0.0] * 4
    wanted[index] = change
    assert found == pytest.approx(wanted, abs=1e-3)


def test_a_key_held_down_is_undone_at_once(one, drive):
    editor = drive(one)
    editor.page.focus("[data-part=stage]")
    first = editor.picture()
    editor.press("n")

    for _ in range(5):
        editor.page.keyboard.down("ArrowRight")
    editor.page.keyboard.up("ArrowRight")
    moved = editor.picture()
    editor.press("Control+z")

    assert not torch.equal(moved, first)
    assert torch.equal(editor.picture(), first)
    editor.press("Control+Shift+Z")
    assert torch.equal(editor.picture(), moved)


def test_keys_do_nothing_to_a_page_without_a_selection(one, drive):
    editor = drive(one, viewport={"width": 600, "height": 300})
    editor.page.focus("[data-do=png]")
    before = editor.page.evaluate("scrollY")

    editor.press("ArrowDown")
    editor.page.wait_for_function(f"scrollY > {before}")

    assert editor.scene()["layers"][0]["layer_params"]["similarity"] == [0, 0, 0, 0]


def test_a_click_is_read_out_as_one_and_a_drag_as_what_it_does(one, drive):
    editor = drive(one)
    editor.click(16, 16)
    heard = [editor.said()]
    for start, end in [((12, 16), (13, 16)), ((22, 21), (23, 22)), ((23, 9), (25, 12))]:
        editor.drag(start, end)
        heard.append(editor.said())

    assert heard == [
        "Object 1 is selected",
        "Object 1 moved",
        "Object 1 is resized",
        "Object 1 rotated",
    ]


def test_a_drag_of_what_cannot_be_moved_changes_nothing(shapes, at_rest, edited, drive):
    made = shapes([Color()])
    editor = drive(edited(made, at_rest(made, [0, EMPTY, EMPTY])))

    editor.drag((12, 12), (17, 9))

    assert editor.said() == "Object 1 is selected"
    assert editor.page.get_attribute("[data-do=undo]", "aria-disabled") == "true"


def test_what_is_done_is_read_out(one, drive):
    editor = drive(one)
    editor.page.focus("[data-part=stage]")
    heard = []
    for key in ["n", "ArrowRight", "]", "h", "ArrowRight", "h", "Delete", "Control+z"]:
        editor.press(key)
        heard.append(editor.said())

    assert heard == [
        "Object 1 is selected",
        "Object 1 moved, at 11, 10",
        "Object 1 rotated right",
        "Object 1 is hidden",
        "This object is hidden.",
        "Object 1 is shown",
        "Object 1 is deleted",
        "Undone",
    ]


def test_an_object_cannot_be_larger_than_its_transforms_let_it(shapes, at_rest, edited, drive):
    made = shapes([Position()])
    editor = drive(edited(made, at_rest(made, [0, EMPTY, EMPTY])))
    editor.page.focus("[data-part=stage]")
    editor.press("n")

    editor.press(*["+"] * 13)

    assert editor.said() == "Object 1 has reached its limit"
    assert editor.mask(0).view(32, 32).any(0).sum() == 12

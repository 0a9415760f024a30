"""What goes into a page: small, exact enough, and nothing that a name could smuggle in."""

import json
import zlib
from base64 import b64decode

import numpy as np
import pytest
import torch

from celstack import BrowserCode, Warp
from celstack.report.editor import editor_assets, editor_data
from celstack.report.packed_images import MIN_STEP, pack_images
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"quoted\" 'twice' & more",
    "🪙 é ☃ \u202e",
    "long" * 500,
    "{{ 7 * 7 }} ${7} `x`",
    "",
]


class Mirror(Warp):
    """A transform as somebody else writes it, who has never heard of browsers."""

    name = "mirror<b>"
    num_params = 1

    def pull(self, points, params):
        return points * torch.cat([1 + params, torch.ones_like(params)], dim=1)[:, None]


def unpack(packed):
    planes = np.frombuffer(zlib.decompress(b64decode(packed["data"])), np.uint8)
    high, low = planes.reshape(2, *packed["shape"]).astype(np.uint16)
    levels = np.cumsum(high << 8 | low, axis=3, dtype=np.uint16).astype(float)
    sides = [np.reshape(packed[key], (*packed["shape"][:2], 1, 1)) for key in ("step", "low")]
    return torch.from_numpy(levels * sides[0] + sides[1])


@pytest.mark.parametrize(("reach", "step"), [(1.0, MIN_STEP), (30.0, MIN_STEP), (655.35, 0.01)])
def test_images_come_back_within_half_a_step(reach, step):
    torch.manual_seed(0)
    images = reach * torch.rand(2, 4, 5, 7)

    back = unpack(pack_images(images))

    assert (back - images).abs().max() <= 0.51 * step


def test_a_plane_of_one_value_is_exact():
    images = torch.full((1, 2, 3, 3), 0.3)

    assert (unpack(pack_images(images)) - images).abs().max() < 1e-7


def test_forty_noisy_sprites_of_128_pixels_take_six_megabytes_at_most():
    torch.manual_seed(0)

    assert len(json.dumps(pack_images(torch.rand(40, 4, 128, 128)))) < 6e6


def test_there_is_nothing_to_edit_without_scenes(model, scenes):
    made = model(layer=[Position()])
    scene = scenes(made)[:0]

    assert editor_data(made, scene, torch.zeros(0, 3, 20, 24), [], []) is None


def test_a_page_without_scenes_says_so(open_page):
    page = open_page(None)

    assert "No examples to edit" in page.inner_text("#editor")


def test_scenes_and_code_are_each_there_once(model, edited):
    made = model(layer=[Color(), Position(), Color()], background=[Color()])

    found = edited(made)

    assert len(found["code"]) == 2
    keys = [transform["key"] for transform in found["data"]["chains"]["layer"]]
    assert keys == ["color", "position", "color-2"]
    assert found["data"]["examples"][0]["scene"]["format"] == "celstack scene"


def test_a_transform_without_code_is_named_and_the_page_is_shown(model, edited, open_page):
    page = open_page(edited(model(layer=[Color(), Mirror()])))

    said = page.inner_text("#editor")
    assert "the transform mirror<b> has no browser code" in " ".join(said.split())
    assert page.locator("#editor button").count() == 0


def test_code_that_does_not_run_is_told_in_the_page(model, edited, open_page, monkeypatch):
    monkeypatch.setattr(Position, "browser", lambda self: BrowserCode("() => undefined.x"))

    page = open_page(edited(model(layer=[Position()])))

    said = page.inner_text("[data-part=trouble]")
    assert said.startswith("The editor does not work in this browser: ")
    assert not page.is_visible("[data-part=body]")


def test_code_cannot_end_the_script_that_it_stands_in(model, edited, open_page, monkeypatch):
    source = '() => ({ pull() {}, odd: "</script><!-- <script>" })'
    monkeypatch.setattr(Position, "browser", lambda self: BrowserCode(source))

    page = open_page(edited(model(layer=[Position()])))

    odd = page.evaluate("celstack.editor.model.chains.layer[0].part.odd")
    assert odd == "</script><!-- <script>"


def test_hostile_names_are_shown_as_text(model, scenes, edited, open_page):
    made = model(layer=[Position()])
    scene = scenes(made, count=len(HOSTILE))

    page = open_page(edited(made, scene, HOSTILE))

    labels = page.locator("[data-part=examples] .editor-label").all_text_contents()
    assert labels == [*HOSTILE[:-1], "Example 7"]
    assert page.locator("[data-part=examples] button *").count() == 2 * len(HOSTILE)
    for number in range(len(HOSTILE)):
        page.locator("[data-part=examples] button").nth(number).click()
        said = page.text_content("[data-part=status]")
        assert said == f"{labels[number]}, 3 objects"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_sprites_have_their_names_here_too_whatever_these_are(model, edited, drive):
    made = model(layer=[Position()])
    names = ["a cup", '<b>"', "long " * 100]

    editor = drive(edited(made, sprite_names=names), viewport={"width": 390, "height": 800})
    editor.page.click("[data-part=objects] button >> nth=0")
    for number, name in enumerate(names):
        editor.page.locator("[data-part=sprites] button").nth(number).click()
        editor.settle()
        listed = editor.page.locator("[data-part=objects] li").all_text_contents()
        layer = editor.selected() + 1
        assert f"Object {layer}: {name}" in listed
        assert editor.page.text_content("[data-part=status]") == f"Object {layer} is now {name}"
    assert editor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_editor_asks_nobody_for_anything():
    assets = editor_assets()

    for text in (assets.css, assets.js):
        addresses = [word for word in text.split() if "//" in word and "http" in word]
        assert [a for a in addresses if "www.w3.org" not in a] == []
        assert "url(" not in text
        assert "</" not in text


def test_everything_to_press_has_a_name_and_can_be_reached_and_shows_it(
    model, edited, open_page
):
    page = open_page(edited(model(layer=[Color(), Position()], background=[Color()])))

    nameless = page.evaluate(
        """() => [...document.querySelectorAll("#editor button, #editor input")].filter((one) =>
            !(one.getAttribute("aria-label") || one.textContent.trim()
              || one.labels?.[0]?.textContent.trim())).length"""
    )
    assert nameless == 0
    reached, unseen = set(), []
    for _ in range(60):
        page.keyboard.press("Tab")
        name, ring = page.evaluate(
            """() => {
                const { dataset } = document.activeElement;
                const { outlineStyle } = getComputedStyle(document.activeElement);
                return [dataset.do || dataset.part || "", outlineStyle];
            }"""
        )
        reached.add(name)
        unseen += [name] if name and ring != "solid" else []
    assert unseen == []
    buttons = page.locator("#editor button[data-do]").evaluate_all(
        "(all) => all.map((one) => one.dataset.do)"
    )
    assert {*buttons, "stage"} <= reached

"""Whole pages in a browser: they complain of nothing, fit, and can be used."""

import json

import pytest
import tomli_w
import torch
from PIL import Image, ImageChops

from celstack.evaluation.visualize import to_pil_image
from celstack.export.scene_json import read_scene
from celstack.report.compare_page import make_comparison
from celstack.report.run_page import make_page
from celstack.runs.finished import read_resolved
from celstack.runs.open import open_run

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> 🦆 " + "very" * 200
WINDOWS = [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark")]


@pytest.fixture
def visit(browser, tmp_path):
    """Open a page from disk; what it complains of, or asks the network for, fails the test."""
    complaints, contexts = [], []

    def open_page(text, width=1400, scheme="light"):
        size = {"width": width, "height": 900}
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        asked = []
        file = tmp_path / "a page.html"
        file.write_text(text, encoding="utf-8")
        page.goto(file.as_uri())
        complaints.extend(url for url in asked if url.startswith("http"))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def hostile_run(copied_run):
    """A run in which everything that can be named has a name that wants to be obeyed."""
    recipe = read_resolved(copied_run)
    recipe |= {"description": HOSTILE, "published": {HOSTILE: {"ari": 50.0}}}
    (copied_run / "resolved.toml").write_text(tomli_w.dumps(recipe), encoding="utf-8")
    census = json.loads((copied_run / "census.json").read_text(encoding="utf-8"))
    census["classes"][1] = census["names"][0] = HOSTILE
    (copied_run / "census.json").write_text(json.dumps(census), encoding="utf-8")
    return copied_run


def report_of(folder):
    run = open_run(folder)
    return make_page(folder, run.assembly, run.decomposer).text


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_a_report_fits_whatever_things_are_called(width, scheme, hostile_run, visit):
    page = visit(report_of(hostile_run), width, scheme)
    page.wait_for_function("window.celstack.editor")

    assert fits(page)
    assert page.inner_text(".lead") == HOSTILE
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, dark[4:-1].split(","))) < 80) == (scheme == "dark")


@pytest.mark.parametrize("width", [1400, 390])
def test_a_comparison_fits_and_cuts_no_name_off(width, hostile_run, visit):
    page = visit(make_comparison([hostile_run]), width)

    assert fits(page)
    cut = page.locator(".scores th").evaluate_all(
        "(all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    )
    assert cut == 0


def test_the_editor_of_a_report_saves_what_was_edited(small_run, visit, tmp_path):
    page = visit(report_of(small_run))
    page.wait_for_function("window.celstack.editor")
    saved = {}
    if not page.locator("[data-part=objects] button").count():
        page.click("[data-do=add]")
    page.click("[data-part=objects] button >> nth=0")
    page.click("[data-part=sprites] button >> nth=1")
    for kind in ("png", "json"):
        with page.expect_download() as waiting:
            page.click(f"[data-do={kind}]")
        saved[kind] = tmp_path / f"saved.{kind}"
        waiting.value.save_as(saved[kind])

    run = open_run(small_run)
    scene = read_scene(saved["json"], run.decomposer)
    with torch.no_grad():
        again = to_pil_image(run.decomposer.render(scene).image[0])
    with Image.open(saved["png"]) as picture:
        apart = ImageChops.difference(picture.convert("RGB"), again)
    assert scene.sprite.tolist() == [[1]]
    assert max(most for _, most in apart.getextrema()) <= 2

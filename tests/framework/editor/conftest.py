"""What tests of the scene editor share: a browser, and pages with an editor in them."""

import os
import shutil
from pathlib import Path

import jinja2
import pytest
import torch

import celstack.report
from celstack.model import Decomposer
from celstack.report.editor import editor_assets, editor_data
from celstack.scene import Scene
from celstack_kit.compositors.occlusion import Occlusion
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.greedy import Greedy

OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>An editor</title>
<style>{{ assets.css|safe }}</style>
{% include "editor.html" %}
<script>{{ assets.js|safe }}</script>
"""


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window: one for all tests."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        reason = "there is no chromium here (apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=OPTIONS)
        yield running
        running.close()


def spell_page(editor):
    """Put an editor into a page, as a report does."""
    folder = Path(celstack.report.__file__).parent
    loader = jinja2.FileSystemLoader(folder)
    environment = jinja2.Environment(loader=loader, autoescape=True)
    return environment.from_string(PAGE).render(editor=editor, assets=editor_assets())


@pytest.fixture
def open_page(browser, tmp_path):
    """Open a page with an editor from disk; what its console complains of fails the test."""
    complaints, contexts = [], []

    def listen(message):
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def open_editor(editor, **options):
        context = browser.new_context(accept_downloads=True, **options)
        contexts.append(context)
        context.set_default_timeout(10_000)
        context.route("http*://**", lambda route: complaints.append(route.request.url))
        page = context.new_page()
        page.on("console", listen)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        file = tmp_path / "page.html"
        file.write_text(spell_page(editor), encoding="utf-8")
        page.goto(file.as_uri())
        if editor is not None and not editor["missing"]:
            page.wait_for_function(
                "window.celstack.editor || document.querySelector"
                "('[data-part=trouble]:not([hidden])')"
            )
        return page

    yield open_editor
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def model():
    """Make a small model that is as untidy as a learned one."""

    def make(
        sprite=(), layer=(), background=(), *, channels=3, canvas=(20, 24), size=(9, 7),
        layers=3, backgrounds=2, back_size=None,
    ):  # fmt: skip
        torch.manual_seed(0)
        made = Decomposer(
            sprites=Pixels(count=3, size=size, mask_sigma=3, jitter=0.3),
            backgrounds=Pixels(count=backgrounds, size=back_size, start="sample", jitter=0.1)
            if backgrounds
            else None,
            sprite_transforms=list(sprite),
            layer_transforms=list(layer),
            background_transforms=list(background),
            compositor=Occlusion(layers=layers),
            selector=Greedy(),
            predictor=Network(encoder=Strided(width=2, features=4), hidden=4),
        )
        made.prepare(torch.rand(8, channels, *canvas))
        return made.eval()

    return make


@pytest.fixture
def scenes():
    """Draw scenes of a model at random, with layers that hide each other anyhow."""

    def draw(model, count=2, spread=0.3, seed=1):
        torch.manual_seed(seed)
        outline = model.outline()
        layers = outline.layers
        hides = torch.rand(count, layers, layers).round().tril(-1)
        occlusion = hides + (1 - hides.mT).triu(1)
        return Scene(
            sprite=torch.randint(0, outline.sprites, (count, layers)),
            sprite_params=spread * torch.randn(count, layers, outline.sprite_params),
            layer_params=spread * torch.randn(count, layers, outline.layer_params),
            occlusion=occlusion,
            background=torch.randint(0, outline.backgrounds, (count,))
            if outline.backgrounds
            else None,
            background_params=spread * torch.randn(count, outline.background_params)
            if outline.backgrounds
            else None,
        )

    return draw


@pytest.fixture
def edited(model, scenes):
    """Collect what an editor needs for random scenes, or given ones, of a model."""

    def collect(made, scene=None, names=None):
        scene = scenes(made) if scene is None else scene
        with torch.no_grad():
            originals = made.render(scene).image.clamp(0, 1)
        names = names or [f"example {number}" for number in range(len(scene))]
        return editor_data(made, scene, originals, names)

    return collect

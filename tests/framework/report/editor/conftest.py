"""What tests of the scene editor share: pages with an editor in them."""

from pathlib import Path

import jinja2
import pytest
import torch

import celstack.report
from celstack.model.decomposer import Decomposer
from celstack.report.editor import editor_assets, editor_data
from celstack.scene import Scene
from celstack_kit.compositors.occlusion import Occlusion
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.greedy import Greedy

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>An editor</title>
<style>{{ assets.css|safe }}</style>
{% include "editor.html" %}
<script>{{ assets.js|safe }}</script>
"""


def spell_page(editor):
    """Put an editor into a page, as a report does."""
    folder = Path(celstack.report.__file__).parent / "assets"
    loader = jinja2.FileSystemLoader(folder)
    environment = jinja2.Environment(loader=loader, autoescape=True)
    return environment.from_string(PAGE).render(editor=editor, assets=editor_assets())


@pytest.fixture(scope="session")
def window(browser):
    """One page for all tests that want nothing special; a new one takes a second."""
    return browser.new_context(accept_downloads=True).new_page()


@pytest.fixture
def open_page(browser, window, tmp_path):
    """Open a page with an editor from disk; what its console complains of fails the test."""
    complaints, opened = [], []

    def listen(message):
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    listeners = {
        "console": listen,
        "pageerror": lambda error: complaints.append(str(error)),
        "request": lambda request: complaints.extend(
            [request.url] if request.url.startswith(("http:", "https:")) else []
        ),
    }

    def open_editor(editor, **options):
        page = browser.new_context(**options).new_page() if options else window
        opened.append(page)
        page.set_default_timeout(10_000)
        for event, listener in listeners.items():
            page.on(event, listener)
        file = tmp_path / "page.html"
        file.write_text(spell_page(editor), encoding="utf-8")
        page.goto(file.as_uri())
        if editor is not None and not editor["missing"]:
            told = "document.querySelector('[data-part=trouble]:not([hidden])')"
            page.wait_for_function(f"window.celstack.editor || {told}")
        return page

    yield open_editor
    for page in opened:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        if page is not window:
            page.context.close()
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

    def collect(made, scene=None, names=None, sprite_names=None):
        scene = scenes(made) if scene is None else scene
        with torch.no_grad():
            originals = made.render(scene).image.clamp(0, 1)
        names = names or [f"example {number}" for number in range(len(scene))]
        sprites = sprite_names or [f"sprite {n}" for n in range(made.sprites.count)]
        return editor_data(made, scene, originals, names, sprites)

    return collect


class Driver:
    """Somebody who uses an editor: looks at its picture, and points at pixels."""

    def __init__(self, page):
        self.page = page

    def settle(self):
        """Wait until what was done is painted."""
        self.page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def picture(self):
        """Return the pixels that the canvas shows."""
        self.settle()
        pixels = self.page.evaluate(
            """() => {
                const { canvas } = celstack.editor.stage;
                const { width, height } = canvas;
                const copy = Object.assign(document.createElement("canvas"), { width, height });
                const context = copy.getContext("2d");
                context.drawImage(canvas, 0, 0);
                const { data } = context.getImageData(0, 0, width, height);
                return [height, width, Array.from(data)];
            }"""
        )
        height, width, data = pixels
        return torch.tensor(data).view(height, width, 4)[..., :3]

    def mask(self, layer):
        """Return where a layer is, hidden or not."""
        self.settle()
        alpha = self.page.evaluate(
            "(layer) => Array.from(celstack.editor.stage.rendering.alpha[layer] || [])", layer
        )
        return torch.tensor(alpha) > 0.5 if alpha else None

    def scene(self):
        """Return the scene as it is now."""
        return self.page.evaluate("celstack.editor.session.scene")

    def selected(self):
        return self.page.evaluate("celstack.editor.session.selected")

    def said(self):
        """Return what a screen reader would read out."""
        return self.page.inner_text("[data-part=status]")

    def where(self, column, row):
        """Return where in the window the middle of a pixel is."""
        canvas = self.page.locator("[data-part=canvas]")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        shown = self.page.evaluate(
            "[celstack.editor.model.width, celstack.editor.model.height]"
        )
        return (
            box["x"] + (column + 0.5) * box["width"] / shown[0],
            box["y"] + (row + 0.5) * box["height"] / shown[1],
        )

    def click(self, column, row):
        self.page.mouse.click(*self.where(column, row))
        self.settle()

    def drag(self, start, end):
        self.page.mouse.move(*self.where(*start))
        self.page.mouse.down()
        self.page.mouse.move(*self.where(*end), steps=3)
        self.page.mouse.up()
        self.settle()

    def do(self, name):
        """Press a button, be it off."""
        self.page.click(f"button[data-do={name}]", force=True)
        self.settle()

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()


@pytest.fixture
def drive(open_page):
    """Open an editor and take the wheel."""
    return lambda editor, **options: Driver(open_page(editor, **options))


@pytest.fixture
def shapes(model):
    """A model of three crisp sprites: red square, green bar, blue corner; two backgrounds."""

    def make(layer, sprite=(), background=(), layers=3):
        made = model(
            sprite=sprite, layer=layer, background=background, canvas=(32, 32), size=(32, 32),
            layers=layers,
        )  # fmt: skip
        with torch.no_grad():
            made.sprites.colour.fill_(0.1)
            made.sprites.mask.zero_()
            for number, (rows, columns) in enumerate(
                [(slice(10, 22), slice(10, 22)), (slice(13, 19), slice(6, 26)),
                 (slice(10, 22), slice(10, 16))]
            ):  # fmt: skip
                made.sprites.colour[number, number] = 0.9
                made.sprites.mask[number, 0, rows, columns] = 1.0
            made.sprites.mask[2, 0, 16:22, 10:22] = 1.0
            made.backgrounds.colour[0], made.backgrounds.colour[1] = 0.5, 0.75
        return made

    return make


@pytest.fixture
def at_rest():
    """The scene in which layer n shows sprite n as it is, later layers in front."""

    def make(made, sprites):
        outline = made.outline()
        layers = outline.layers
        return Scene(
            sprite=torch.tensor([sprites]),
            sprite_params=torch.zeros(1, layers, outline.sprite_params),
            layer_params=torch.zeros(1, layers, outline.layer_params),
            occlusion=torch.ones(layers, layers).tril(-1)[None],
            background=torch.tensor([0]),
            background_params=torch.zeros(1, outline.background_params),
        )

    return make

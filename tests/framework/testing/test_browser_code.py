"""The JavaScript of a transform is run, where node or a browser is, and compared."""

import shutil

import pytest

from celstack import BrowserCode
from celstack.testing import check_transform, javascript
from celstack.testing.parts import PlainTransform, PlainWarp
from celstack_kit import Color, Similarity

PIXELS = """(options, celstack) => ({
  pixels(image, params) {
    const colors = (image.depth - 1) * image.height * image.width;
    const data = image.data.map((value, at) => at < colors ? value + params[0] : value);
    return { ...image, data };
  },
})"""
PULL = """() => ({
  pull(points, params) {
    for (let at = 0; at < points.length; at++) points[at] -= params[at % 2];
  },
  follow: (params, m) => [params[0] - m[2], params[1] - m[5]],
  matrix: (params) => [1, 0, -params[0], 0, 1, -params[1]],
})"""


@pytest.fixture(params=["node", "chromium"])
def program(request, monkeypatch):
    """Let the code be run by this program alone."""
    found = shutil.which(request.param)
    if found is None:
        pytest.skip(f"there is no {request.param}")
    monkeypatch.setattr("celstack.testing.browser_code.find_javascript", lambda: found)


def brighten(source, **options):
    class Brighten(PlainTransform):
        def browser(self):
            return BrowserCode(source, options)

    return Brighten()


def shift(source):
    class Shift(PlainWarp):
        def browser(self):
            return BrowserCode(source)

    return Shift()


def test_code_that_computes_the_same_is_accepted(program):
    check_transform(brighten(PIXELS), channels=[3])
    check_transform(shift(PULL), channels=[1])


def test_the_kit_is_accepted_by_a_browser_too(program):
    check_transform(Color(), channels=[1])
    check_transform(Similarity(), channels=[1])


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")


@needs_node
@pytest.mark.parametrize(
    ("source", "law"),
    [
        (PIXELS.replace("+ params[0]", "- params[0]"), "changes pixels as forward does"),
        (PIXELS.replace("at < colors", "true"), "changes pixels as forward does"),
        (PIXELS.replace("return {", "image.data[0] = 7; return {"), "as it is"),
        (PIXELS.replace("...image,", "...image, depth: 1,"), "keeps shapes"),
        ("() => ({})", r"has pixels\(image, params\)"),
        ("() => ({ pixels }", "the code of browser runs, but: SyntaxError"),
        ("() => { throw new Error('no') }", "the code of browser runs, but: Error: no"),
        (
            PIXELS.replace("\n})", "\n recolour: (from, to) => [from[0] - to[0]],\n})"),
            "recolour of browser",
        ),
    ],
)
def test_code_of_pixels_that_computes_otherwise_is_refused(source, law):
    with pytest.raises(AssertionError, match=law):
        check_transform(brighten(source), channels=[1])


@needs_node
@pytest.mark.parametrize(
    ("source", "law"),
    [
        (PULL.replace("-= params[at % 2]", "+= params[at % 2]"), "maps points as pull does"),
        (PULL.replace("params[0] - m[2]", "-params[0]"), "keeps parameters if the matrix is"),
        (PULL.replace("-params[0],", "params[0],"), "matrix of browser is that of the warp"),
        (PULL.replace("pull(", "push("), r"has pull\(points, params\)"),
    ],
)
def test_code_of_a_warp_that_computes_otherwise_is_refused(source, law):
    with pytest.raises(AssertionError, match=law):
        check_transform(shift(source), channels=[1])


def test_without_node_and_browser_nothing_is_run(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)

    check_transform(brighten("() => ({})"), channels=[1])


@needs_node
def test_code_that_does_not_end_is_refused(monkeypatch):
    monkeypatch.setattr(javascript, "TIMEOUT_SECONDS", 1)

    with pytest.raises(AssertionError, match="does not end within 1 seconds"):
        check_transform(brighten("() => { for (;;) {} }"), channels=[1])


@needs_node
def test_numbers_that_json_does_not_have_differ_from_all_numbers():
    source = PIXELS.replace("value + params[0]", "NaN")

    with pytest.raises(AssertionError, match="changes pixels as forward does"):
        check_transform(brighten(source), channels=[1])

"""`celstack decompose`, `render` and `sprites` as a newcomer meets them."""

import errno
import io
import json
import os
import subprocess
import sys
import zipfile
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

import celstack
from celstack import Decomposer, progress
from celstack.data.images import find_images
from celstack.export import decompose as decompose_module
from celstack.recipe.build import assemble
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve
from celstack.runs.directory import RunDirectory
from celstack.training.loop import run as train
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position

LAYERED = """\
dataset = { use = "tetrominoes", count = 32, test_count = 8, per_image = 3, ground = 0.4 }
sprites = { use = "pixels", count = 3, size = [12, 12], jitter = 0.3 }
backgrounds = { use = "pixels", count = 1, start = "mean" }
compositor = { use = "occlusion", layers = 4 }
selector = { use = "greedy", empty_cost = 0.0001 }
predictor = { use = "network", encoder = "strided" }
transforms.layer = ["color", "position"]
transforms.background = ["color"]
stages = [{ steps = 2 }]
metrics = ["mse"]
evaluation = { images = 8, batch_size = 4 }
"""


@pytest.fixture(scope="session")
def layered_run(tmp_path_factory, catalog):
    """The folder of a run with a background and four layers that hide one another."""
    base = tmp_path_factory.mktemp("layered")
    (base / "layered.toml").write_text(LAYERED, encoding="utf-8")
    resolved = resolve(read_recipe(str(base / "layered.toml")), catalog)
    directory = RunDirectory.create(base, "layered", seed=0)
    directory.save_recipe(resolved)
    train(assemble(resolved, catalog), directory)
    return directory.folder


@pytest.fixture
def photos(tmp_path):
    """A folder with six images of many kinds, and three files that are none."""
    chance = np.random.default_rng(0)
    folder = tmp_path / "photos"
    (folder / "sub").mkdir(parents=True)
    pixels = chance.integers(0, 256, (40, 50, 4), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / "clear.png")
    Image.fromarray(pixels[..., :3]).quantize(16).save(folder / "palette.png")
    Image.fromarray(pixels[..., 0].astype(np.uint16) * 257).save(folder / "deep.png")
    Image.fromarray(pixels[..., :3]).resize((700, 900)).save(folder / "large.jpg")
    Image.new("RGB", (1, 1), "red").save(folder / "sub" / "one.png")
    Image.fromarray(pixels[..., 1]).save(folder / "sub" / "palette.png")
    (folder / "notes.txt").write_text("hello")
    (folder / "empty.png").touch()
    whole = (folder / "large.jpg").read_bytes()
    (folder / "broken.jpg").write_bytes(whole[: len(whole) // 2])
    return folder


@pytest.fixture
def taken_apart(command, layered_run, photos, tmp_path):
    """The folder with what became of the images."""
    out = tmp_path / "out"
    answer = command("celstack", "decompose", str(layered_run), str(photos), "--out", str(out))
    assert answer.code == 0, answer.complaint
    return out


NAMES = {"clear", "palette", "deep", "large", "sub/one", "sub/palette"}


def complaint(answer):
    assert answer.code == 2
    (line,) = answer.complaint.splitlines()
    return line.removeprefix("celstack: ")


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image).astype(int)


def files_below(folder):
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


# Decompose.


def test_it_says_what_it_did_and_how_many_files_were_left_out(
    command, layered_run, photos, tmp_path
):
    out = tmp_path / "out"

    answer = command("celstack", "decompose", str(layered_run), str(photos), "--out", str(out))

    assert answer.said == f"6 images written to {out}\nOverview: {out / 'overview.png'}\n"
    assert answer.complaint == "celstack: warning: skipped 3 files: not an image, or damaged\n"


def test_every_image_has_a_folder_with_all_files_and_there_is_nothing_else(taken_apart):
    each = [
        "background.png",
        "classes.png",
        "input.png",
        "instances.png",
        *(f"layer-{number}.png" for number in range(4)),
        "layers.ora",
        "reconstruction.png",
        "scene.json",
    ]

    expected = [f"{name}/{file}" for name in NAMES for file in each]
    assert files_below(taken_apart) == sorted([*expected, "overview.png"])


def test_pictures_have_the_size_of_the_canvas_and_their_modes(taken_apart):
    for name in NAMES:
        for file, mode in {
            "input.png": "RGB",
            "reconstruction.png": "RGB",
            "background.png": "RGB",
            "layer-3.png": "RGBA",
            "instances.png": "L",
            "classes.png": "L",
        }.items():
            with Image.open(taken_apart / name / file) as image:
                assert (image.size, image.mode) == ((35, 35), mode), file


def test_the_maps_say_layer_and_sprite_each_counted_from_one(taken_apart):
    for name in NAMES:
        instances = pixels(taken_apart / name / "instances.png")
        classes = pixels(taken_apart / name / "classes.png")
        layers = json.loads((taken_apart / name / "scene.json").read_text())["layers"]
        sprites = [0] + [0 if x["sprite"] is None else x["sprite"] + 1 for x in layers]
        assert (np.array(sprites)[instances] == classes).all()


def test_the_layers_of_openraster_flatten_to_the_reconstruction(taken_apart):
    for name in NAMES:
        with zipfile.ZipFile(taken_apart / name / "layers.ora") as archive:
            canvas = Image.new("RGBA", (35, 35))
            stack = ElementTree.fromstring(archive.read("stack.xml")).find("stack")
            for layer in reversed(stack):
                with Image.open(io.BytesIO(archive.read(layer.get("src")))) as picture:
                    canvas.alpha_composite(picture)
        wanted = pixels(taken_apart / name / "reconstruction.png")
        assert np.abs(np.asarray(canvas.convert("RGB")).astype(int) - wanted).max() <= 2


def test_the_overview_has_a_column_for_each_image(taken_apart):
    with Image.open(taken_apart / "overview.png") as image:
        # Input, reconstruction, instances, four layers; enlarged three times.
        assert image.size == (3 * (6 * 36 + 1), 3 * (7 * 36 + 1))


def test_one_image_alone(command, small_run, photos, tmp_path):
    answer = command(
        "celstack",
        "decompose",
        str(small_run),
        str(photos / "sub" / "one.png"),
        "--out",
        str(tmp_path / "out"),
    )

    assert answer.complaint == ""
    assert answer.said.startswith("1 image written to ")
    assert "one/layer-0.png" in files_below(tmp_path / "out")
    assert "one/background.png" not in files_below(tmp_path / "out")


def test_the_same_images_again_replace_what_was_there(
    command, layered_run, photos, taken_apart
):
    stale = taken_apart / "clear" / "layer-9.png"
    stale.touch()
    (taken_apart / "clear" / "mine.txt").touch()

    answer = command(
        "celstack", "decompose", str(layered_run), str(photos), "--out", str(taken_apart)
    )

    assert answer.code == 0
    assert not stale.exists()
    assert (taken_apart / "clear" / "mine.txt").exists()


def test_another_picture_of_the_same_name_is_not_written_over(
    command, layered_run, photos, taken_apart, tmp_path
):
    other = tmp_path / "clear.bmp"
    Image.new("RGB", (35, 35), "red").save(other)
    before = (taken_apart / "clear" / "scene.json").read_bytes()

    answer = command(
        "celstack", "decompose", str(layered_run), str(other), "--out", str(taken_apart)
    )

    assert complaint(answer).startswith(
        f"{taken_apart / 'clear'}: holds the decomposition of another image than"
    )
    assert (taken_apart / "clear" / "scene.json").read_bytes() == before


def test_ctrl_c_leaves_whole_files_and_says_how_many(
    command, layered_run, photos, tmp_path, monkeypatch
):
    write, written = decompose_module.write_openraster, []

    def interrupted(path, *rest):
        if written:
            path.write_bytes(b"half")
            raise KeyboardInterrupt
        written.append(path)
        write(path, *rest)

    monkeypatch.setattr(decompose_module, "write_openraster", interrupted)
    out = tmp_path / "out"

    answer = command("celstack", "decompose", str(layered_run), str(photos), "--out", str(out))

    assert answer.code == 130
    assert answer.complaint == f"celstack: Interrupted; 1 image written to {out}\n"
    assert len(files_below(out)) == 11
    assert {path.split("/")[0] for path in files_below(out)} == {"clear"}
    assert zipfile.ZipFile(out / "clear" / "layers.ora").testzip() is None


def test_a_full_disk_is_told_and_leaves_no_draft(
    command, layered_run, photos, tmp_path, monkeypatch
):
    def full(path, *rest):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(decompose_module, "write_openraster", full)
    out = tmp_path / "out"

    answer = command("celstack", "decompose", str(layered_run), str(photos), "--out", str(out))

    assert complaint(answer) == f"{out}: cannot write there: No space left on device"
    assert files_below(out) == []


def test_progress_is_told_now_and_then_where_no_bar_can_move(
    command, layered_run, photos, tmp_path, monkeypatch
):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)

    answer = command(
        "celstack",
        "decompose",
        str(layered_run),
        str(photos / "sub"),
        "--out",
        str(tmp_path / "out"),
    )

    assert answer.complaint.splitlines()[-2:] == [
        "decomposing images: 1 of 2",
        "decomposing images: 2 of 2",
    ]


def test_mistakes_of_decompose(command, small_run, photos, tmp_path):
    def said(run, image, out="out"):
        arguments = [str(run), str(image), "--out", str(tmp_path / out)]
        return complaint(command("celstack", "decompose", *arguments))

    image = photos / "clear.png"
    (tmp_path / "nothing").mkdir()
    (tmp_path / "damaged").mkdir()
    (photos / "broken.jpg").rename(tmp_path / "damaged" / "broken.jpg")
    broken = tmp_path / "damaged" / "broken.jpg"
    assert said(tmp_path / "gone", image) == f"{tmp_path / 'gone'}: there is no such folder"
    assert said(photos, image).startswith(f"{photos}: not a run folder")
    gone, notes = photos / "gone.png", photos / "notes.txt"
    assert said(small_run, gone) == f"{gone}: no such image or folder"
    assert said(small_run, notes) == f"{notes}: not an image, or of an unknown format"
    assert said(small_run, broken).startswith(f"{broken}: cannot be read: ")
    assert said(small_run, broken.parent).startswith("no image can be read")
    nothing = tmp_path / "nothing"
    assert said(small_run, nothing) == f"{nothing}: no image in this folder"
    assert said(small_run, image, "photos/notes.txt").startswith(
        f"{notes}: cannot write there: "
    )


@pytest.mark.parametrize("name", ["decompose", "render"])
def test_mistakes_are_told_without_torch(name, small_run, tmp_path):
    code = "import sys\nfrom celstack import cli\ntry:\n    cli.celstack()\nfinally:\n    "
    code += "print('torch' in sys.modules)"
    arguments = [name, str(small_run), "gone", *(["--out", "x"] if name != "render" else [])]

    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=120,
    )

    assert (done.returncode, done.stdout) == (2, "False\n"), done.stderr


# Render.


def test_rendering_a_scene_gives_the_reconstruction(command, layered_run, taken_apart):
    for name in NAMES:
        folder = taken_apart / name
        answer = command("celstack", "render", str(layered_run), str(folder / "scene.json"))

        assert answer.said == f"{folder / 'scene.png'}\n"
        assert (pixels(folder / "scene.png") == pixels(folder / "reconstruction.png")).all(), (
            name
        )


def test_an_edited_scene_renders_as_edited(command, layered_run, taken_apart, tmp_path):
    table = json.loads((taken_apart / "clear" / "scene.json").read_text())
    for layer in table["layers"]:
        layer["sprite"] = None
    (tmp_path / "empty.json").write_text(json.dumps(table))
    out = tmp_path / "my.png"

    command(
        "celstack",
        "render",
        str(layered_run),
        str(tmp_path / "empty.json"),
        "--out",
        str(out),
    )

    assert (pixels(out) == pixels(taken_apart / "clear" / "background.png")).all()


def test_several_scenes_go_to_a_folder_under_names_of_their_own(
    command, layered_run, taken_apart, tmp_path
):
    scenes = [str(taken_apart / name / "scene.json") for name in ("clear", "sub/one")]

    command("celstack", "render", str(layered_run), *scenes, "--out", str(tmp_path / "png"))

    assert files_below(tmp_path / "png") == ["clear/scene.png", "sub/one/scene.png"]


def test_mistakes_of_render(command, layered_run, small_run, taken_apart, tmp_path):
    def said(run, scene, *options):
        return complaint(command("celstack", "render", str(run), str(scene), *options))

    scene = taken_apart / "clear" / "scene.json"
    gone, odd = tmp_path / "gone.json", tmp_path / "odd.json"
    odd.write_text("{")
    assert said(layered_run, gone) == f"{gone}: no such file"
    assert said(layered_run, odd).startswith(f"{odd}: is not JSON: ")
    assert said(small_run, scene).startswith(f"{scene}: sprites: does not match this model")
    assert said(tmp_path / "gone", scene) == f"{tmp_path / 'gone'}: there is no such folder"
    assert "cannot write there" in said(layered_run, scene, "--out", f"{odd}/a.png")


# Sprites.


def test_sprites_and_backgrounds_are_written_with_a_sheet(command, layered_run, tmp_path):
    out = tmp_path / "sprites"

    answer = command("celstack", "sprites", str(layered_run), "--out", str(out))

    assert answer.said == f"4 images written to {out}; all in one: {out / 'sheet.png'}\n"
    assert files_below(out) == [
        "background-00.png",
        "sheet.png",
        "sprite-00.png",
        "sprite-01.png",
        "sprite-02.png",
    ]
    images = celstack.open_run(layered_run).decomposer.sprites.images().detach()
    wanted = (images[1].clamp(0, 1) * 255).round().permute(1, 2, 0).numpy()
    with Image.open(out / "sprite-01.png") as picture:
        assert (picture.size, picture.mode) == ((12, 12), "RGBA")
        assert (np.asarray(picture) == wanted).all()


def test_sprites_go_to_a_folder_called_after_the_run(command, small_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    command("celstack", "sprites", str(small_run))

    assert (tmp_path / f"sprites-small-{small_run.name}" / "sprite-01.png").is_file()


def test_mistakes_of_sprites(command, small_run, tmp_path):
    (tmp_path / "file").touch()
    options = ["--out", str(tmp_path / "file")]

    blocked = command("celstack", "sprites", str(small_run), *options)
    missing = command("celstack", "sprites", str(tmp_path / "gone"))

    assert complaint(blocked).startswith(f"{tmp_path / 'file'}: cannot write there: ")
    assert complaint(missing) == f"{tmp_path / 'gone'}: there is no such folder"


# In Python.


def test_the_same_in_three_lines(layered_run, photos, taken_apart):
    run = celstack.open_run(layered_run)
    scene = run.decomposer.explain(celstack.read_images([photos / "clear.png"], run.decomposer))
    image = run.decomposer.render(scene).image

    there = torch.from_numpy(pixels(taken_apart / "clear" / "reconstruction.png"))
    here = (image[0].detach().clamp(0, 1) * 255).permute(1, 2, 0)
    assert (here - there).abs().max() <= 1


def test_a_grey_model_takes_grey_images_and_writes_grey_pictures(photos, tmp_path):
    model = Decomposer(
        sprites=Pixels(count=2, size=(5, 5), jitter=0.3),
        layer_transforms=[Color(), Position()],
        compositor=Ordered(layers=2),
        selector=Greedy(),
        predictor=Network(encoder=Strided(width=2, features=4), hidden=4),
    )
    model.prepare(torch.rand(4, 1, 12, 14))
    files, _ = find_images([photos / "large.jpg", photos / "deep.png"], tmp_path)

    decompose_module.decompose(model.eval(), files, tmp_path / "out", batch_size=1)

    modes = {"input": "L", "reconstruction": "L", "layer-1": "RGBA"}
    for name, mode in modes.items():
        with Image.open(tmp_path / "out" / "deep" / f"{name}.png") as picture:
            assert (picture.size, picture.mode) == ((14, 12), mode)
    assert (tmp_path / "out" / "overview.png").is_file()

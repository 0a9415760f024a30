import torch

from celstack_kit.observers.progress.half_blocks import MAX_IMAGE_ROWS, MAX_SIDE_PIXELS, draw


def images(count=1, height=4, width=3, colour=(1.0, 0.0, 0.0), alpha=1.0):
    """Make images of one colour."""
    values = torch.tensor([*colour, alpha])
    return values[:, None, None].expand(count, len(values), height, width).contiguous()


def rows(text):
    return text.plain.splitlines()


def styles(text):
    return {str(span.style) for span in text.spans}


def test_a_character_is_two_pixels():
    text = draw(images(height=4, width=3), columns=80, rows=24)

    assert rows(text) == ["", "▀▀▀ ", "▀▀▀ "]
    assert styles(text) == {"rgb(255,0,0) on rgb(255,0,0)"}


def test_the_upper_pixel_is_the_foreground():
    image = images(height=2, width=1)
    image[0, :3, 1, 0] = torch.tensor([0.0, 1.0, 0.0])

    assert styles(draw(image, columns=80, rows=24)) == {"rgb(255,0,0) on rgb(0,255,0)"}


def test_what_is_transparent_shows_squares_of_two_pixels():
    text = draw(images(height=4, width=4, alpha=0.0), columns=80, rows=24)

    dark, light = "rgb(56,56,56)", "rgb(82,82,82)"
    assert [str(span.style) for span in text.spans] == [
        f"{dark} on {dark}",
        f"{light} on {light}",
        f"{light} on {light}",
        f"{dark} on {dark}",
    ]


def test_grey_images_are_grey():
    text = draw(images(colour=(0.5,)), columns=80, rows=24)

    assert styles(text) == {"rgb(128,128,128) on rgb(128,128,128)"}


def test_large_images_are_made_smaller_in_proportion():
    text = draw(images(height=64, width=128), columns=80, rows=24)

    assert rows(text) == ["", *["▀" * MAX_SIDE_PIXELS + " "] * (MAX_SIDE_PIXELS // 4)]


def test_an_odd_height_is_no_mistake():
    assert len(rows(draw(images(height=5, width=3), columns=80, rows=24))) == 1 + 3


def test_pictures_are_side_by_side_then_below():
    text = draw(images(count=3, height=2, width=3), columns=8, rows=24)

    assert rows(text) == ["", "▀▀▀ ▀▀▀ ", "", "▀▀▀ "]


def test_what_has_no_room_is_counted():
    wide = draw(images(count=9, height=2, width=3), columns=8, rows=24)
    low = draw(images(count=9, height=2, width=3), columns=8, rows=5)

    assert rows(wide)[-1] == f"and {9 - 2 * MAX_IMAGE_ROWS} more"
    assert rows(low)[-1] == "and 5 more"
    assert len(rows(low)) == 5


def test_one_line_is_always_shown():
    assert rows(draw(images(height=2, width=3), columns=1, rows=0)) == ["", "▀▀▀ "]

import pytest
import torch

from celstack.scene import EMPTY, Rendering, Scene


def make_scene(**changes):
    """Two images of two layers, all different."""
    fields = {
        "sprite": torch.tensor([[0, 1], [2, EMPTY]]),
        "sprite_params": torch.arange(4.0).view(2, 2, 1),
        "layer_params": torch.arange(8.0).view(2, 2, 2),
        "occlusion": torch.tensor([[0.0, 0.0], [1.0, 0.0]]).expand(2, -1, -1),
    }
    return Scene(**{**fields, **changes})


def labels(*layers):
    """Label the pixels of one row, from what is visible of each layer."""
    visible = torch.tensor([layers])[:, :, None]
    height_and_width = visible.shape[-2:]
    rendering = Rendering(
        image=torch.zeros(1, 3, *height_and_width),
        layers=torch.zeros(1, len(layers), 4, *height_and_width),
        backdrop=torch.zeros(1, 3, *height_and_width),
        visible=visible,
    )
    return rendering.instances()[0, 0].tolist()


def test_an_edited_scene_differs_in_what_was_edited():
    scene = make_scene()

    edited = scene.evolve(sprite=torch.tensor([[5, 5], [5, 5]]))

    assert edited.sprite.tolist() == [[5, 5], [5, 5]]
    assert edited.layer_params is scene.layer_params


def test_editing_leaves_the_scene_as_it_was():
    scene = make_scene()

    scene.evolve(sprite=torch.tensor([[5, 5], [5, 5]]))

    assert scene.sprite.tolist() == [[0, 1], [2, EMPTY]]


def test_a_field_that_scenes_have_not_got_cannot_be_edited():
    with pytest.raises(TypeError, match="colour"):
        make_scene().evolve(colour=torch.zeros(2))


@pytest.mark.parametrize("images", [slice(1, 2), [1], torch.tensor([False, True])])
def test_some_of_the_images_are_taken_as_from_a_tensor(images):
    some = make_scene()[images]

    assert some.sprite.tolist() == [[2, EMPTY]]
    assert some.sprite_params.tolist() == [[[2.0], [3.0]]]
    assert some.layer_params.tolist() == [[[4.0, 5.0], [6.0, 7.0]]]


def test_images_may_be_taken_in_another_order():
    assert make_scene()[[1, 0]].sprite.tolist() == [[2, EMPTY], [0, 1]]


def test_no_background_remains_no_background():
    assert make_scene()[[0]].background is None


def test_backgrounds_are_taken_along():
    params = torch.tensor([[0.1], [0.2]])
    scene = make_scene(background=torch.tensor([3, 4]), background_params=params)

    some = scene[[1]]

    assert some.background.tolist() == [4]
    assert some.background_params.tolist() == params[1:].tolist()


def test_a_scene_is_as_long_as_it_has_images():
    assert len(make_scene()[[0, 1, 1]]) == 3


def test_pixels_are_labelled_by_layer_from_one_and_background_is_zero():
    assert labels([0.9, 0.0, 0.0], [0.0, 0.8, 0.1]) == [1, 2, 0]


def test_the_layer_seen_most_gives_its_label():
    assert labels([0.6, 0.1, 0.7], [0.4, 0.9, 0.3]) == [1, 2, 1]


def test_half_transparent_is_background_and_a_little_more_is_not():
    assert labels([0.5, 0.51]) == [0, 1]


def test_two_faint_layers_do_not_add_up_to_one_that_is_seen():
    assert labels([0.4], [0.45]) == [0]


@pytest.mark.parametrize(
    ("sprite", "expected"),
    [([4, 7], [5, 8, 0]), ([7, 7], [8, 8, 0]), ([0, EMPTY], [1, 0, 0])],
)
def test_pixels_are_classified_by_the_sprite_of_the_layer_seen(sprite, expected):
    visible = torch.tensor([[[[0.9, 0.0, 0.4]], [[0.0, 0.8, 0.4]]]])
    nothing = torch.zeros(1, 3, 1, 3)
    rendering = Rendering(nothing, torch.zeros(1, 2, 4, 1, 3), nothing, visible)
    scene = make_scene()[[0]].evolve(sprite=torch.tensor([sprite]))

    assert rendering.classes(scene)[0, 0].tolist() == expected


def test_layers_with_a_sprite_are_filled():
    assert make_scene().filled.tolist() == [[True, True], [True, False]]

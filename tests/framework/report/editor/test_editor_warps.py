"""Edits move what is there, however it is warped: nothing else about it changes."""

import pytest
import torch

from celstack_kit.transforms.affine import Affine
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.projective import Projective
from celstack_kit.transforms.similarity import Similarity
from celstack_kit.transforms.tps import Tps

PLACE = """([matrix, points]) => {
    const { model, session } = celstack.editor;
    const pulled = (layer) => {
        const found = Float64Array.from(points);
        for (const [chain, table] of [["layer", "layer_params"], ["sprite", "sprite_params"]]) {
            for (const { part, key } of [...model.chains[chain]].reverse()) {
                part.pull(found, layer[table][key]);
            }
        }
        return Array.from(found);
    };
    const before = session.scene.layers[0];
    const after = structuredClone(before);
    const left = celstack.place(model, after, matrix);
    return [pulled(after), left];
}"""
MOVE = [1, 0, 0.2, 0, 1, -0.3]
SHRINK = [0.8, 0, 0.1, 0, 0.8, 0.05]
TURN = [0.8, -0.6, 0.1, 0.6, 0.8, 0.0]
EVERY = [MOVE, SHRINK, TURN]


@pytest.mark.parametrize(
    ("sprite", "layer", "edits"),
    [
        ([], [Position()], [MOVE, SHRINK]),
        ([], [Similarity()], EVERY),
        ([], [Affine()], EVERY),
        ([], [Projective()], EVERY),
        ([Affine()], [Position()], EVERY),
        ([], [Tps(), Position()], [MOVE, SHRINK]),
        ([Projective()], [Similarity(), Position()], EVERY),
    ],
    ids=lambda value: (
        "-".join(t.name for t in value) if value and hasattr(value[0], "name") else ""
    ),
)
def test_what_looked_from_one_point_looks_from_where_it_moved(
    sprite, layer, edits, model, scenes, edited, open_page
):
    made = model(sprite=sprite, layer=layer)
    scene = scenes(made, spread=0.2)
    page = open_page(edited(made, scene))
    torch.manual_seed(3)
    points = torch.rand(1, 9, 2, dtype=torch.float64) - 0.5
    for edit in edits:
        matrix = torch.tensor(edit, dtype=torch.float64).view(2, 3)
        moved = points @ matrix[:, :2].mT + matrix[:, 2]

        found, left = page.evaluate(PLACE, [edit, moved.flatten().tolist()])

        wanted = made.layer_chain.double().pull(points, scene.layer_params[0, :1].double())
        wanted = made.sprite_chain.double().pull(wanted, scene.sprite_params[0, :1].double())
        assert torch.tensor(found).view(9, 2).sub(wanted[0]).abs().max() < 1e-4
        assert left == pytest.approx([1, 0, 0, 0, 1, 0], abs=1e-6)


def test_a_bent_plate_stays_bent_where_its_controls_are(model, scenes, edited, open_page):
    made = model(layer=[Tps(points=3)])
    scene = scenes(made, spread=0.1)
    page = open_page(edited(made, scene))
    side = torch.linspace(-1, 1, 3, dtype=torch.float64)
    controls = torch.stack(torch.meshgrid(side, side, indexing="xy"), -1).view(1, -1, 2)
    matrix = torch.tensor(TURN, dtype=torch.float64).view(2, 3)

    found, _ = page.evaluate(PLACE, [TURN, controls.flatten().tolist()])

    back = (controls - matrix[:, 2]) @ torch.linalg.inv(matrix[:, :2]).mT
    wanted = made.layer_chain.double().pull(back, scene.layer_params[0, :1].double())
    assert torch.tensor(found).view(9, 2).sub(wanted[0]).abs().max() < 1e-4


def test_what_position_cannot_do_is_left_and_the_centre_stays(model, scenes, edited, open_page):
    made = model(layer=[Position()])
    page = open_page(edited(made, scenes(made)))
    turned = torch.tensor(TURN, dtype=torch.float64).view(2, 3)
    params = scenes(made).layer_params[0, :1].double()
    linear = made.layer_chain.matrix(params.float())[0].double()
    centre = torch.linalg.solve(linear[:, :2], -linear[:, 2])
    moved = turned[:, :2] @ centre + turned[:, 2]

    found, left = page.evaluate(PLACE, [TURN, moved.tolist()])

    assert found == pytest.approx([0, 0], abs=1e-5)
    assert left != pytest.approx([1, 0, 0, 0, 1, 0], abs=0.1)

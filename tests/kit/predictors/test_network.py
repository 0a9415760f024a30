import torch
from torch.nn.functional import linear, relu

from celstack import Outline
from celstack.testing import check_predictor
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import Heads, Network


def test_it_keeps_the_promises_of_a_predictor():
    check_predictor(Network(encoder=Strided(width=2, features=6), hidden=5))


def test_batched_heads_are_separate_networks():
    torch.manual_seed(0)
    heads = Heads((2, 3), (4, 5, 5, 6)).double()
    with torch.no_grad():
        heads.weights[-1].normal_()
        heads.biases[-1].normal_()
    features = torch.randn(7, 4).double()

    together = heads(features)

    assert together.shape == (7, 2, 3, 6)
    for layer in range(2):
        for sprite in range(3):
            values = features
            pairs = zip(heads.weights, heads.biases, strict=True)
            for depth, (weight, bias) in enumerate(pairs):
                values = relu(values) if depth else values
                values = linear(values, weight[layer, sprite].T, bias[layer, sprite])
            torch.testing.assert_close(together[:, layer, sprite], values)


def test_a_head_is_where_its_sprite_axis_says():
    torch.manual_seed(0)
    network = Network(encoder=Strided(width=2, features=6), hidden=5)
    network.prepare(
        Outline(
            image_shape=(3, 8, 8),
            layers=2,
            sprites=3,
            backgrounds=0,
            sprite_params=4,
            layer_params=0,
            background_params=0,
            occlusion_logits=1,
        )
    )
    network.eval()
    with torch.no_grad():
        for parameter, _ in network.per_sprite():
            parameter.normal_()
        images = torch.rand(2, 3, 8, 8)
        before = network(images).sprite_params
        for parameter, axis in network.per_sprite():
            parameter.copy_(parameter.flip(axis))
        after = network(images).sprite_params

    torch.testing.assert_close(after, before.flip(2))

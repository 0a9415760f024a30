import pytest
import torch
from torch.nn.functional import linear, relu

from celstack import Outline
from celstack.testing import check_predictor
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import ChainHeads, Heads, Network


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
                values = linear(values, weight[layer, sprite], bias[layer, sprite])
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
            sprite_transforms=(3, 1),
            layer_transforms=(),
            background_transforms=(),
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


def test_each_transform_has_hidden_layers_of_its_own():
    torch.manual_seed(0)
    heads = ChainHeads((2,), (4, 5, 5), (3, 2)).double()
    with torch.no_grad():
        for parameter in heads.parameters():
            parameter.normal_()
    features = torch.randn(7, 4).double()

    together = heads(features)

    torch.testing.assert_close(together[..., :3], heads.heads[0](features))
    torch.testing.assert_close(together[..., 3:], heads.heads[1](features))
    reached = torch.autograd.grad(
        together[..., 3:].sum(), [*heads.heads[0].parameters()], allow_unused=True
    )
    assert all(gradient is None or not gradient.any() for gradient in reached)


def test_heads_at_rest_are_not_called_and_predict_the_rest_pose():
    heads = ChainHeads((2,), (4, 5, 5), (3, 2))
    with torch.no_grad():
        for parameter in heads.parameters():
            parameter.normal_()
    heads.active = (False, True)

    predicted = heads(torch.randn(7, 4))
    predicted.sum().backward()

    assert not predicted[..., :3].any()
    assert all(parameter.grad is None for parameter in heads.heads[0].parameters())
    assert all(parameter.grad is not None for parameter in heads.heads[1].parameters())


@pytest.fixture
def network():
    torch.manual_seed(0)
    network = Network(encoder=Strided(width=2, features=6), hidden=5)
    network.prepare(
        Outline(
            image_shape=(3, 8, 8),
            layers=1,
            sprites=1,
            backgrounds=0,
            sprite_transforms=(),
            layer_transforms=(3,),
            background_transforms=(),
            occlusion_logits=0,
        )
    )
    with torch.no_grad():
        for parameter in network.layer_heads.parameters():
            parameter.normal_()
    return network.train()


def test_one_image_alone_is_normalised_with_what_was_gathered_so_far(network):
    image = torch.rand(1, 3, 8, 8)

    alone = network(image).layer_params

    torch.testing.assert_close(alone, network.eval()(image).layer_params)
    assert alone.requires_grad


def test_one_image_alone_leaves_the_statistics_as_they_were(network):
    before = {name: value.clone() for name, value in network.named_buffers()}

    network(torch.rand(1, 3, 8, 8))

    assert all(torch.equal(before[name], value) for name, value in network.named_buffers())


def test_statistics_are_gathered_again_after_one_image_alone(network):
    network(torch.rand(1, 3, 8, 8))

    network(torch.rand(4, 3, 8, 8))

    counts = [v for name, v in network.named_buffers() if name.endswith("num_batches_tracked")]
    assert [int(count) for count in counts] == [1] * 5

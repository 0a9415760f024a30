"""Encoders that compute in 16 bits, while all else does not."""

import pytest
import torch
from torch import nn

from celstack import (
    Assembly,
    CelstackError,
    Encoder,
    Evaluation,
    Observer,
    Stage,
    Training,
    Transforms,
    hookimpl,
)
from celstack.training.distributed.engine import Engine
from celstack.training.initialize import init_model
from celstack.training.loop import run
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.datasets.tetrominoes import Tetrominoes
from celstack_kit.metrics.mse import Mse
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.selectors.matching import Matching
from celstack_kit.transforms.position import Position


class Watched(Encoder):
    """One linear layer, which writes down in what precision it computes."""

    num_features = 4

    def prepare(self, image_shape):
        self.kinds = []
        self.linear = nn.Linear(image_shape[1] * image_shape[2], 4)

    def forward(self, images):
        features = self.linear(images[:, 0].flatten(1))
        self.kinds.append(features.dtype)
        return features


def make(precision, **changes):
    parts = {
        "dataset": Tetrominoes(count=12, test_count=4, per_image=1),
        "sprites": Pixels(count=2, size=(20, 20), jitter=0.05),
        "transforms": Transforms(layer=[Position()]),
        "compositor": Ordered(layers=1),
        "selector": Greedy(),
        "predictor": Network(encoder=Watched(), hidden=4),
        "training": Training(batch_size=4, precision=precision, checkpoint_every=2),
        "stages": [Stage(steps=6)],
        "metrics": [Mse()],
        "evaluation": Evaluation(images=4),
    }
    return Assembly(**{**parts, **changes})


KINDS = {"32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@pytest.mark.parametrize("precision", KINDS)
def test_the_encoder_computes_as_asked_while_it_learns_and_in_full_when_judged(precision):
    trained = run(make(precision))

    kinds = trained.decomposer.predictor.encoder.kinds
    assert kinds == [KINDS[precision]] * 6 + [torch.float32]


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_all_that_learns_and_is_predicted_stays_in_full_precision(precision):
    assembly = make(precision)
    model = Engine(precision=precision).place_model(init_model(assembly)).train()

    prediction = model.predict(assembly.dataset.read("train", range(4)).images)

    assert prediction.layer_params.dtype == torch.float32
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_fewer_bits_learn_nearly_the_same(precision):
    full, mixed = (run(make(one)).decomposer.sprites.colour for one in ("32", precision))

    assert not torch.equal(full, mixed)
    torch.testing.assert_close(full, mixed, rtol=0, atol=1e-2)


def test_a_run_that_goes_on_scales_its_loss_as_it_did(tmp_path):
    class Stop(Observer):
        @hookimpl
        def celstack_step_finished(self, step):
            if step == 4:
                raise KeyboardInterrupt

    whole = run(make("fp16"))
    with pytest.raises(KeyboardInterrupt):
        run(make("fp16", observers=[Stop()]), tmp_path)
    (folder,) = tmp_path.glob("*/*")

    saved = torch.load(folder / "checkpoint.pt", weights_only=True)["scaler"]
    again = run(make("fp16"), folder, resume=True)

    assert saved["_growth_tracker"] == 4
    assert torch.equal(again.decomposer.sprites.colour, whole.decomposer.sprites.colour)


def test_a_precision_that_is_not_known_is_refused():
    with pytest.raises(CelstackError, match="must be '32' or 'bf16' or 'fp16', not '16'"):
        make("16")


def test_a_precision_without_an_encoder_is_refused():
    with pytest.raises(CelstackError, match=r"training\.precision: there is no predictor"):
        run(make("bf16", predictor=None, selector=Matching()))

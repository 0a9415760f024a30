"""Each check accepts a plain part and names the law that a broken one breaks."""

import math
import random

import attrs
import pytest
import torch
from torch import nn

from celstack import EMPTY, Batch, BrowserCode, Decomposer, Observer, hookimpl
from celstack.registry.kinds import KINDS
from celstack.testing import (
    check_compositor,
    check_dataset,
    check_encoder,
    check_metric,
    check_observer,
    check_predictor,
    check_prototype,
    check_selector,
    check_transform,
)
from celstack.testing.model import PlainSelector, plain_decomposer, plain_scene
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainEncoder,
    PlainMetric,
    PlainObserver,
    PlainPredictor,
    PlainPrototype,
    PlainTransform,
    PlainWarp,
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_check(kind):
    import celstack.testing

    assert f"check_{kind}" in celstack.testing.__all__


@pytest.mark.parametrize(
    ("check", "part"),
    [
        (check_transform, PlainTransform()),
        (check_transform, PlainWarp()),
        (check_prototype, PlainPrototype()),
        (check_compositor, PlainCompositor(3)),
        (check_compositor, PlainCompositor(1)),
        (check_selector, PlainSelector()),
        (check_selector, PlainSelector(empty_cost=None)),
        (check_predictor, PlainPredictor()),
        (check_encoder, PlainEncoder()),
        (check_dataset, PlainDataset()),
        (check_metric, PlainMetric()),
        (check_observer, PlainObserver()),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "name") else None,
)
def test_a_plain_part_keeps_its_promises(check, part):
    check(part)


def test_a_check_leaves_the_random_state_alone():
    before = torch.get_rng_state()

    check_transform(PlainTransform())

    assert torch.equal(torch.get_rng_state(), before)


def test_a_check_does_not_prepare_the_part_it_is_given():
    prototype = PlainPrototype()

    check_prototype(prototype)

    assert not list(prototype.parameters())


def test_a_broken_law_is_told_with_the_name_of_the_class():
    class Dimmer(PlainTransform):
        def forward(self, images, params):
            return images * (0.5 + params[:, :, None, None])

    with pytest.raises(AssertionError, match=r"^Dimmer: all-zero parameters leave every pixel"):
        check_transform(Dimmer())


# Transforms.


class Dimmed(PlainTransform):
    def forward(self, images, params):
        return super().forward(images, params) * 0.5


class Cropped(PlainTransform):
    def forward(self, images, params):
        return super().forward(images, params)[..., 1:]


class Averaged(PlainTransform):
    def forward(self, images, params):
        return super().forward(images, params.mean(0, keepdim=True).expand_as(params))


class Levelled(PlainTransform):
    """Looks at the other images, though at no other row."""

    def forward(self, images, params):
        level = images.mean((1, 2, 3))[:, None]
        return super().forward(images, params * level / level.mean())


class Detached(PlainTransform):
    def forward(self, images, params):
        return super().forward(images, params.detach())


class Constant(PlainTransform):
    def forward(self, images, params):
        return super().forward(images.detach(), params.detach())


class HalfDeaf(PlainTransform):
    num_params = 2

    def forward(self, images, params):
        return super().forward(images, params[:, :1])


class FalseGradient(PlainTransform):
    """Counts double what it lets only one of two paths learn from."""

    def forward(self, images, params):
        return super().forward(images, params + params.detach())


class InPlace(PlainTransform):
    def forward(self, images, params):
        images[:, :-1] += params[:, :, None, None]
        return images


class Widened(PlainTransform):
    def forward(self, images, params):
        return super().forward(images, params).double()


class Early(PlainTransform):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(()))


class Infinite(PlainTransform):
    def forward(self, images, params):
        return super().forward(images, params) / torch.zeros(())


class Uncounted(PlainTransform):
    num_params = -1


class Unspeakable(PlainTransform):
    """Its options for browsers are not for JSON."""

    def browser(self):
        return BrowserCode("() => ({})", {"gain": torch.ones(1)})


class Speechless(PlainTransform):
    """It has code for browsers, and nothing in it."""

    def browser(self):
        return BrowserCode(" ")


class Mistinted(PlainTransform):
    """Says that brightening makes colours darker."""

    def tint(self, gains, offsets=None):
        return gains.mean(1, keepdim=True) - 1


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (Dimmed, "leave every pixel where it is"),
        (Cropped, "shapes stay"),
        (Averaged, "own row of parameters alone, but also on another's row"),
        (Levelled, "own row of parameters alone, but also on another's image"),
        (Detached, r"none arrives at \[0\]"),
        (Constant, "there are none"),
        (HalfDeaf, r"none arrives at \[1\]"),
        (FalseGradient, "differ from finite differences"),
        (InPlace, "inputs are not modified, but they were"),
        (Widened, "dtype of its input"),
        (Early, "created in prepare"),
        (Infinite, "finite"),
        (Uncounted, "num_params"),
        (Mistinted, "multiplies colors by the gains"),
        (Unspeakable, "serializable as JSON"),
        (Speechless, "browser has a source"),
    ],
)
def test_a_broken_transform_is_refused(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_transform(broken())


class Shrunk(PlainWarp):
    def pull(self, points, params):
        return super().pull(points * 2, params)


class Misplaced(PlainWarp):
    """Goes the other way when it is told where to go."""

    def params_from_matrix(self, matrix):
        return -super().params_from_matrix(matrix)


class Uncertain(PlainWarp):
    """Can be told where to go, but not say where that is."""

    def matrix(self, params):
        return None


class Crowded(PlainWarp):
    """Moves points relative to where the others are."""

    def pull(self, points, params):
        spread = points.std(1, keepdim=True)
        return points - params[:, None] * spread


class Alternating(PlainWarp):
    """Rests otherwise for every second image."""

    rest_is_identity = False

    def pull(self, points, params):
        turn = 1 + torch.arange(len(points)) % 2
        return super().pull(points * turn[:, None, None].to(points), params)


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (Shrunk, "leave every point where it is"),
        (Crowded, "points are mapped independently"),
        (Misplaced, "params_from_matrix reproduces the matrix that it has returned"),
        (Uncertain, "a warp that implements params_from_matrix has a matrix"),
        (Alternating, "the same for every image"),
    ],
)
def test_a_broken_warp_is_refused(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_transform(broken())


def test_a_warp_may_say_that_its_rest_pose_is_not_the_identity():
    class Placing(Shrunk):
        rest_is_identity = False

        def matrix(self, params):
            return super().matrix(params) * torch.tensor([2.0, 2.0, 1.0])

        def params_from_matrix(self, matrix):
            return 2 * super().params_from_matrix(matrix)

    check_transform(Placing())


# Prototypes.


class OneTooMany(PlainPrototype):
    def images(self):
        return torch.cat([super().images(), super().images()[:1]])


class Glassy(PlainPrototype):
    """Backgrounds that can be seen through."""

    def images(self):
        return super().images() * 0.5


class Frozen(PlainPrototype):
    def images(self):
        return super().images().detach()


class Flickering(PlainPrototype):
    def images(self):
        return super().images() + 0.1 * torch.rand(())


class Shuffled(PlainPrototype):
    """Images that look at their neighbours."""

    def images(self):
        images = super().images()
        mixed = images + 0.1 * images[:1]
        return torch.cat([mixed[:, :-1], images[:, -1:]], dim=1)


class Glaring(PlainPrototype):
    def images(self):
        return super().images() * 10


class Strewn(PlainPrototype):
    """Starts from random numbers that no seed governs."""

    def prepare(self, sample, with_alpha):
        super().prepare(sample, with_alpha)
        self.pixels.data.mul_(random.SystemRandom().random())


class Sideways(PlainPrototype):
    def prepare(self, sample, with_alpha):
        super().prepare(sample, with_alpha)
        self.light = nn.Parameter(torch.zeros(1))

    def images(self):
        return super().images() + 0.0 * self.light

    def per_image(self):
        return [self.light]


class Understated(PlainPrototype):
    """Says that its images are smaller than they are."""

    size = (2, 2)


class Forgetting(PlainPrototype):
    """Creates other parameters when a run is opened."""

    def allocate(self, image_shape, with_alpha):
        super().allocate((1, *image_shape[1:]), with_alpha)


class Absent(PlainPrototype):
    """Remembers of its preparation what is not among its weights."""

    brightness = 0.0

    def prepare(self, sample, with_alpha):
        super().prepare(sample, with_alpha)
        self.brightness = float(sample.mean())

    def images(self):
        return super().images() + 0.1 * self.brightness


class Idle(PlainPrototype):
    def prepare(self, sample, with_alpha):
        super().prepare(sample, with_alpha)
        self.light = nn.Parameter(torch.zeros(1))


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (OneTooMany, "shape"),
        (Glassy, "alpha of backgrounds is 1"),
        (Frozen, "gradients reach its parameters"),
        (Flickering, "two calls differ"),
        (Shuffled, "swaps the images"),
        (Glaring, r"near \[0, 1\]"),
        (Strewn, "two starts differ"),
        (Sideways, "along axis 0"),
        (Understated, r"size .* is \(2, 2\) and images\(\) are \(9, 7\)"),
        (Forgetting, "allocate creates the same parameters as prepare"),
        (Absent, "the same after allocate as after prepare"),
        (Idle, "light"),
    ],
)
def test_a_broken_prototype_is_refused(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_prototype(broken())


# Compositors.


class Mutual(PlainCompositor):
    def occlusion(self, logits, training):
        return super().occlusion(logits, training) * 0.0 + 1 - torch.eye(self.layers)


class Selfish(PlainCompositor):
    def occlusion(self, logits, training):
        return super().occlusion(logits, training) + torch.eye(self.layers)


class Undecided(PlainCompositor):
    def occlusion(self, logits, training):
        half = 0.5 * (1 - torch.eye(self.layers))
        return half.expand(len(logits), -1, -1)


class UpsideDown(PlainCompositor):
    """Lets the hidden hide."""

    def compose(self, layers, backdrop, occlusion):
        return super().compose(layers, backdrop, occlusion.transpose(1, 2))


class Backless(PlainCompositor):
    def compose(self, layers, backdrop, occlusion):
        return super().compose(layers, torch.zeros_like(backdrop), occlusion)


class Unhidden(PlainCompositor):
    """Says that all of every layer is seen."""

    def compose(self, layers, backdrop, occlusion):
        image, _ = super().compose(layers, backdrop, occlusion)
        return image, layers[:, :, -1]


class Still(PlainCompositor):
    def compose(self, layers, backdrop, occlusion):
        return super().compose(layers.detach(), backdrop, occlusion)


class Loud(PlainCompositor):
    def compose(self, layers, backdrop, occlusion):
        backdrop.mul_(0.5)
        return super().compose(layers, backdrop, occlusion)


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (Mutual, "one hides the other"),
        (Selfish, "no layer hides itself"),
        (Undecided, "binary when not training"),
        (UpsideDown, "layer j hides layer l"),
        (Backless, "the image is the backdrop"),
        (Unhidden, "sum of the visible layers"),
        (Still, "gradients reach layers"),
        (Loud, "inputs are not modified, but they were"),
    ],
)
def test_a_broken_compositor_is_refused(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_compositor(broken())


# Selectors.


class OutOfRange(PlainSelector):
    def explain(self, images, decomposer, noise, allow_empty):
        scene = super().explain(images, decomposer, noise, allow_empty)
        return scene.evolve(sprite=scene.sprite + 3)


class Forgetful(PlainSelector):
    def explain(self, images, decomposer, noise, allow_empty):
        scene = super().explain(images, decomposer, noise, allow_empty)
        return scene.evolve(
            sprite_params=scene.sprite_params.detach(),
            layer_params=scene.layer_params.detach(),
            background_params=None
            if scene.background_params is None
            else scene.background_params.detach(),
        )


class Spendthrift(PlainSelector):
    """Never leaves a layer empty."""

    def explain(self, images, decomposer, noise, allow_empty):
        return super().explain(images, decomposer, noise, False)


class Idler(PlainSelector):
    """Leaves layers empty where it must not."""

    def explain(self, images, decomposer, noise, allow_empty):
        scene = super().explain(images, decomposer, noise, allow_empty)
        return scene.evolve(sprite=torch.full_like(scene.sprite, EMPTY))


class Gambler(PlainSelector):
    def explain(self, images, decomposer, noise, allow_empty):
        scene = super().explain(images, decomposer, noise, False)
        chosen = torch.randint(decomposer.sprites.count, scene.sprite.shape)
        return plain_scene(chosen, decomposer.predict(images), decomposer)


class Roulette(PlainSelector):
    """Draws from another random state than torch's."""

    def explain(self, images, decomposer, noise, allow_empty):
        scene = super().explain(images, decomposer, noise, False)
        chosen = torch.full_like(scene.sprite, random.randrange(decomposer.sprites.count))
        return plain_scene(chosen, decomposer.predict(images), decomposer)


class Grudging(PlainSelector):
    """Will not choose what it chose for the images before."""

    last = 0

    def explain(self, images, decomposer, noise, allow_empty):
        scene = super().explain(images, decomposer, noise, False)
        self.last = (self.last + 1) % decomposer.sprites.count
        chosen = torch.full_like(scene.sprite, self.last)
        return plain_scene(chosen, decomposer.predict(images), decomposer)


class Homeless(PlainSelector):
    def explain(self, images, decomposer, noise, allow_empty):
        scene = super().explain(images, decomposer, noise, allow_empty)
        return scene.evolve(background=None)


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (OutOfRange, "shows a sprite of the model"),
        (Forgetful, "keeps the gradient of its parameters"),
        (Spendthrift, "no more than one whose layers are all empty"),
        (Idler, "shows a sprite of the model"),
        (Homeless, "background of a scene"),
        (Gambler, "same choice, but it draws from torch's random state; use a torch.Generator"),
        (Roulette, "the same images give the same choice, but another call returns another"),
        (Grudging, "the same images give the same choice, but another call returns another"),
    ],
)
def test_a_broken_selector_is_refused(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_selector(broken())


def test_a_negative_price_is_refused():
    with pytest.raises(AssertionError, match="empty_cost is 0 or more"):
        check_selector(PlainSelector(empty_cost=-1.0))


def test_a_selector_may_bring_its_own_model():
    made: list[Decomposer] = []

    def make(selector):
        made.append(plain_decomposer(selector))
        return made[-1]

    check_selector(PlainSelector(), decomposer=make)

    assert made


# Predictors.


class Eager(PlainPredictor):
    def prepare(self, outline):
        super().prepare(outline)
        self.layer.data.add_(0.1)


class Misshapen(PlainPredictor):
    def forward(self, images):
        prediction = super().forward(images)
        return attrs.evolve(prediction, layer_params=prediction.layer_params[:, :1])


class Deaf(PlainPredictor):
    def forward(self, images):
        prediction = super().forward(images)
        return attrs.evolve(prediction, sprite_params=prediction.sprite_params.detach())


class WrongAxis(PlainPredictor):
    def per_sprite(self):
        return [(self.sprite, 0)]


class WrongParameter(PlainPredictor):
    """Lists what does not belong to sprites."""

    def prepare(self, outline):
        super().prepare(outline)
        self.extra = nn.Parameter(torch.zeros(outline.sprites))

    def per_sprite(self):
        return [(self.extra, 0)]


class Gossip(PlainPredictor):
    def forward(self, images):
        return super().forward(images.mean(0, keepdim=True).expand_as(images))


class Restless(PlainPredictor):
    """Multiplies what rests by zero instead of leaving it out: weight decay gets at it."""

    def forward(self, images):
        at_work, self.at_work = self.at_work, (True, True, True)
        prediction = super().forward(images)
        self.at_work = at_work
        sprite, layer, background = map(float, at_work)
        return attrs.evolve(
            prediction,
            sprite_params=prediction.sprite_params * sprite,
            layer_params=prediction.layer_params * layer,
            background_params=prediction.background_params * background,
        )


class Forgetful(PlainPredictor):
    """Never lets a transform work again."""

    def activate(self, active):
        before = self.at_work
        super().activate(active)
        self.at_work = tuple(a and b for a, b in zip(before, self.at_work, strict=True))


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (
            Restless,
            "serve only inactive transforms get no gradient, but training changed sprite",
        ),
        (Forgetful, "is active again is predicted by the weights it had"),
        (Eager, "all predictions are zero, but layer_params"),
        (Misshapen, "layer_params has the shape"),
        (Deaf, "leave the rest pose"),
        (WrongAxis, "axis that runs over sprites"),
        (WrongParameter, "swaps their predictions"),
        (Gossip, "depend on no other image"),
    ],
)
def test_a_broken_predictor_is_refused(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_predictor(broken())


# Encoders.


class Miscounted(PlainEncoder):
    def prepare(self, image_shape):
        super().prepare(image_shape)
        self.num_features = 7


class Social(PlainEncoder):
    def forward(self, images):
        return super().forward(images - images.mean(0))


class Dropping(PlainEncoder):
    """Forgets that it is in eval mode."""

    def forward(self, images):
        return nn.functional.dropout(super().forward(images), training=True)


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (Miscounted, "num_features"),
        (Social, "depend on no other image"),
        (Dropping, "same features"),
    ],
)
def test_a_broken_encoder_is_refused(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_encoder(broken())


# Datasets. These stand at the top of the module, where pickle finds them.


class Noisy(PlainDataset):
    def read(self, split, indices):
        batch = super().read(split, indices)
        return Batch(batch.images + 1e-3 * torch.rand_like(batch.images), batch.instances)


class Grouped(PlainDataset):
    """Divides by how bright the batch is."""

    def read(self, split, indices):
        batch = super().read(split, indices)
        return Batch(batch.images / (1 + batch.images.mean()), batch.instances)


class Sorted(PlainDataset):
    def read(self, split, indices):
        return super().read(split, sorted(indices))


class Growing(PlainDataset):
    def __init__(self):
        self.reads = 0

    def read(self, split, indices):
        self.reads += 1
        batch = super().read(split, indices)
        return Batch(batch.images / self.reads, batch.instances)


class Bytes(PlainDataset):
    def read(self, split, indices):
        batch = super().read(split, indices)
        return Batch((batch.images * 255).byte(), batch.instances)


class Bright(PlainDataset):
    def read(self, split, indices):
        batch = super().read(split, indices)
        return Batch(batch.images * 255, batch.instances)


class Turned(PlainDataset):
    image_shape = (3, 8, 10)

    def read(self, split, indices):
        batch = super().read(split, indices)
        return Batch(batch.images.transpose(2, 3), batch.instances)


class Crowd(PlainDataset):
    max_objects = 0


class Negative(PlainDataset):
    def read(self, split, indices):
        batch = super().read(split, indices)
        return Batch(batch.images, batch.instances - 1)


class Nameless(PlainDataset):
    class_names = ("square",)

    def read(self, split, indices):
        batch = super().read(split, indices)
        return Batch(batch.images, classes=batch.instances * 2)


class Barren(PlainDataset):
    def count(self, split):
        return 0 if split == "test" else 5


class Untaught(PlainDataset):
    splits = ("test",)


class Unpicklable(PlainDataset):
    def __init__(self):
        self.paint = lambda: None


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (Noisy, "does not use or change the random state"),
        (Grouped, "one by one"),
        (Sorted, "in another order"),
        (Growing, "in another order"),
        (Bytes, "float32"),
        (Bright, r"in \[0, 1\]"),
        (Turned, "image_shape"),
        (Crowd, "max_objects"),
        (Negative, "0 or more"),
        (Nameless, "class_names"),
        (Barren, "'test' has 0"),
        (Untaught, "a split 'train'"),
        (Unpicklable, "pickled"),
    ],
)
def test_a_broken_dataset_is_refused(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_dataset(broken())


# Metrics.


class Stubborn(PlainMetric):
    def __init__(self):
        self.right, self.seen = 0, 0

    def reset(self):
        pass


class PerBatch(PlainMetric):
    """Averages over batches, whatever their size."""

    def reset(self):
        self.shares = []

    def update(self, scene, rendering, batch):
        right = rendering.instances() == batch.instances
        self.shares.append(right.float().mean().item())

    def compute(self):
        return sum(self.shares) / len(self.shares)


class Scored(PlainMetric):
    """Keeps the share of each image; some have none."""

    def reset(self):
        super().reset()
        self.scores = []

    def update(self, scene, rendering, batch):
        super().update(scene, rendering, batch)
        right = (rendering.instances() == batch.instances).flatten(1).float().mean(1)
        lacking = batch.instances[:, 0, 0] == 0
        self.scores += right.masked_fill(lacking, torch.nan).tolist()


def test_a_metric_may_keep_the_scores_of_images():
    metric = Scored()

    check_metric(metric)

    assert any(map(math.isnan, metric.scores))


class OneScore(Scored):
    """Keeps one score for a batch."""

    def update(self, scene, rendering, batch):
        super().update(scene, rendering, batch)
        self.scores = [sum(self.scores)]


class Ranked(Scored):
    """Forgets whose score is whose."""

    def update(self, scene, rendering, batch):
        super().update(scene, rendering, batch)
        self.scores.sort(key=lambda score: (math.isnan(score), score))


class Relative(Scored):
    """Scores an image by the others of its batch."""

    def update(self, scene, rendering, batch):
        PlainMetric.update(self, scene, rendering, batch)
        self.scores += torch.linspace(0, 1, len(batch)).tolist()


class Wishful(PlainMetric):
    needs = ("instances", "depth")


class Tensorial(PlainMetric):
    def compute(self):
        return torch.tensor(super().compute())


class Draining(PlainMetric):
    def compute(self):
        score = super().compute()
        self.right = 0
        return score


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (Stubborn, "reset forgets"),
        (PerBatch, "grouping images"),
        (OneScore, "one float for each"),
        (Ranked, "in the order of images"),
        (Relative, "does not change scores"),
        (Wishful, "depth"),
        (Tensorial, "one finite float"),
        (Draining, "compute changes nothing"),
    ],
)
def test_a_broken_metric_is_refused(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_metric(broken())


# Observers.


class Silent(Observer):
    def celstack_step_finished(self):
        """Lack the mark."""


class Misspelt(Observer):
    @hookimpl
    def celstack_step_finnished(self):
        """Wait for ever."""


class Curious(Observer):
    @hookimpl
    def celstack_step_finished(self, gradient):
        """Ask for what is not told."""


class Meddler(Observer):
    @hookimpl
    def celstack_evaluated(self, decomposer):
        decomposer.sprites.pixels.data.zero_()


class Gambler(Observer):
    @hookimpl
    def celstack_step_finished(self):
        torch.rand(1)


class Switch(Observer):
    @hookimpl
    def celstack_evaluated(self, decomposer):
        decomposer.eval()


class Homebound(Observer):
    """Fails where a run has no folder."""

    @hookimpl
    def celstack_run_started(self, folder):
        (folder / "notes.txt").touch()


class Provider(PlainObserver):
    @hookimpl
    def celstack_transforms(self):
        return {}


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (Silent, "at least one hook"),
        (Misspelt, "celstack_step_finnished"),
        (Curious, "gradient"),
        (Meddler, "celstack_evaluated did"),
        (Gambler, "celstack_step_finished did"),
        (Switch, "celstack_evaluated did"),
        (Homebound, "does not fail, but in celstack_run_started"),
        (Provider, "provides no parts"),
    ],
)
def test_a_broken_observer_is_refused(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_observer(broken())

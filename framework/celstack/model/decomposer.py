"""Decomposer: the model, which explains images as scenes and renders scenes as images."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from celstack.data.image_input import Images
from celstack.geometry.sampling import pixel_centers, sample_canvas
from celstack.geometry.soft_bounds import softclip
from celstack.geometry.windows import Windows
from celstack.interfaces.compositor import Compositor
from celstack.interfaces.predictor import ActiveTransforms, Outline, Prediction, Predictor
from celstack.interfaces.prototype import Prototype
from celstack.interfaces.selector import Selector
from celstack.interfaces.transform import Transform
from celstack.model.compositing import composite
from celstack.model.divergence import blame_divergence
from celstack.model.model_input import model_input
from celstack.model.scene_check import check_scene
from celstack.model.sprite_warp import SpriteWarp, warp_sprites
from celstack.model.transform_chain import TransformChain
from celstack.scene import Rendering, Scene


class Decomposer(nn.Module):
    """The model, made of exchangeable parts: ``explain`` and ``render`` are inverse.

    For example::

        decomposer = celstack.open_run("runs/coins").decomposer
        scene = decomposer.explain(images)
        reconstructions = decomposer.render(scene).image
    """

    def __init__(
        self,
        *,
        sprites: Prototype,
        compositor: Compositor,
        selector: Selector,
        sprite_transforms: Sequence[Transform] = (),
        layer_transforms: Sequence[Transform] = (),
        backgrounds: Prototype | None = None,
        background_transforms: Sequence[Transform] = (),
        predictor: Predictor | None = None,
    ) -> None:
        super().__init__()
        self.sprites = sprites
        self.backgrounds = backgrounds
        self.sprite_chain = TransformChain(sprite_transforms)
        self.layer_chain = TransformChain(layer_transforms)
        self.background_chain = TransformChain(background_transforms)
        self.compositor = compositor
        self.selector = self.own_selector = selector
        self.predictor = predictor
        self.channels = 0
        self.canvas = (0, 0)
        self.sprites_frozen = False
        # Loaded weights contain which transforms are active.
        self.register_load_state_dict_post_hook(Decomposer._activate_predictor)
        selector.check(self)

    def prepare(self, sample_images: Float[Tensor, "N C H W"]) -> None:
        """Create all learnable parameters, for images like these."""
        channels, height, width = sample_images.shape[1:]
        self.set_image_shape((channels, height, width))
        for prototype in filter(None, (self.sprites, self.backgrounds)):
            prototype.prepare(sample_images, with_alpha=prototype is self.sprites)
        if self.predictor is not None:
            self.predictor.prepare(self.outline())

    def allocate(self, image_shape: tuple[int, int, int]) -> None:
        """Create all learnable parameters for images of this shape; load their values next."""
        self.set_image_shape(image_shape)
        for prototype in filter(None, (self.sprites, self.backgrounds)):
            prototype.allocate(image_shape, with_alpha=prototype is self.sprites)
        if self.predictor is not None:
            self.predictor.prepare(self.outline())

    def set_image_shape(self, image_shape: tuple[int, int, int]) -> None:
        """Set the shape (C, H, W) of images; raise CelstackError if the selector refuses it."""
        self.channels, height, width = image_shape
        self.canvas = (height, width)
        for chain in (self.sprite_chain, self.layer_chain, self.background_chain):
            chain.prepare(self.channels, self.canvas)
        self.compositor.prepare(image_shape)
        self.selector.check(self)

    def outline(self) -> Outline:
        """Return the dimensions of the model."""
        return Outline(
            image_shape=(self.channels, *self.canvas),
            layers=self.compositor.layers,
            sprites=self.sprites.count,
            backgrounds=self.backgrounds.count if self.backgrounds is not None else 0,
            sprite_transforms=self.sprite_chain.sizes,
            layer_transforms=self.layer_chain.sizes,
            background_transforms=self.background_chain.sizes,
            occlusion_logits=self.compositor.num_logits,
        )

    def activate(self, transforms: Collection[str] | None) -> None:
        """Activate the named transforms alone, in every chain; None means all."""
        for chain in (self.sprite_chain, self.layer_chain, self.background_chain):
            chain.activate(transforms)
        self._activate_predictor()

    def _activate_predictor(self, *_: object) -> None:
        """Pass on to the predictor which transforms are active."""
        if self.predictor is not None and self.channels:
            chains = (self.sprite_chain, self.layer_chain, self.background_chain)
            active = (tuple(chain.active) for chain in chains)
            self.predictor.activate(ActiveTransforms(*active))

    def use_selector(self, selector: Selector | None) -> None:
        """Explain with another selector; None restores that of the constructor."""
        self.selector = selector or self.own_selector

    def predict(self, images: Float[Tensor, "B C H W"]) -> Prediction:
        """Predict parameters for every layer and sprite."""
        assert self.predictor is not None  # Selector.check refuses a model without one
        prediction: Prediction = self.predictor(images)
        return prediction

    def explain(self, images: Images, noise: Float[Tensor, "K H W"] | None = None) -> Scene:
        """Find the scenes that reproduce these images best, if rendered with this noise.

        In evaluation mode, images may be anything that ``celstack.read_images`` takes.
        """
        images = model_input(self, images, convert=not self.training)
        with blame_divergence(self):
            return self.selector.explain(images, self, noise, self.price is not None)

    @property
    def price(self) -> float | None:
        """The cost of a layer that is not empty; None while all layers must be filled.

        While sprites are frozen, none may be left out: they do not depict anything yet.
        """
        return None if self.sprites_frozen else self.selector.empty_cost

    def render(self, scene: Scene, noise: Float[Tensor, "K H W"] | None = None) -> Rendering:
        """Render scenes: images, layers, backdrops and visible masks."""
        if not self.training:  # in a training step, scenes come from the selector
            check_scene(scene, self.outline())
        return self._compose(scene, *self.render_layers(scene, noise))

    def _compose(
        self,
        scene: Scene,
        windows: Windows,
        color: Float[Tensor, "n C h w"],
        alpha: Float[Tensor, "n h w"],
    ) -> Rendering:
        """Composite the layers of ``render_layers`` by the compositor's own rule."""
        shown = torch.cat([color, alpha[:, None]], dim=1)
        stack = windows.spread(shown).unflatten(0, scene.sprite.shape)
        backdrop = self.render_backdrop(scene)
        image, visible = self.compositor.compose(stack, backdrop, scene.occlusion)
        return Rendering(image, stack, backdrop, visible)

    def reconstruct(
        self, scene: Scene, noise: Float[Tensor, "K H W"] | None = None
    ) -> tuple[Float[Tensor, "B C H W"], Float[Tensor, "n h w"]]:
        """Render only what training needs: the images, and the masks of ``render_layers``."""
        windows, color, alpha = self.render_layers(scene, noise)
        if type(self.compositor).compose is not Compositor.compose:
            # What is learned must be what is evaluated; the kernel below knows Eq. 2 alone.
            return self._compose(scene, windows, color, alpha).image, alpha
        batch, layers = shape = scene.sprite.shape
        image = composite(
            color.unflatten(0, shape),
            alpha.unflatten(0, shape),
            self.render_backdrop(scene),
            scene.occlusion,
            [windows.of(range(layer, batch * layers, layers)) for layer in range(layers)],
        )
        return image, alpha

    def render_layers(
        self, scene: Scene, noise: Float[Tensor, "K H W"] | None
    ) -> tuple[Windows, Float[Tensor, "n C h w"], Float[Tensor, "n h w"]]:
        """Transform each layer's sprite (Eq. 3); empty layers are transparent.

        Returns:
            Windows on n = B * L canvases, the layers of an image one after the other, and
            colors and masks in these windows. Layers are transparent outside.
        """
        sprite = scene.sprite.flatten()
        of_sprite = scene.sprite_params.flatten(0, 1)
        of_layer = scene.layer_params.flatten(0, 1)
        kinds = sprite.clamp_min(0)
        # Not images[kinds]: its gradient is summed in an order that depends on threads.
        images = self.sprite_images().index_select(0, kinds)
        images = self.sprite_chain.change_pixels(images, of_sprite)
        images = self.layer_chain.change_pixels(images, of_layer)
        # Noise is added where the sprite is: a channel of ones is warped along with it.
        images = torch.cat([images, torch.ones_like(images[:, :1])], dim=1)
        warp = SpriteWarp.from_chains(self.layer_chain, of_layer, self.sprite_chain, of_sprite)
        windows, found = warp_sprites(images, warp, self.canvas)
        colour, alpha, area = found.split([self.channels, 1, 1], dim=1)
        if noise is not None:
            alpha = torch.addcmul(alpha, area, windows.cut(noise[:, None], kinds))
        alpha = softclip(alpha[:, 0]) * scene.filled.flatten().to(alpha.dtype)[:, None, None]
        return windows, colour, alpha

    def sprite_images(self) -> Float[Tensor, "K D h w"]:
        """Return the sprites, color then alpha; detached while they are frozen."""
        images = self.sprites.images()
        return images.detach() if self.sprites_frozen else images

    def render_backdrop(self, scene: Scene) -> Float[Tensor, "B C H W"]:
        """Render the backgrounds of scenes; black if the model has none."""
        if self.backgrounds is None or scene.background is None:
            return scene.layer_params.new_zeros(len(scene), self.channels, *self.canvas)
        assert scene.background_params is not None
        return self._render_background(scene.background, scene.background_params)

    def render_backgrounds(self, params: Float[Tensor, "B M R"]) -> Float[Tensor, "B m C H W"]:
        """Render every background for every image; a black one if the model has none."""
        batch, count, _ = params.shape
        if self.backgrounds is None:
            return params.new_zeros(batch, 1, self.channels, *self.canvas)
        which = torch.arange(count, device=params.device).repeat(batch)
        shown = self._render_background(which, params.flatten(0, 1))
        return shown.unflatten(0, (batch, count))

    def _render_background(
        self, which: Int[Tensor, " n"], params: Float[Tensor, "n R"]
    ) -> Float[Tensor, "n C H W"]:
        assert self.backgrounds is not None
        images = self.backgrounds.images().index_select(0, which)
        images = self.background_chain.change_pixels(images, params)
        if not self.background_chain.has_warp() and images.shape[-2:] == self.canvas:
            return images[:, :-1]
        points = pixel_centers(*self.canvas, like=images).expand(len(images), -1, -1)
        points = self.background_chain.pull(points, params)
        return sample_canvas(images, points, self.canvas, outside="border")[:, :-1]

    def draw_noise(self, amount: float) -> Float[Tensor, "K H W"] | None:
        """Draw uniform noise for the masks of each sprite (supplementary, Sec. C.4)."""
        if amount == 0.0:
            return None
        # Drawn on the CPU, so that it is the same for every device.
        noise = (torch.rand(self.sprites.count, *self.canvas) * 2 - 1) * amount
        return noise.to(next(self.sprites.parameters()))

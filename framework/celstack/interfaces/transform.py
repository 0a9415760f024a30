"""Transform: how a sprite is changed before it is composited."""

from __future__ import annotations

import functools
import inspect
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from celstack.geometry.sampling import pixel_centers, sample_canvas
from celstack.interfaces.browser_code import BrowserCode
from celstack.interfaces.part import Part


class Transform(Part, nn.Module):
    """A differentiable map from images and parameters to images.

    A transform of pixel values::

        class Brighten(Transform):
            num_params = 1

            def forward(self, images, params):
                brighter = images[:, :-1] + params[:, :, None, None]
                return torch.cat([brighter, images[:, -1:]], dim=1)

    Images have their color channels first and alpha last. Transforms that move pixels
    derive from Warp instead, so that a chain of warps is resampled only once. Transforms
    that are not warps are applied to the sprite's own pixels, before all warps; within each
    of the two groups the order is the recipe's.

    Laws:
        All-zero parameters leave the sprite in its rest pose, the same for every image.
        Each image depends on its own row of parameters alone.
        Shape and dtype of the output are those of the input, inputs are not modified, and
        gradients reach images and parameters.
        Parameters of its own, the same for all images, are created in ``prepare`` and learn
        at the rate ``learning_rate``; gradients reach them.
        ``browser``, where it is implemented, computes the same.
    """

    num_params: int
    """The number of parameters P; known after ``prepare``."""
    learning_rate: float = 1e-3
    """The learning rate of parameters of its own (``nn.Parameter``), if it has any. To let
    recipes choose, set it from an argument of the constructor."""
    rest_is_identity: bool = True
    """Whether all-zero parameters change nothing. A transform whose rest pose is a change,
    such as one that shrinks sprites to an initial size, sets this to False."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "prepare" in cls.__dict__:
            cls.prepare = _taking_canvas(cls.prepare)  # type: ignore[method-assign]

    def prepare(self, channels: int, canvas: tuple[int, int] | None = None) -> None:
        """Set up for images of this kind; called before anything else.

        A class may leave out ``canvas`` if it does not need it.

        Args:
            channels: The number of color channels.
            canvas: Height and width of the images of the dataset. Sprites may be smaller.
                A model always knows it; None is for callers made for 0.1.0.
        """

    def tint(
        self,
        gains: Float[Tensor, "n C"],  # noqa: ARG002
        offsets: Float[Tensor, "n C"] | None = None,  # noqa: ARG002
    ) -> Float[Tensor, "n P"] | None:
        """Return the parameters that multiply colors by gains, then add offsets.

        Args:
            gains: One factor per channel.
            offsets: One summand per channel; None for none.

        Returns:
            The parameters; None if the transform cannot do exactly this (the default).
        """
        return None

    def params_from_target(
        self,
        images: Float[Tensor, "n C h w"],  # noqa: ARG002
        targets: Float[Tensor, "n C h w"],  # noqa: ARG002
        weights: Float[Tensor, "n 1 h w"],  # noqa: ARG002
    ) -> Float[Tensor, "n P"] | None:
        """Return the parameters that bring images near to targets.

        Args:
            images: The images before the transform, without alpha.
            targets: What they should look like.
            weights: How much each pixel counts; 0 where something else hides the image.

        Returns:
            The parameters; None, the default, if the transform cannot be solved for them.
        """
        return None

    def browser(self) -> BrowserCode | None:
        """Return JavaScript that computes the same in the scene editor of a report.

        Called after ``prepare``. With None, the default, scenes of recipes that use the
        transform can be viewed in the report, but not edited there.
        """
        return None

    @abstractmethod
    def forward(
        self, images: Float[Tensor, "n D h w"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n D h w"]:
        """Return the transformed images."""


def _taking_canvas(prepare: Callable[..., None]) -> Callable[..., None]:
    """Let ``prepare`` be called with the canvas, also where it takes ``channels`` alone."""
    parameters = inspect.signature(prepare).parameters.values()
    if any(p.name == "canvas" or p.kind == p.VAR_KEYWORD for p in parameters):
        return prepare

    @functools.wraps(prepare)
    def prepare_without(self: Any, channels: int, canvas: Any = None) -> None:  # noqa: ARG001
        prepare(self, channels)

    return prepare_without


class Warp(Transform):
    """A transform that moves pixels, defined as a map of coordinates.

    For example::

        class Shift(Warp):
            num_params = 2

            def pull(self, points, params):
                return points - params[:, None]

    Convention: points are (x, y), y down, in units of half the longer side
    (``celstack.geometry``); ``pull`` maps a point of the canvas to the point of the
    sprite that is shown there (an inverse, or backward, warp).

    Laws:
        Those of Transform, and each point is mapped independently of the others.
        ``matrix``, where it is implemented, is the same map as ``pull``.
        A warp that implements ``params_from_matrix`` implements ``matrix``. The two are
        inverse to each other at the rest pose and at every matrix that they return.
    """

    renamed = {"place": "params_from_matrix"}

    @abstractmethod
    def pull(
        self, points: Float[Tensor, "n m 2"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n m 2"]:
        """Map points of the canvas to points of the sprite."""

    def matrix(self, params: Float[Tensor, "n P"]) -> Float[Tensor, "n r 3"] | None:  # noqa: ARG002
        """Return the same map as a matrix; None, the default, if it is not a homography.

        Chains of warps with matrices are multiplied together before any point is mapped,
        which saves most of the work.

        Returns:
            Matrices of the convention in ``celstack.geometry``: 2 x 3 for an
            affine map, 3 x 3 for a homography.
        """
        return None

    def params_from_matrix(self, matrix: Float[Tensor, "n 2 3"]) -> Float[Tensor, "n P"] | None:  # noqa: ARG002
        """Return the parameters whose ``matrix`` is nearest to this one.

        What the warp cannot express, such as a rotation, is left out, but the point that is
        mapped to the sprite's center stays the same.

        Returns:
            The parameters; None, the default, if the warp cannot be solved for them.
        """
        return None

    def forward(
        self, images: Float[Tensor, "n D h w"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n D h w"]:
        """Warp images on a canvas of their own size; transparent outside the images."""
        height, width = images.shape[-2:]
        points = pixel_centers(height, width, images).expand(len(images), -1, -1)
        return sample_canvas(
            images, self.pull(points, params), (height, width), outside="zeros"
        )

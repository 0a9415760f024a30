"""Transform: what may happen to a sprite on its way to the canvas."""

from __future__ import annotations

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from celstack.geometry.sampling import canvas_points, sample
from celstack.interfaces.browser_code import BrowserCode
from celstack.interfaces.part import Part


class Transform(Part, nn.Module):
    """Parameters and images to images.

    A transform of colours or shapes::

        class Brighten(Transform):
            num_params = 1

            def forward(self, images, params):
                brighter = images[:, :-1] + params[:, :, None, None]
                return torch.cat([brighter, images[:, -1:]], dim=1)

    Images have their colour channels first and alpha last. Transforms that move pixels
    derive from Warp instead, so that a chain of them is sampled once. Pixel transforms
    act on the sprite's own pixels, before any warp; among themselves both keep the
    recipe's order.

    Laws:
        All-zero parameters leave the sprite in its rest pose, the same for every image.
        Each image depends on its own row of parameters alone.
        Shapes and precision stay as they are, what is given is not written into, and
        gradients reach images and parameters.
        ``browser``, where it is given, does the same.
    """

    num_params: int
    rest_is_identity: bool = True
    """Whether the rest pose changes nothing; a transform that places sprites may differ."""

    def prepare(self, channels: int) -> None:
        """Learn how many colour channels images have, before anything else."""

    def tint(
        self,
        gains: Float[Tensor, "n C"],  # noqa: ARG002
        offsets: Float[Tensor, "n C"] | None = None,  # noqa: ARG002
    ) -> Float[Tensor, "n P"] | None:
        """Return the parameters that multiply colours by these gains, then add these offsets.

        Both are per channel. None, unless a transform says otherwise: it cannot do what is
        asked, all of it.
        """
        return None

    def browser(self) -> BrowserCode | None:
        """Return the JavaScript with which the scene editor of a report does the same.

        None, unless a transform says otherwise: scenes of recipes that use it can be looked
        at in the report, but not edited there. Asked after ``prepare``.
        """
        return None

    @abstractmethod
    def forward(
        self, images: Float[Tensor, "n D h w"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n D h w"]:
        """Return the images as the parameters would have them."""


class Warp(Transform):
    """A transform that moves pixels, told as coordinates.

    Convention: points are (x, y), y down, in units of half the longer side
    (``celstack.geometry.sampling``); ``pull`` says where a point of the canvas looks in the
    sprite.

    Laws:
        Those of Transform; and points do not influence one another. ``matrix``, where it is
        given, says the same as ``pull``. A warp that can ``place`` has a matrix, and finds that
        of its rest pose, and of any place that it has found before, again.
    """

    @abstractmethod
    def pull(
        self, points: Float[Tensor, "n m 2"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n m 2"]:
        """Return where each point looks."""

    def matrix(self, params: Float[Tensor, "n P"]) -> Float[Tensor, "n r 3"] | None:  # noqa: ARG002
        """Return the same map as a matrix, or None if it is not one.

        Matrices are those of ``celstack.geometry.homography``.

        Chains of such warps are multiplied together beforehand, which saves most of the work.
        """
        return None

    def place(self, matrix: Float[Tensor, "n 2 3"]) -> Float[Tensor, "n P"] | None:  # noqa: ARG002
        """Return the parameters whose own matrix is nearest to this one.

        What a warp cannot follow, such as a turn, it leaves out, but the point that looks at
        the sprite's centre stays. None, unless a warp says otherwise: it cannot be told where
        to look.
        """
        return None

    def forward(
        self, images: Float[Tensor, "n D h w"], params: Float[Tensor, "n P"]
    ) -> Float[Tensor, "n D h w"]:
        """Warp images on a canvas of their own size; outside is transparent."""
        height, width = images.shape[-2:]
        points = canvas_points(height, width, images).expand(len(images), -1, -1)
        return sample(images, self.pull(points, params), (height, width), outside="zeros")

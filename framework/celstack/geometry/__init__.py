"""Geometry: points, homographies, windows on a canvas, and soft bounds.

Public; uses nothing of Celstack. ``sampling`` states the convention of coordinates and
``homography`` that of matrices::

    from celstack.geometry import pixel_centers, sample_points
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celstack.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from celstack.geometry.homography import (
        bounding_box,
        clamp_depth,
        compose_matrices,
        factor_out,
        sampling_grid,
        to_3x3,
        to_grid_units,
    )
    from celstack.geometry.sampling import (
        boxes_meet_image,
        extent,
        pixel_centers,
        points_meet_image,
        sample_canvas,
        sample_points,
    )
    from celstack.geometry.soft_bounds import SOFTCLIP_SLOPE, softclip, softexp
    from celstack.geometry.windows import Windows, enclosing_windows

# Imported when first used, because all of them import torch.
_HOME = {
    "SOFTCLIP_SLOPE": "soft_bounds",
    "Windows": "windows",
    "bounding_box": "homography",
    "boxes_meet_image": "sampling",
    "clamp_depth": "homography",
    "compose_matrices": "homography",
    "enclosing_windows": "windows",
    "extent": "sampling",
    "factor_out": "homography",
    "pixel_centers": "sampling",
    "points_meet_image": "sampling",
    "sample_canvas": "sampling",
    "sample_points": "sampling",
    "sampling_grid": "homography",
    "softclip": "soft_bounds",
    "softexp": "soft_bounds",
    "to_3x3": "homography",
    "to_grid_units": "homography",
}

__all__ = [
    "SOFTCLIP_SLOPE",
    "Windows",
    "bounding_box",
    "boxes_meet_image",
    "clamp_depth",
    "compose_matrices",
    "enclosing_windows",
    "extent",
    "factor_out",
    "pixel_centers",
    "points_meet_image",
    "sample_canvas",
    "sample_points",
    "sampling_grid",
    "softclip",
    "softexp",
    "to_3x3",
    "to_grid_units",
]

__getattr__ = lazy_getattr(__name__, _HOME)

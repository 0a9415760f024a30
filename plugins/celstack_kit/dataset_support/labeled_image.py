"""The labeled image: pixels with their instance and class maps."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class LabeledImage(NamedTuple):
    """An image (H, W, 3) with instance and class ids of each pixel (H, W), 0 for background."""

    image: NDArray[np.uint8]
    instances: NDArray[np.uint8]
    classes: NDArray[np.uint8]

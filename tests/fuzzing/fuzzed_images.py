"""Images in all formats that are common, mutated."""

import io

import numpy as np
from mutations import mutated_bytes
from PIL import Image
from trial import Kind

from celstack.data.images import find_images, read_center_cropped
from celstack_kit.datasets.image_folder import ImageFolder
from celstack_kit.formats.images import as_tensor, decode, decode_ids

SIZE = (5, 7)
FORMATS = {
    "png": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "jpeg": ("L", "RGB", "CMYK"),
    "webp": ("RGB", "RGBA"),
    "bmp": ("1", "L", "P", "RGB"),
    "ppm": ("1", "L", "RGB"),
    "gif": ("L", "P"),
    "tiff": ("1", "L", "RGB", "RGBA", "I;16", "F"),
    "tga": ("L", "RGB", "RGBA"),
    "ico": ("RGBA",),
    "eps": ("L", "RGB"),
    "sgi": ("L", "RGB"),
}


def drawn(mode):
    """Draw a small image of a mode."""
    levels = np.arange(SIZE[0] * SIZE[1] * 4, dtype=np.uint8).reshape(*SIZE, 4)
    if mode == "I;16":
        return Image.fromarray(levels[..., 0].astype(np.uint16) * 300)
    return Image.fromarray(levels).convert(mode)


def saved(mode, kind):
    """Return the bytes of an image file, with what a camera would add."""
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    options = {"exif": exif} if kind in ("jpeg", "png", "webp") else {}
    drawn(mode).save(file, kind, **options)
    return file.getvalue()


class Images(Kind):
    """Those who decode images for learning, and those who take them apart, read them."""

    def __init__(self, folder):
        super().__init__(folder)
        self.files = [saved(mode, kind) for kind, modes in FORMATS.items() for mode in modes]
        self.path = folder / "images" / "my.png"
        self.path.parent.mkdir()

    def attempt(self, random):
        data = mutated_bytes(random, random.choice(self.files))
        self.path.write_bytes(data)
        random.choice((self.fit, self.learn, self.label, self.decode))(random, data)

    def fit(self, random, data):
        (found,), _ = find_images([self.path], self.folder / "out")
        fitted = read_center_cropped(found.path, (4, 6), channels := random.choice((1, 3)))
        assert fitted.size == (6, 4)
        assert len(fitted.getbands()) == channels

    def learn(self, random, data):
        folder = ImageFolder(self.path.parent, (4, 6))
        assert folder.read("train", range(folder.count("train"))).images.shape == (1, 3, 4, 6)

    def label(self, random, data):
        assert decode_ids(self.path).ndim == 2

    def decode(self, random, data):
        assert as_tensor(decode(data, "my.png")).shape[0] == 3

"""TFRecords: whole files mutated, and messages mutated inside sound records."""

import gzip

import numpy as np
from mutations import mutated_bytes
from tfrecords import example, framed, scene
from trial import Kind

from celstack.errors import CelstackError
from celstack_kit.dataset_support.object_records import read_object_records
from celstack_kit.datasets.clevr6 import Clevr6
from celstack_kit.datasets.multi_dsprites import MultiDsprites
from celstack_kit.datasets.tetrominoes import Tetrominoes

SMALL = (4, 4)
"""Height and width of scenes whose classes are in the record, so that size is no matter."""


class Records(Kind):
    """All three datasets that are published as records read them."""

    def __init__(self, folder):
        super().__init__(folder)
        # Of tetrominoes, the mask says what they are; it needs all of its pixels.
        piece = np.zeros((2, 35, 35), bool)
        piece[1, 5:15, 5:15] = True
        piece[0] = ~piece[1]
        square = np.zeros((3, *SMALL), bool)
        square[1, :2], square[2, 3:], square[0, 2] = True, True, True
        image = np.arange(48).reshape(*SMALL, 3)
        kinds = {"shape": [0.0, 1.0, 2.0], "material": [0.0, 1.0, 1.0]}
        self.origins = [
            (Tetrominoes(source="records"), (35, 35), scene(np.ones((35, 35, 3)), piece)),
            (MultiDsprites(source="records"), SMALL, scene(image, square, False, **kinds)),
            (Clevr6(source="records"), SMALL, scene(image, square, **kinds)),
            (Clevr6(source="records"), SMALL, example(shape=np.arange(-2, 3), image=image)),
        ]
        self.frames = [framed(message) for _, _, message in self.origins]

    def attempt(self, random):
        number = random.randrange(len(self.origins))
        dataset, size, message = self.origins[number]
        whole = self.frames[number] * random.randint(1, 3)
        if random.random() < 0.5:
            whole = framed_fast(mutated_bytes(random, message)) + self.frames[number]
        path = self.folder / "my.tfrecords"
        if random.random() < 0.5:
            whole = gzip.compress(whole, 1)
        path.write_bytes(whole if random.random() < 0.3 else mutated_bytes(random, whole))
        convert = dataset.from_record
        if isinstance(dataset, Clevr6):
            dataset._kinds.clear()
        found = list(read_object_records(path, size, convert))
        for one in found:
            if isinstance(one, CelstackError):
                raise one
            assert one.image.shape == (*one.instances.shape, 3)
            assert one.classes.shape == one.instances.shape


def framed_fast(message):
    """Do as ``framed``, whose checksum is slow, by the reader's own."""
    from celstack_kit.formats.tfrecord import FOOTER, HEADER, masked_crc32c

    length = len(message).to_bytes(8, "little")
    head = HEADER.pack(len(message), masked_crc32c(length))
    return head + message + FOOTER.pack(masked_crc32c(message))

"""Archives that are unpacked or read in place: mutated bytes, and names that are mischief."""

import io
import shutil
import stat
import tarfile
import zipfile

import numpy as np
from fuzzed_images import saved
from mutations import mutated_bytes, word
from trial import Kind

from celstack.data.download.archives import extract
from celstack_kit.datasets.gtsrb8 import ARCHIVE as SIGNS
from celstack_kit.datasets.gtsrb8 import CLASSES, Gtsrb8
from celstack_kit.datasets.gtsrb8 import FOLDER as SIGNS_FOLDER
from celstack_kit.datasets.multi_dsprites.shapes import MEMBER, PublishedShapes
from celstack_kit.datasets.weizmann_horse import ARCHIVE as HORSES
from celstack_kit.datasets.weizmann_horse import FOLDER as HORSES_FOLDER
from celstack_kit.datasets.weizmann_horse import WeizmannHorse

NAMES = (
    "../up",
    "/tmp/absolute",
    "a/../../up",
    "C:\\windows",
    "a\\..\\up",
    "A/b.txt",
    "a",
    ".",
    "",
    "a/",
    "nul\0byte",
    "a" * 300,
    "a/" * 100,
    "//x",
    "\x1b[31m",
)
ENTRIES = (b"0", b"0", b"0", b"1", b"2", b"3", b"5", b"6", b"S", b"x")
"""Files, links, devices, folders, pipes, and what only looks like a file."""
TAPES = {"tar": "", "tar.gz": "gz", "tar.bz2": "bz2", "tar.xz": "xz"}


def zipped(members, kind=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def taped(members, packing=""):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=f"w:{packing}") as archive:
        for name, data in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
    return file.getvalue()


def wicked_zip(random):
    """Pack some files under names, kinds and sizes that nobody needs."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(random.randint(1, 4)):
            about = zipfile.ZipInfo(odd_name(random, number))
            kind = random.choice((0, stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO))
            about.external_attr = (kind | 0o644) << 16
            about.compress_type = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
            # Two spellings of one name make Python warn while it packs.
            if about.filename not in archive.namelist():
                bomb = b"\0" * 2**21 if random.random() < 0.1 else b"../../evil"
                archive.writestr(about, bomb)
    return file.getvalue()


def wicked_tar(random):
    """Do the same on tape, where there are devices, too."""
    file, layouts = io.BytesIO(), (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT)
    with tarfile.open(fileobj=file, mode="w", format=random.choice(layouts)) as archive:
        for number in range(random.randint(1, 4)):
            about = tarfile.TarInfo(odd_name(random, number).replace("\0", "0")[:90])
            about.type = random.choice(ENTRIES)
            about.linkname = random.choice(("/etc/passwd", "a", ".."))
            data = b"evil" * random.choice((1, 200))
            about.size = len(data) if about.isreg() else 0
            archive.addfile(about, io.BytesIO(data) if about.isreg() else None)
    return file.getvalue()


def odd_name(random, number):
    choice = random.random()
    if choice < 0.4:
        return f"a/{number}.txt"
    return random.choice(NAMES) if choice < 0.8 else word(random) or "b"


class Archives(Kind):
    """They are unpacked as downloads are, and read in place as datasets are."""

    def __init__(self, folder):
        super().__init__(folder)
        members = {"a/b.txt": b"text" * 50, "a/c/d.bin": bytes(range(256)), "e": b""}
        self.plain = {"zip": zipped(members)}
        self.plain |= {ending: taped(members, packing) for ending, packing in TAPES.items()}
        sign = saved("RGB", "ppm")
        listed = b"Filename;Width\n00000_00000.ppm;5\n"
        signs = {}
        for number in CLASSES:
            start = f"{SIGNS_FOLDER}/{number:05}"
            signs |= {f"{start}/GT-{number:05}.csv": listed, f"{start}/00000_00000.ppm": sign}
        kinds = ("rgb", "figure_ground")
        horse = saved("RGB", "jpeg")
        horses = {f"{HORSES_FOLDER}/{kind}/horse001.jpg": horse for kind in kinds}
        self.signs, self.horses = zipped(signs), taped(horses)
        array = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            array, {"descr": "|u1", "fortran_order": False, "shape": (737280, 64, 64)}
        )
        self.array = array.getvalue() + bytes(5000)
        self.into = folder / "into"

    def attempt(self, random):
        shutil.rmtree(self.into, ignore_errors=True)
        self.into.mkdir()
        readers = (self.read_signs, self.read_horses, self.read_shapes)
        random.choice((self.unpack, self.unpack, *readers))(random)

    def unpack(self, random):
        choice = random.random()
        if choice < 0.5:
            ending = random.choice([*self.plain])
            data = mutated_bytes(random, self.plain[ending])
        else:
            ending = random.choice(("zip", "tar"))
            data = (wicked_zip if ending == "zip" else wicked_tar)(random)
            data = data if choice < 0.9 else mutated_bytes(random, data)
        path = self.folder / f"my.{ending}"
        path.write_bytes(data)
        try:
            made = extract(path, self.into, lambda *_: None)
        except Exception:
            assert not list(self.into.iterdir()), "what is refused leaves nothing behind"
            raise
        finally:
            path.unlink()
        assert {*made} == {*self.into.iterdir()}
        for one in self.into.rglob("*"):
            assert not one.is_symlink() and (one.is_file() or one.is_dir()), one

    def read_signs(self, random):
        (self.into / SIGNS).write_bytes(mutated_bytes(random, self.signs))
        dataset = Gtsrb8(self.into, size=(4, 4))
        assert dataset.read("train", [0]).images.shape == (1, 3, 4, 4)

    def read_horses(self, random):
        (self.into / HORSES).write_bytes(mutated_bytes(random, self.horses))
        dataset = WeizmannHorse(self.into, size=(4, 4))
        assert dataset.read("train", [0]).images.shape == (1, 3, 4, 4)

    def read_shapes(self, random):
        array = self.array if random.random() < 0.3 else mutated_bytes(random, self.array)
        data = zipped({MEMBER: array})
        path = self.into / "dsprites.npz"
        path.write_bytes(data if random.random() < 0.5 else mutated_bytes(random, data))
        PublishedShapes(path)

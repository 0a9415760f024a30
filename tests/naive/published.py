"""Tiny copies of published datasets, in the publishers' formats; each returns its folder."""

import atexit
import io
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

SIGNS = "GTSRB/Final_Training/Images"
HORSES = "weizmann_horse_db"


def somewhere():
    folder = Path(tempfile.mkdtemp(prefix="celstack-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def ppm(pixels):
    """The binary portable pixmap of GTSRB, byte for byte."""
    height, width, _ = pixels.shape
    return f"P6\n{width} {height}\n255\n".encode() + pixels.astype(np.uint8).tobytes()


def jpeg(pixels, **options):
    written = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(written, "JPEG", quality=95, **options)
    return written.getvalue()


def sign_files(per_class=2, classes=(3, 7, 9, 11, 17, 18, 25, 35)):
    """GTSRB: images of a class's number times 5, of many sizes, and each class's table."""
    files = {}
    for number in classes:
        folder = f"{SIGNS}/{number:05}"
        rows = ["Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"]
        for image in range(per_class):
            width, height = 15 + number, 20 + image
            name = f"{image // 30:05}_{image % 30:05}.ppm"
            files[f"{folder}/{name}"] = ppm(np.full((height, width, 3), 5 * number))
            rows.append(f"{name};{width};{height};5;5;{width - 5};{height - 5};{number}")
        files[f"{folder}/GT-{number:05}.csv"] = "".join(f"{row}\r\n" for row in rows).encode()
    return files


def horse_files(count=3):
    """Weizmann: a red left half on blue; the silhouette is smaller than its image."""
    files = {}
    for number in range(1, count + 1):
        image = np.zeros((40, 80, 3))
        image[:, :40, 0], image[:, 40:, 2] = 255, 255
        horse = np.zeros((24, 48))
        horse[:, :24] = 255
        files[f"{HORSES}/rgb/horse{number:03}.jpg"] = jpeg(image, subsampling=0)
        files[f"{HORSES}/figure_ground/horse{number:03}.jpg"] = jpeg(horse)
    return files


def as_zip(files, folder=None, name="GTSRB_Final_Training_Images.zip"):
    folder = folder or somewhere()
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in files.items():
            archive.writestr(member, data)
    return folder


def as_tar(files, folder=None, name="weizmann_horse_db.tar"):
    folder = folder or somewhere()
    with tarfile.open(folder / name, "w") as archive:
        for member, data in files.items():
            header = tarfile.TarInfo(member)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    return folder


def as_folder(files, folder=None):
    folder = folder or somewhere()
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def digits(labels, name="test", folder=None, level=0):
    """SVHN: X is 32 x 32 x 3 x N; here each image has a brightness, and one pixel apart."""
    folder = folder or somewhere()
    pixels = np.zeros((32, 32, 3, len(labels)), np.uint8)
    pixels[:] = level + np.arange(len(labels))
    pixels[2, 30, 1] = 255
    columns = {"X": pixels, "y": np.array(labels, np.uint8)[:, None]}
    savemat(folder / f"{name}_32x32.mat", columns, do_compression=True)
    return folder


def pictures(folder=None):
    """A folder of one's own: four images in two folders."""
    colours = {"red/a.png": (255, 0, 0), "red/b.png": (200, 0, 0)}
    colours |= {"blue/a.png": (0, 0, 255), "blue/deep/c.jpg": (0, 0, 200)}
    folder = folder or somewhere()
    for name, colour in colours.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (30, 20), colour).save(folder / name)
    return folder

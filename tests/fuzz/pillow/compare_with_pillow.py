#!/usr/bin/env python3
"""Differential fuzzing of the JPEG and PNG readers: pictures of every kind that Pillow writes, whole and with bytes
changed, are decoded by Pillow (libjpeg-turbo, zlib) and by the program `decode_pictures`.

    tests/fuzz/compare_with_pillow.py --decoder build/tests/decode_pictures --pictures 2000

What both decode must be the same to the bit. What one refuses alone is counted, and shown with --verbose: Tessera
refuses damaged pictures that Pillow fills up. Exit code 1 where pixels differ, or where a whole picture is refused.

One difference is told and is no fault: a progressive JPEG that is damaged so that scans seem to be missing is smoothed
by libjpeg, and its releases smooth differently. Pillow carries one of its own."""

import argparse
import io
import random
import subprocess
import sys
import tempfile
import warnings
import zlib
from pathlib import Path

from PIL import Image

LARGEST = 1 << 22  # pixels; damaged headers ask for more, which only takes time


def noise(random_, mode, size):
    """Smooth colours with noise on them, so that every coefficient of a JPEG occurs."""
    small = Image.frombytes("RGB", (4, 4), random_.randbytes(48)).resize(size, Image.BICUBIC)
    rough = Image.frombytes("RGB", size, random_.randbytes(3 * size[0] * size[1]))
    picture = Image.blend(small, rough, random_.choice([0.02, 0.3, 1.0]))
    if mode in ("LA", "RGBA"):
        alpha = Image.frombytes("L", size, random_.randbytes(size[0] * size[1]))
        picture.putalpha(alpha)
    return picture.convert(mode)


def jpeg(random_, size):
    picture = noise(random_, random_.choice(["RGB", "RGB", "L"]), size)
    return picture, "JPEG", {
        "quality": random_.randint(1, 100),
        "subsampling": random_.randint(0, 2),
        "progressive": random_.random() < 0.4,
        "optimize": random_.random() < 0.5,
        **({"restart_marker_blocks": random_.randint(1, 5)} if random_.random() < 0.3 else {}),
    }


def png(random_, size):
    picture = noise(random_, random_.choice(["RGB", "L", "P", "1", "RGBA", "LA"]), size)
    return picture, "PNG", {"optimize": random_.random() < 0.3, "compress_level": random_.randint(0, 9)}


def make(random_):
    """The bytes of a picture, and whether they are as they were written."""
    size = (random_.randint(1, 70), random_.randint(1, 70))
    picture, form, options = random_.choice([jpeg, png])(random_, size)
    out = io.BytesIO()
    picture.save(out, form, **options)
    data = bytearray(out.getvalue())
    if random_.random() < 0.4:
        return bytes(data), form, True
    for _ in range(random_.choice([1, 1, 2, 8])):
        at = random_.randrange(len(data))
        kind = random_.random()
        if kind < 0.6:
            data[at] ^= 1 << random_.randrange(8)
        elif kind < 0.8:
            data[at] = random_.choice([0, 255, random_.randrange(256)])
        elif len(data) > 60:
            del data[at:at + random_.randint(1, 20)]
    return bytes(data), form, False


def by_pillow(data):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=["JPEG", "PNG"]) as picture:
                if picture.width * picture.height > LARGEST:
                    return None
                mode = picture.mode
                pixels = picture.convert("RGB")
                mode += " progressive" if "progressive" in picture.info else ""
        return f"{pixels.height} {pixels.width} {zlib.crc32(pixels.tobytes())}", mode
    except Exception as error:  # Pillow raises many kinds
        return f"refused: {error}", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decoder", required=True)
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", help="a folder for the pictures that differ")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    random_ = random.Random(args.seed)
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for number in range(args.pictures):
            data, form, whole = make(random_)
            theirs = by_pillow(data)
            if theirs is None:
                continue
            path = Path(folder) / f"{number}.{form.lower()}"
            path.write_bytes(data)
            made.append((path, form, whole, theirs))
        lines = subprocess.run([args.decoder], input="".join(f"{path}\n" for path, *_ in made), text=True,
                               stdout=subprocess.PIPE, check=True).stdout.splitlines()
        assert len(lines) == len(made), "decode_pictures ended early"
        wrong = 0
        for (path, form, whole, (theirs, mode)), ours in zip(made, lines):
            refused = ours.startswith("refused"), theirs.startswith("refused")
            outcome = {(True, True): "both refuse", (True, False): "Tessera alone refuses",
                       (False, True): "Pillow alone refuses"}.get(refused, "same" if ours == theirs else "DIFFERENT")
            if outcome == "DIFFERENT" and not whole and "progressive" in mode:
                outcome = "smoothed differently"
            key = (form, "whole" if whole else "damaged", outcome)
            counts[key] = counts.get(key, 0) + 1
            bad = outcome == "DIFFERENT" or (whole and outcome != "same")
            wrong += bad
            if bad or (args.verbose and outcome not in ("same", "both refuse")):
                print(f"{path.name} {mode} {'whole' if whole else 'damaged'}: {ours} | {theirs}")
            if bad and args.keep:
                Path(args.keep).mkdir(parents=True, exist_ok=True)
                (Path(args.keep) / path.name).write_bytes(path.read_bytes())
    for key, count in sorted(counts.items()):
        print(f"{count:7} {' '.join(key)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

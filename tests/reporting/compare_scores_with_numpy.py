#!/usr/bin/env python3
"""Compares `tessera score` with what numpy computes, and reads with numpy what `tessera sample` writes.

    compare_scores_with_numpy.py --tessera build/tessera

The Frechet distance is computed here by the eigenvalues of the product of both covariances, which is not symmetric,
the inception score by its definition, precision and recall by all distances one by one; where scipy is there, its sqrtm
gives the distance too. Features go in as .npz, deflated .npz, .npy and as mu and sigma.

Exit code 1 where a score differs by more than 1e-8 of its size (1e-6 beside sqrtm), or a file is not read as it should
be; 77 where numpy is missing.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

try:
    import numpy as np
except ImportError as error:
    print(f"skipped: python3 has no {error.name}")
    sys.exit(77)

faults = []


def compare(what, ours, theirs, tolerance=1e-8):
    equal = abs(ours - theirs) <= tolerance * max(abs(theirs), 1e-3)
    print(f"{what}: {ours!r}, numpy {theirs!r}{'' if equal else '  DIFFERS'}")
    if not equal:
        faults.append(what)


def expect(what, holds):
    print(f"{what}: {'yes' if holds else 'NO'}")
    if not holds:
        faults.append(what)


def run(tessera, *arguments):
    done = subprocess.run([tessera, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"tessera {arguments}: {done.stderr}")
    return done.stdout


def frechet(a, b):
    (m1, c1), (m2, c2) = [(x.mean(0), np.cov(x, rowvar=False)) for x in (a, b)]
    roots = np.sqrt(np.maximum(np.linalg.eigvals(c1 @ c2).real, 0))
    distance = ((m1 - m2) ** 2).sum() + np.trace(c1) + np.trace(c2) - 2 * roots.sum()
    try:
        from scipy.linalg import sqrtm
        by_root = ((m1 - m2) ** 2).sum() + np.trace(c1 + c2 - 2 * sqrtm(c1 @ c2).real)
        compare("the two ways of numpy and scipy", distance, by_root, 1e-6)
    except ImportError:
        pass
    return distance


def inception(p, splits):
    scores = []
    for s in range(splits):
        part = p[s * len(p) // splits:(s + 1) * len(p) // splits]
        scores.append(np.exp((part * np.log(part / part.mean(0))).sum(1).mean()))
    return np.mean(scores), np.std(scores)


def covered(points, centres, k):
    """The share of points within the k-th neighbour's distance of some centre."""
    radii = [np.sort(np.linalg.norm(centres - c, axis=1))[k] for c in centres]      # [0] is the centre itself
    return np.mean([(np.linalg.norm(centres - x, axis=1) <= radii).any() for x in points])


def check_scores(tessera, folder):
    generator = np.random.default_rng(1)
    mix = generator.normal(size=(48, 48)) / 5
    real = generator.normal(size=(600, 48)) @ mix + 1
    drawn = generator.normal(size=(500, 48)) @ mix * 1.2 + 1.1
    logits = generator.normal(size=(500, 30)) * 3
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    np.savez(folder / "real.npz", features=real)
    np.savez_compressed(folder / "drawn.npz", features=drawn, logits=logits)
    np.savez_compressed(folder / "statistics.npz", mu=real.mean(0), sigma=np.cov(real, rowvar=False))
    np.save(folder / "drawn.npy", drawn)
    scores = json.loads(run(tessera, "score", folder / "real.npz", folder / "drawn.npz", "--neighbours", 3, "--json"))
    wanted = frechet(real, drawn)
    compare("FID", scores["fid"], wanted)
    mean, deviation = inception(p, 10)
    compare("inception score", scores["inception_score"], mean)
    compare("its deviation", scores["inception_score_deviation"], deviation)
    compare("precision", scores["precision"], covered(drawn, real, 3))
    compare("recall", scores["recall"], covered(real, drawn, 3))
    again = json.loads(run(tessera, "score", folder / "statistics.npz", folder / "drawn.npy", "--json"))
    compare("FID from statistics", again["fid"], wanted)
    expect("the FID tells the sets apart", wanted > 0.1)


def check_samples(tessera, folder):
    model = ["--set", "model.dim=16", "--set", "model.depth=1", "--set", "model.attention.heads=2", "--set",
             "model.attention.head_dim=8", "--set", "model.time_dim=16", "--set", "model.steps=40"]
    train = ["--epochs", 1, "--batch", 8, "--set", "schedule.warmup_epochs=0", *model]
    run(tessera, "train", "--model", "dit-xt", "--dataset", "shapes", "--image-size", 16, "--set",
        "data.train_images=32", "--set", "data.validation_images=10", "--out", folder / "pixels", *train)
    file = folder / "pixels.npz"
    run(tessera, "sample", folder / "pixels", "--count", 11, "--steps", 3, "--out", file)
    with np.load(file) as arrays:
        expect("arrays", arrays.files == ["arr_0", "arr_1"])
        expect("pictures", arrays["arr_0"].shape == (11, 16, 16, 3) and arrays["arr_0"].dtype == np.uint8)
        expect("that differ", len(np.unique(arrays["arr_0"].reshape(11, -1), axis=0)) == 11)
        expect("classes", arrays["arr_1"].dtype == np.int64 and set(arrays["arr_1"]) <= set(range(10)))
    expect("checksums", zipfile.ZipFile(file).testzip() is None)

    latents = np.random.default_rng(2).normal(size=(24, 4, 8, 8)).astype("<f4")
    labels = np.arange(24) % 3
    header = {"labels": {"dtype": "I64", "shape": [24], "data_offsets": [0, 192]},
              "latents": {"dtype": "F32", "shape": [24, 4, 8, 8], "data_offsets": [192, 192 + latents.nbytes]}}
    text = json.dumps(header).encode()
    data = folder / "train.safetensors"
    data.write_bytes(len(text).to_bytes(8, "little") + text + labels.astype("<i8").tobytes() + latents.tobytes())
    run(tessera, "train", "--model", "dit-s-2", "--dataset", "latents", "--data", data, "--out", folder / "latents",
        *train)
    run(tessera, "sample", folder / "latents", "--count", 6, "--steps", 3, "--classes", "2,0", "--out",
        folder / "z.npz")
    with np.load(folder / "z.npz") as arrays:
        expect("latents", arrays["arr_0"].shape == (6, 4, 8, 8) and arrays["arr_0"].dtype == np.float32)
        expect("finite", np.isfinite(arrays["arr_0"]).all())
        expect("the classes asked for", arrays["arr_1"].tolist() == [2, 0, 2, 0, 2, 0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", required=True)
    tessera = parser.parse_args().tessera
    with tempfile.TemporaryDirectory() as name:
        check_scores(tessera, Path(name))
        check_samples(tessera, Path(name))
    print(f"{len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares the logits of networks that timm builds from an exported folder with those of the program.

    compare_with_timm.py --tessera build/tessera

Small networks of every kind that timm has, with weights of no pattern, are exported and read by
timm.create_model("local-dir:FOLDER", pretrained=True), which takes all weights or fails. What timm has no parts for must
be refused with the reason.

Exit code 1 where a difference exceeds 1e-5 of the largest logit, where logits do not depend on the input, or where
something is not refused as it should be; 77 where timm is missing.
"""

import argparse
import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import timm
    import torch
except ImportError as error:
    print(f"skipped: python3 has no {error.name}")
    sys.exit(77)

import checkpoint_file

TOLERANCE = 1e-5

VIT = {"arch": "vit", "image_size": 24, "num_classes": 7, "dim": 24, "depth": 3, "mlp_ratio": 2.0, "norm_eps": 1e-6,
       "tokenizer": {"kind": "patch", "patch_size": 4}, "attention": {"heads": 3, "qkv_bias": True}}
PIT = {"arch": "pit", "image_size": 24, "num_classes": 7, "dim": 24, "depth": [1, 2, 1], "mlp_ratio": 2.0,
       "norm_eps": 1e-6, "tokenizer": {"kind": "patch", "patch_size": 4}, "pool": {"kind": "conv"},
       "attention": {"heads": [2, 4, 8], "head_dim": 12, "qkv_bias": True}}
SWIN = {"arch": "swin", "image_size": 32, "num_classes": 7, "dim": 24, "depth": [2, 2, 2], "mlp_ratio": 2.0, "window": 4,
        "pos_embed": False, "tokenizer": {"kind": "patch", "patch_size": 2, "post_norm": True}, "pool": {"kind": "merge"},
        "attention": {"heads": [2, 4, 8], "head_dim": 12, "qkv_bias": True, "relative_bias": True}}


def with_changes(config, **changes):
    """changed(VIT, attention__heads=2) sets config["attention"]["heads"]; None removes a key."""
    config = copy.deepcopy(config)
    for path, value in changes.items():
        *folders, key = path.split("__")
        place = config
        for folder in folders:
            place = place[folder]
        if value is None:
            place.pop(key)
        else:
            place[key] = value
    return config


def points_apart(tensors):
    """The 1 x 1 convolutions of a PiT's pooling mix no channels, so that timm has them."""
    for name, array in tensors.items():
        if name.endswith("point.weight"):
            tensors[name] = array * np.eye(len(array), dtype=np.float32)[:, :, None, None]


def efficientnet(program):
    text = subprocess.run([program, "summary", "efficientnet-b0", "--image-size", "64", "--classes", "7", "--json"],
                          capture_output=True, text=True, check=True).stdout
    return dict(json.loads(text)["model"], stem_stride=2, head_width=1280)


def expressible(program):
    yield "ViT, timm's eps", VIT, None
    yield "ViT, another eps, no bias", with_changes(VIT, norm_eps=1e-3, attention__qkv_bias=False), None
    yield "ViT, the preset's eps", with_changes(VIT, norm_eps=None), None
    yield "PiT, timm's eps", PIT, points_apart
    yield "PiT, another eps, no bias, overlapping", with_changes(
        PIT, norm_eps=1e-3, attention__qkv_bias=False, tokenizer__patch_size=6, tokenizer__stride=3), points_apart
    yield "Swin", SWIN, None
    yield "Swin, no bias, window of 2", with_changes(SWIN, attention__qkv_bias=False, window=2), None
    yield "EfficientNet-B0", efficientnet(program), None


REFUSED = [
    (with_changes(VIT, tokenizer__kind="shifted"), "SPT"),
    (with_changes(VIT, attention__scale="learned"), "learned scale"),
    (with_changes(VIT, attention__mask_diagonal=True), "diagonal"),
    (with_changes(VIT, attention__prior={"sharing": "head", "hidden": 8}), "prior"),
    (with_changes(VIT, attention__decay={"kind": "content", "alpha": 1.0}), "decay"),
    (with_changes(VIT, attention__head_dim=4), "make up the width"),
    (with_changes(PIT, pool={"kind": "shifted"}), "S_pool"),
    (PIT, "mixes channels"),
    (with_changes(SWIN, pos_embed=True), "position embedding"),
]
REFUSED_PRESETS = ["sl-vit", "t2t", "cait", "rmt-xt", "dit-xt", "efficientnet-b0", "resnet56"]


class Comparison:
    def __init__(self, program, folder):
        self.program, self.folder, self.failed = program, Path(folder), 0

    def run(self, *arguments):
        return subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)

    def expect(self, holds, message):
        if not holds:
            self.failed += 1
            print(f"FAILED: {message}")

    def compare(self, name, config, change):
        file, model, sample = (self.folder / each for each in ("c.json", "m.safetensors", "s.safetensors"))
        file.write_text(json.dumps(config))
        done = self.run("export", file, "--format", "safetensors", "--out", model)
        assert done.returncode == 0, done.stderr
        checkpoint_file.write_with_other_weights(model, change)
        done = self.run("export", model, "--format", "timm", "--out", self.folder / "timm", "--sample", sample)
        assert done.returncode == 0, f"{name}: {done.stderr}"
        network = timm.create_model(f"local-dir:{self.folder / 'timm'}", pretrained=True).eval()
        tensors, _ = checkpoint_file.read(sample)
        with torch.no_grad():
            got = network(torch.tensor(tensors["images"])).numpy()
        wanted = tensors["logits"]
        difference = np.max(np.abs(got - wanted)) / max(1, np.max(np.abs(wanted)))
        print(f"{name}: {difference:.1e}")
        self.expect(difference <= TOLERANCE, f"{name}: logits differ by {difference:.1e}, bound {TOLERANCE}")
        self.expect(np.max(np.abs(wanted - wanted[:1])) > 1e-2, f"{name}: logits do not depend on the input")
        facts = network.pretrained_cfg
        self.expect(len(facts["label_names"]) == 7 and tuple(facts["input_size"])[1:] == (config["image_size"],) * 2
                    and len(facts["mean"]) == 3, f"{name}: label names, size or mean are missing")

    def refuses(self, source, reason):
        done = self.run("export", source, "--format", "timm", "--out", self.folder / "refused")
        self.expect(done.returncode == 2 and reason in done.stderr and not (self.folder / "refused").exists(),
                    f"{source}: wanted a refusal with '{reason}', came {done.returncode}: {done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", required=True)
    program = parser.parse_args().tessera
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(program, folder)
        for name, config, change in expressible(program):
            comparison.compare(name, config, change)
        file = Path(folder) / "c.json"
        for config, reason in REFUSED:
            file.write_text(json.dumps(config))
            comparison.refuses(file, reason)
        for preset in REFUSED_PRESETS:
            comparison.refuses(preset, "timm: ")
    print(f"{comparison.failed} failed")
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())

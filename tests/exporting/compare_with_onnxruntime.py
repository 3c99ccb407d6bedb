#!/usr/bin/env python3
"""Compares what ONNX Runtime computes of exported models with what the program computes.

    compare_with_onnxruntime.py --tessera build/tessera [--fixtures DIR] [NAME ...]

Every fixture of a whole model, and every preset with few blocks and weights of no pattern, is exported with a sample of
three inputs. ONNX Runtime answers for all three at once and for the first alone; a fixture's own inputs must give the
fixture's logits too, which PyTorch has computed. Every file passes onnx.checker where python3 has onnx.

Exit code 1 where a difference exceeds 1e-4 of the largest logit, or 1e-4 where that is below 1, where logits do not
depend on the input, or where nothing was compared; 77 where onnxruntime or numpy is missing.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import onnxruntime
except ImportError as error:
    print(f"skipped: python3 has no {error.name}")
    sys.exit(77)
try:
    import onnx
except ImportError:
    onnx = None

import checkpoint_file

TOLERANCE = 1e-4
BLOCKS = 3  # of a preset's stages, so that all of them take a minute
# Presets that differ from a DiT of size S or XT in their width alone, and have up to 675 million parameters; and a
# fixture of a fresh DiT's loss, whose output is 0 whatever its input.
LEFT_OUT = re.compile(r"dit-(b|l)-.*|dit-xl-[48].*|dit-sigma-cosine")


def shallow(config):
    """The preset with few blocks: at most BLOCKS a stage, and those that a prior or a decoder asks for."""
    if config["arch"] == "segment":
        config["backbone"] = shallow(config["backbone"])
        last = config["backbone"]["depth"] - 1
        config["decoder"]["out_blocks"] = [last - 3, last - 2, last - 1, last]
        return config
    if isinstance(config.get("depth"), list):
        config["depth"] = [min(depth, BLOCKS) for depth in config["depth"]]
    elif "depth" in config:
        config["depth"] = 8 if config["arch"] == "resnet" else min(config["depth"], BLOCKS + 1)
    if config.get("sp_layers", 0) > 0:
        config["sp_layers"] = config["depth"] - 2
    return config


class Comparison:
    def __init__(self, program, folder):
        self.program, self.folder, self.compared, self.failed = program, Path(folder), 0, 0

    def run(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def differs(self, name, what, got, wanted):
        difference = float(np.max(np.abs(got - wanted))) / max(1.0, float(np.max(np.abs(wanted))))
        self.compared += 1
        if not difference <= TOLERANCE:
            self.failed += 1
            print(f"{name}: {what} differ by {difference:.2e} of the largest")
        return difference

    def export(self, source):
        model, sample = self.folder / "model.onnx", self.folder / "sample.safetensors"
        self.run("export", source, "--format", "onnx", "--out", model, "--sample", sample)
        if onnx:
            onnx.checker.check_model(str(model), full_check=True)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        return session, checkpoint_file.read(sample)[0]

    def compare(self, name, source):
        session, sample = self.export(source)
        metadata = session.get_modelmeta().custom_metadata_map
        for key in ("classes", "mean", "deviation", "image_size", "config", "architecture", "task"):
            assert key in metadata, f"{name}: no {key} in the metadata"
        output = session.get_outputs()[0].name
        names = [each.name for each in session.get_inputs()]
        inputs = {key: sample[key] for key in names}
        got = session.run([output], inputs)[0]
        most = self.differs(name, "three inputs", got, sample[output])
        alone = session.run([output], {key: value[:1] for key, value in inputs.items()})[0]
        most = max(most, self.differs(name, "one input", alone, sample[output][:1]))
        if np.max(np.abs(got - got[:1])) < 1e-3:
            self.failed += 1
            print(f"{name}: the logits do not depend on the input")
        return session, most

    def fixture(self, path):
        tensors, metadata = checkpoint_file.read(path)
        session, most = self.compare(path.stem, path)
        trained = "mode" in metadata  # its logits are of batch norms that train
        key = "eval_logits" if "eval_logits" in tensors else "logits"
        dense = json.loads(metadata["config"]).get("dense") and key == "logits"
        if not trained and not dense:
            inputs = {"images": tensors["input"], "t": tensors.get("t"), "y": tensors.get("y")}
            names = [each.name for each in session.get_inputs()]
            got = session.run(None, {name: inputs[name].astype(np.float32 if name == "images" else np.int64)
                                     for name in names})[0]
            most = max(most, self.differs(path.stem, "PyTorch's logits", got, tensors[key]))
        print(f"{path.stem}: {most:.1e}")

    def preset(self, row):
        config = self.folder / "config.json"
        # A DiT has as many tokens at 16 pixels as others have at 64, and its sizes go up to 675 million parameters.
        size = 16 if row["name"].startswith("dit-") else row.get("image_size", 64)
        text = self.run("summary", row["name"], "--image-size", size, "--classes", 7, "--json")
        config.write_text(json.dumps(shallow(json.loads(text)["model"])))
        model = self.folder / "model.safetensors"
        self.run("export", config, "--format", "safetensors", "--out", model)
        checkpoint_file.write_with_other_weights(model)
        _, most = self.compare(row["name"], model)
        print(f"{row['name']}: {most:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", required=True)
    parser.add_argument("--fixtures", type=Path, default=Path(__file__).parent.parent / "fixtures")
    parser.add_argument("names", nargs="*", help="fixtures and presets, by default all")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(arguments.tessera, folder)
        for path in sorted(arguments.fixtures.glob("*.safetensors")):
            config = json.loads(checkpoint_file.read(path)[1].get("config", "{}"))
            if LEFT_OUT.fullmatch(path.stem):
                print(f"{path.stem}: left out")
            elif "arch" in config and (not arguments.names or path.stem in arguments.names):
                comparison.fixture(path)
        rows = json.loads(comparison.run("models", "--image-size", 64, "--json"))
        for row in rows:
            if LEFT_OUT.fullmatch(row["name"]):
                print(f"{row['name']}: left out")
            elif not arguments.names or "preset:" + row["name"] in arguments.names:
                comparison.preset(row)
        print(f"{comparison.compared} comparisons, {comparison.failed} failed")
        return 1 if comparison.failed or not comparison.compared else 0


if __name__ == "__main__":
    sys.exit(main())

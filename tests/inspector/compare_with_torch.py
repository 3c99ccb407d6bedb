#!/usr/bin/env python3
"""Compares the activations and gradients that `tessera inspect` exports with those that hooks on PyTorch models give.

    compare_with_torch.py --tessera build/tessera [--reference DIR] [FIXTURE.safetensors | FOLDER] ...

DIR holds the PyTorch definitions of the models (`models/__init__.py` with build(config), `fixture.py` with load() and
evaluate()); without it, the folder `reference` of $TESSERA_SHARED. Everything runs in double. For each module the output
is compared with the value MODULE.out, and what each softmax of an attention reads and makes with MODULE.scores and
MODULE.probabilities; likewise their gradients. A module that passes its input on unchanged computes no value and is
counted only: an identity, dropout, and drop path, which the engine adds to its branch in one op.

Exit code 1 where a relative difference exceeds the tolerance, where a name is missing from the export that the table
`absent` does not list, or where nothing was compared; 77 where torch or the definitions are missing.
"""

import argparse
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
except ImportError:
    print("skipped: python3 has no torch")
    sys.exit(77)

# Values that hooks see and the record has not: (fixture, name, why).
absent = [
    ("lvvit-dense", r".*\.(out|scores|probabilities)\.2", "evaluation asks the model a second time, for its answer "
     "without mixed tokens; that pass has no part in the loss and is not recorded"),
]


def read_safetensors(path):
    """{name: tensor} of a file of F64, F32 and I64 tensors."""
    raw = Path(path).read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    types = {"F64": torch.float64, "F32": torch.float32, "I64": torch.int64}
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__" or entry["dtype"] not in types:
            continue
        start, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = torch.frombuffer(bytearray(raw[start:end]), dtype=types[entry["dtype"]]).reshape(entry["shape"])
    return tensors


class Recorder:
    """Keeps every module's output and every softmax, by names that the export has."""

    def __init__(self, model):
        self.values, self.seen, self.stack, self.unchanged = {}, {}, [], 0
        for name, module in model.named_modules():
            module.register_forward_pre_hook(lambda m, i, name=name: self.stack.append(name))
            module.register_forward_hook(lambda m, i, out, name=name: self.leave(name, m, i, out))

    def leave(self, name, module, inputs, out):
        self.stack.pop()
        if not name or not isinstance(out, torch.Tensor) or not out.requires_grad:
            return
        if not list(module.children()) and not list(module.parameters()) and self.passes_on(inputs, out):
            self.unchanged += 1
        else:
            self.keep(f"{name}.out", out)

    @staticmethod
    def passes_on(inputs, out):
        return len(inputs) == 1 and inputs[0].shape == out.shape and torch.equal(inputs[0], out)

    def keep(self, name, tensor):
        number = self.seen[name] = self.seen.get(name, 0) + 1
        tensor.retain_grad()
        self.values[name if number == 1 else f"{name}.{number}"] = tensor

    def softmax(self, original):
        def recorded(x, *args, **options):
            y = original(x, *args, **options)
            if self.stack and x.dim() >= 3 and y.requires_grad and x.requires_grad:
                self.keep(f"{self.stack[-1]}.scores", x)
                self.keep(f"{self.stack[-1]}.probabilities", y)
            return y
        return recorded


def reference_pass(path, fixture, models):
    tensors, metadata = fixture.load(path)
    model = models.build(json.loads(metadata["config"])).double()
    state = {name[6:]: tensor for name, tensor in tensors.items() if name.startswith("param.")}
    model.load_state_dict(state, strict=False)
    model.train("mode" in metadata)
    inputs = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()
              if name in ("input", "target", "aux_target", "box", "t", "y", "noise")}
    inputs["input"].requires_grad_()
    recorder = Recorder(model)
    original, torch.Tensor.softmax = torch.Tensor.softmax, recorder.softmax(torch.Tensor.softmax)
    try:
        loss = fixture.evaluate(model, inputs)["loss"]
    finally:
        torch.Tensor.softmax = original
    for tensor in recorder.values.values():  # a fixture may evaluate more than the loss
        tensor.retain_grad()
    loss.backward()
    recorder.values["input"] = inputs["input"]
    recorder.values["loss"] = loss
    return recorder.values, recorder.unchanged


def difference(ours, theirs):
    """Largest |a - b| / largest |b|. The engine keeps maps as [B, H, W, C], PyTorch as [B, C, H, W]; it mixes heads in
    [B, H, N, M], PyTorch in [B, N, M, H]; the prior's table is [T, H] there and [H, T] here."""
    if ours.numel() != theirs.numel():
        return None
    ours = ours.double().flatten()
    orders = [theirs]
    if theirs.dim() == 4:
        orders += [theirs.permute(0, 2, 3, 1), theirs.permute(0, 3, 1, 2)]
    if theirs.dim() == 2:
        orders.append(theirs.t())
    least = None
    for order in orders:
        order = order.detach().flatten()
        same = ours == order  # infinities of masks
        scale = order[order.isfinite()].abs().max().clamp_min(1e-30)
        error = torch.where(same, torch.zeros_like(ours), (ours - order).abs()).max().item() / scale.item()
        least = error if least is None else min(least, error)
    return least


def compare(path, options, fixture, models):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([options.tessera, "inspect", path, "--dtype", "f64", "--export", folder],
                              capture_output=True, text=True)
        if done.returncode:
            return [f"tessera inspect: {done.stderr.strip()}"], 0, 0.0, 0
        values = read_safetensors(f"{folder}/values.safetensors")
        gradients = read_safetensors(f"{folder}/gradients.safetensors")
        record = json.loads(Path(folder, "pass.json").read_text())
    names = {name: row["name"] for row in record["values"] for name in [row["name"], *row["aliases"]]}
    theirs, unchanged = reference_pass(path, fixture, models)
    floor = 1e-8 * max(t.grad.abs().max().item() for t in theirs.values() if t.grad is not None)
    problems, compared, worst, expected = [], 0, 0.0, 0
    for name, tensor in theirs.items():
        if name not in names:
            if any(Path(path).stem == where and re.fullmatch(pattern, name) for where, pattern, _ in absent):
                expected += 1
            else:
                problems.append(f"{name}: not in the export")
            continue
        pairs = [("value", values[names[name]], tensor)]
        if tensor.grad is not None and tensor.grad.abs().max() > floor:
            if names[name] not in gradients:
                problems.append(f"{name}: no gradient in the export")
            else:
                pairs.append(("gradient", gradients[names[name]], tensor.grad))
        for what, ours, reference in pairs:
            error = difference(ours, reference)
            compared += 1
            if error is None or not error <= options.tolerance:
                problems.append(f"{name}: {what} {list(ours.shape)} differs by {error} from {list(reference.shape)}")
            else:
                worst = max(worst, error)
    if not compared:
        problems.append("nothing was compared")
    said = f", {unchanged} modules pass their input on" if unchanged else ""
    said += f", {expected} values absent as listed" if expected else ""
    return problems, compared, worst, said


def fixtures_of(paths):
    """The fixtures of whole models among files and folders, each file name once."""
    files = [file for path in paths for file in (sorted(Path(path).glob("*.safetensors")) if Path(path).is_dir()
                                                 else [Path(path)])]
    return list({file.name: str(file) for file in reversed(files)}.values())[::-1]


def unknown_to(models, config):
    """Why the PyTorch definitions cannot build this model: a key that only this program has, as DiT's cosine betas."""
    try:
        models.build(config)
    except ValueError as error:
        if "unknown keys" not in str(error):
            raise
        return str(error)
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", default="build/tessera")
    parser.add_argument("--reference", default=os.path.join(os.environ.get("TESSERA_SHARED", ""), "reference"))
    parser.add_argument("--tolerance", type=float, default=1e-6)
    parser.add_argument("fixtures", nargs="*", help="default: those of tests/fixtures and of $TESSERA_SHARED/fixtures")
    options = parser.parse_args()
    if not Path(options.reference, "fixture.py").is_file():
        print("skipped: no PyTorch definitions; --reference DIR, or the environment variable TESSERA_SHARED, says where")
        sys.exit(77)
    if not options.fixtures:
        options.fixtures = [Path(__file__).parent.parent / "fixtures"]
        if "TESSERA_SHARED" in os.environ:
            options.fixtures.append(Path(os.environ["TESSERA_SHARED"], "fixtures"))
    sys.path.insert(0, options.reference)
    import fixture
    import models
    failed = models_compared = 0
    for path in fixtures_of(options.fixtures):
        config = json.loads(fixture.load(path)[1].get("config", "{}"))
        if "arch" not in config:
            continue  # a part of a model
        if why := unknown_to(models, config):
            print(f"{Path(path).name}: skipped: {why}")
            continue
        problems, compared, worst, said = compare(path, options, fixture, models)
        print(f"{Path(path).name}: {compared} tensors, largest difference {worst:.1e}{said}, {len(problems)} problems")
        for problem in problems:
            print(f"  {problem}")
        failed += bool(problems)
        models_compared += 1
    print(f"{models_compared} models, {failed} with problems")
    for where, pattern, why in absent:
        print(f"absent from {where}: {pattern}: {why}")
    sys.exit(1 if failed or not models_compared else 0)


if __name__ == "__main__":
    main()

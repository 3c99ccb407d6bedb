"""The peer's outputs on the weights and inputs of the engine's fixtures, which must be the files'; and that there is a
peer of every preset.
"""

import json
import struct
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

from pytorch_models import ARCHITECTURES, build, labels_shape, loss_of
from pytorch_program import answer, config_of

FIXTURES = Path(__file__).resolve().parents[2] / "tests" / "fixtures"
TYPES = {"F32": torch.float32, "I64": torch.int64, "F64": torch.float64}


def header_of(data):
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), 8 + size


def read_safetensors(path):
    data = Path(path).read_bytes()
    header, start = header_of(data)
    metadata, tensors = header.pop("__metadata__", {}), {}
    for name, entry in header.items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        flat = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[entry["dtype"]])
        tensors[name] = flat.view(entry["shape"])
    return tensors, metadata


def fixtures_of(architectures=tuple(ARCHITECTURES)):
    """The files of the fixtures of these architectures: all of them, in training mode too."""
    files = []
    for path in sorted(FIXTURES.glob("*.safetensors")):
        config = json.loads(header_of(path.read_bytes())[0]["__metadata__"]["config"])
        if config.get("arch") in architectures:
            files.append(str(path))
    return files


def outputs_of(model, stored):
    if hasattr(model, "evaluate"):
        return model.evaluate(stored)
    logits = model(stored["input"])
    return {"logits": logits, "loss": F.cross_entropy(logits, stored["target"])}


def error_of(found, wanted):
    return (found.cpu() - wanted).abs().max().item() / wanted.abs().max().item()


def verify(path, device, tolerance=1e-5):
    """Whether the outputs on the file's weights are the file's, with attention of either kind; the tolerance is that of
    `tessera parity` in f32."""
    stored, metadata = read_safetensors(path)
    torch.backends.cudnn.allow_tf32 = False  # the patch convolution in f32, as the tolerance asks
    good, there = True, {name: values.to(device) for name, values in stored.items()}
    for explicit in (False, True):
        model = build(json.loads(metadata["config"]), explicit=explicit).train(metadata.get("mode") == "train")
        model.load_state_dict({name[6:]: t for name, t in stored.items() if name.startswith("param.")} |
                              {name: t for name, t in model.state_dict().items() if name.endswith("batches_tracked")})
        with torch.no_grad():
            outputs = outputs_of(model.to(device), there)
        errors = {name: error_of(values, stored[name]) for name, values in outputs.items()}
        equal = all(error <= tolerance for error in errors.values())
        good = good and equal
        if not explicit or not equal:
            apart = ", ".join(f"{name} within {error:.1e}" for name, error in errors.items())
            print(f"{Path(path).name}: loss {outputs['loss'].item():.7f}, {apart}: {'equal' if equal else 'NOT EQUAL'}",
                  file=sys.stderr)
    return good


def unlike(preset, size, classes, parameters, program):
    """What is wrong with the peer of a preset, or None. Its step and inference run on shapes alone."""
    config = config_of(preset, size, classes, program)
    with torch.device("meta"):
        model = build(config)
        found = sum(p.numel() for p in model.parameters())
        images = torch.empty(2, config["in_channels"], size, size)
        labels = torch.zeros(labels_shape(config, 2), dtype=torch.int64)
        loss_of(model, model, images, labels, 0.1).backward()
        getattr(model.eval(), "infer", model)(images)
    unused = [name for name, p in model.named_parameters() if p.grad is None]
    if found != parameters:
        return f"{found} parameters, the engine's has {parameters}"
    return f"no gradient of {', '.join(unused)}" if unused else None


def verify_presets(program, size=64, classes=200):
    """Whether every preset has a peer with as many parameters, which all have gradients."""
    rows = answer([program, "models", "--image-size", str(size), "--classes", str(classes), "--json"])
    wrong = {row["name"]: unlike(row["name"], size, classes, row["parameters"], program) for row in rows}
    for preset, what in wrong.items():
        if what:
            print(f"{preset}: {what}", file=sys.stderr)
    print(f"{len(rows)} presets, {sum(map(bool, wrong.values()))} unlike the engine's", file=sys.stderr)
    return not any(wrong.values())

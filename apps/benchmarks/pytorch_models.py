"""The peer of every architecture, by its name in the engine's configs."""

import json
import subprocess

from torch.nn import functional as F

from pytorch_dit import DiT
from pytorch_maps import EfficientNet, ResNet, Rmt
from pytorch_model import CaiT, PiT, Swin, ViT
from pytorch_stems import LvVit, T2T

ARCHITECTURES = {"vit": ViT, "pit": PiT, "swin": Swin, "cait": CaiT, "t2t": T2T, "lvvit": LvVit, "resnet": ResNet,
                 "efficientnet": EfficientNet, "rmt": Rmt, "sdt": Rmt, "dit": DiT}

# A preset of each family, with the pixels, classes and images a step at which they are compared.
FAMILIES = {"vit": (32, 10, 128), "sl-vit": (32, 10, 128), "pit": (64, 200, 32), "swin": (64, 200, 64),
            "cait": (64, 200, 32), "t2t": (64, 200, 32), "lvvit-s": (64, 200, 64), "rmt-xt": (64, 200, 64),
            "sdt-xt": (64, 200, 64), "resnet56": (64, 200, 64), "efficientnet-b0": (64, 200, 32),
            "dit-xt": (32, 10, 64)}


# The fixtures of an architecture that its peer is held to, where they are more than the one of its name.
FIXTURES = {"vit": ("vit", "s-vit", "l-vit", "sl-vit"), "pit": ("pit", "sl-pit", "sl-pit-spool"),
            "swin": ("swin", "sl-swin", "sl-swin-spool"), "cait": ("cait", "sl-cait", "sl-cait-inf"),
            "t2t": ("t2t", "sl-t2t"), "sdt": ("sdt", "sdt-no-distance")}


def config_of(preset, image_size, classes, program):
    """The engine's config of a preset, which the program prints."""
    command = [program, "summary", preset, "--image-size", str(image_size), "--classes", str(classes), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["model"]


def build(config, flex=None, explicit=False):
    """A config of the engine as a module with the same parameter names. `flex`: the device for flex_attention's masks;
    None: scaled_dot_product_attention or, if `explicit`, products and a softmax."""
    if config["arch"] not in ARCHITECTURES:
        raise ValueError(f"this peer knows no {config['arch']}")
    model = ARCHITECTURES[config["arch"]](config, flex)
    for module in model.modules():
        if hasattr(module, "explicit"):
            module.explicit = explicit
    return model


def loss_of(model, run, images, labels, smoothing):
    """The loss of a training step; `run` is the model, or it compiled."""
    if hasattr(model, "loss"):
        return model.loss(run, images, labels, smoothing)
    return F.cross_entropy(run(images).float(), labels, label_smoothing=smoothing)

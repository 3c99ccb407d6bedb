"""The peer of every architecture, by its name in the engine's configs."""

from torch.nn import functional as F

from pytorch_dit import DiT
from pytorch_maps import EfficientNet, ResNet
from pytorch_model import CaiT, PiT, Swin, ViT
from pytorch_rmt import Rmt
from pytorch_segment import Segmenter
from pytorch_stems import LvVit, T2T

ARCHITECTURES = {"vit": ViT, "pit": PiT, "swin": Swin, "cait": CaiT, "t2t": T2T, "lvvit": LvVit, "resnet": ResNet,
                 "efficientnet": EfficientNet, "rmt": Rmt, "sdt": Rmt, "dit": DiT, "segment": Segmenter}

# A preset of each family, with the pixels, classes and images a step at which they are compared.
FAMILIES = {"vit": (32, 10, 128), "sl-vit": (32, 10, 128), "pit": (64, 200, 32), "swin": (64, 200, 64),
            "cait": (64, 200, 32), "t2t": (64, 200, 32), "lvvit-s": (64, 200, 64), "sp-vit-s": (64, 200, 64),
            "rmt-xt": (64, 200, 64), "sdt-xt": (64, 200, 64), "resnet56": (64, 200, 64),
            "efficientnet-b0": (64, 200, 32), "dit-xt": (32, 10, 64), "dit-xt-decay": (32, 10, 64),
            "lvvit-s-seg": (64, 150, 16), "sp-vit-s-seg": (64, 150, 16), "rmt-xt-seg": (64, 150, 16),
            "sdt-xt-seg": (64, 150, 16), "swin-seg": (64, 150, 16)}


def case_of(preset):
    """Those of any preset."""
    return FAMILIES.get(preset, (64, 150, 16) if preset.endswith("-seg") else (32, 10, 64))


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


def labels_shape(config, batch):
    """Of a segmenter's labels, or of another model's."""
    return (batch, config["image_size"], config["image_size"]) if config["arch"] == "segment" else (batch,)


def loss_of(model, run, images, labels, smoothing):
    """The loss of a training step; `run` is the model, or it compiled."""
    if hasattr(model, "loss"):
        return model.loss(run, images, labels, smoothing)
    return F.cross_entropy(run(images).float(), labels, label_smoothing=smoothing)

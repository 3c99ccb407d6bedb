"""UperNet on the blocks of an LV-ViT or SP-ViT, or on the stages of an RMT, SDT or Swin."""

import torch
from torch import nn
from torch.nn import functional as F

from pytorch_model import Swin
from pytorch_parts import to_map
from pytorch_rmt import Rmt
from pytorch_stems import LvVit

BACKBONES = {"lvvit": LvVit, "rmt": Rmt, "sdt": Rmt, "swin": Swin}
NO_CLASS = 255


def resize_to(x, size):
    return x if x.shape[2:] == size else F.interpolate(x, size=size, mode="bilinear", align_corners=False)


class Unit(nn.Module):
    """A convolution, batch norm and relu; the last two alone follow another `conv`."""

    def __init__(self, channels_in, channels, kernel, conv=None):
        super().__init__()
        self.conv = conv or nn.Conv2d(channels_in, channels, kernel, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


def up_unit(dim, factor):
    return Unit(dim, dim, factor, nn.ConvTranspose2d(dim, dim, factor, factor, bias=False))


class MapPyramid(nn.Module):
    """Four maps of one size as levels of 4, 2, 1 and 1 times it."""

    def __init__(self, dim, top):
        super().__init__()
        self.up0, self.up1 = up_unit(dim, 4), up_unit(dim, 2)
        self.out0, self.out1, self.out2, self.out3 = (Unit(dim, out, 1) for out in (dim, dim, dim, top))

    def forward(self, maps):
        return [self.out0(self.up0(maps[0])), self.out1(self.up1(maps[1])), self.out2(maps[2]), self.out3(maps[3])]


class StagePyramid(nn.Module):
    """The tokens of stages as maps, each behind a layer norm of its own."""

    def __init__(self, dims, sides):
        super().__init__()
        self.sides, self.norms = sides, nn.ModuleList(nn.LayerNorm(dim) for dim in dims)

    def forward(self, stages):
        return [to_map(norm(x), (side, side)) for norm, x, side in zip(self.norms, stages, self.sides)]


class UperNet(nn.Module):
    """The last level is pooled at several scales, every level is added to the one below it, and all are joined."""

    def __init__(self, channels_in, options, classes):
        super().__init__()
        *below, top = channels_in
        channels, self.scales = options["channels"], options.get("pool_scales", [1, 2, 3, 6])
        self.pool = nn.ModuleList(Unit(top, channels, 1) for _ in self.scales)
        self.top = Unit(top + len(self.scales) * channels, channels, 3)
        self.lateral = nn.ModuleList(Unit(width, channels, 1) for width in below)
        self.smooth = nn.ModuleList(Unit(channels, channels, 3) for _ in below)
        self.fuse = Unit(len(channels_in) * channels, channels, 3)
        self.dropout, self.classify = nn.Dropout2d(options.get("dropout", 0.1)), nn.Conv2d(channels, classes, 1)

    def forward(self, levels):
        *below, top = levels
        pooled = [resize_to(unit(F.adaptive_avg_pool2d(top, scale)), top.shape[2:])
                  for scale, unit in zip(self.scales, self.pool)]
        x = [unit(level) for unit, level in zip(self.lateral, below)] + [self.top(torch.cat([top, *pooled], 1))]
        for i in range(len(below), 0, -1):
            x[i - 1] = x[i - 1] + resize_to(x[i], x[i - 1].shape[2:])
        x = [unit(level) for unit, level in zip(self.smooth, x)] + x[-1:]
        x = torch.cat([resize_to(level, x[0].shape[2:]) for level in x], 1)
        return self.classify(self.dropout(self.fuse(x)))


class AuxHead(nn.Module):
    def __init__(self, channels_in, options, classes):
        super().__init__()
        self.level, self.weight = options["level"], options.get("weight", 0.4)
        self.unit = Unit(channels_in[self.level], options["channels"], 3)
        self.dropout = nn.Dropout2d(options.get("dropout", 0.1))
        self.classify = nn.Conv2d(options["channels"], classes, 1)

    def forward(self, levels):
        return self.classify(self.dropout(self.unit(levels[self.level])))


class Segmenter(nn.Module):
    """Its step has the loss of every pixel, and in training that of the auxiliary head's."""

    maps = True

    def __init__(self, config, flex=None):
        super().__init__()
        own = {key: config[key] for key in ("image_size", "in_channels")}
        options, classes = config["decoder"], config["num_classes"]
        self.backbone = BACKBONES[config["backbone"]["arch"]]({**config["backbone"], **own}, flex)
        if isinstance(self.backbone, LvVit):
            self.blocks, dim, top = sorted(options["out_blocks"]), config["backbone"]["dim"], options["top_channels"]
            self.pyramid, channels = MapPyramid(dim, top), [dim, dim, dim, top]
        else:
            self.blocks, channels = None, self.backbone.dims
            self.pyramid = StagePyramid(channels, self.backbone.sides)
        self.decoder = UperNet(channels, options, classes)
        self.aux = AuxHead(channels, config["aux"], classes) if config.get("aux") else None

    def levels(self, image):
        if self.blocks is None:
            return self.pyramid(self.backbone.stages(image))
        return self.pyramid(self.backbone.features(image, wanted=self.blocks)[1])

    def forward(self, image):
        """Logits of the decoder and of the auxiliary head (or None), [B, K, H, W]."""
        levels, size = self.levels(image), image.shape[2:]
        logits = resize_to(self.decoder(levels), size)
        return logits, None if self.aux is None else resize_to(self.aux(levels), size)

    def infer(self, image):
        return resize_to(self.decoder(self.levels(image)), image.shape[2:])

    def pixel_loss(self, logits, aux, target):
        loss = F.cross_entropy(logits.float(), target, ignore_index=NO_CLASS)
        if aux is None:
            return loss
        return loss + self.aux.weight * F.cross_entropy(aux.float(), target, ignore_index=NO_CLASS)

    def loss(self, run, image, target, smoothing=0.0):
        """Of a step; labels of pixels are not smoothed."""
        return self.pixel_loss(*run(image), target)

    def evaluate(self, stored):
        """The outputs of a fixture's inputs."""
        logits, aux = self(stored["input"])
        outputs = {"logits": logits, "loss": self.pixel_loss(logits, aux, stored["target"])}
        return outputs if aux is None else {**outputs, "aux_logits": aux}

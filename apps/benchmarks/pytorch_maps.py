"""ResNet and EfficientNet: convolutions all through, on maps whose channels lie innermost in memory."""

from torch import nn
from torch.nn import functional as F

from pytorch_parts import DropPath


class ResNetBlock(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.stride, self.pad = stride, (channels - channels_in) // 2
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x):
        shortcut = x
        if self.stride > 1 or self.pad:  # no parameters: every second pixel, new channels of zeros
            shortcut = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.pad, self.pad))
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(x)) + shortcut)


class ResNet(nn.Module):
    maps = True

    def __init__(self, config, flex=None):
        super().__init__()
        width, blocks = config["width"], (config["depth"] - 2) // 6
        self.conv1 = nn.Conv2d(config["in_channels"], width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        for i in range(3):
            channels, before = width << i, width << max(i - 1, 0)
            self.add_module(f"layer{i + 1}", nn.Sequential(
                ResNetBlock(before, channels, 2 if i else 1),
                *[ResNetBlock(channels, channels, 1) for _ in range(blocks - 1)]))
        self.fc = nn.Linear(4 * width, config["num_classes"])

    def forward(self, image):
        x = F.relu(self.bn1(self.conv1(image)))
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


class SqueezeExcite(nn.Module):
    def __init__(self, channels, squeezed):
        super().__init__()
        self.conv_reduce, self.conv_expand = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)

    def forward(self, x):
        gate = self.conv_expand(F.silu(self.conv_reduce(x.mean((2, 3), keepdim=True))))
        return x * gate.sigmoid()


class InvertedResidual(nn.Module):
    """With an expansion of 1 the first convolution is missing, and the others have the names of its places."""

    def __init__(self, channels_in, channels, kernel, stride, expand, rate):
        super().__init__()
        middle, self.expands = channels_in * expand, expand > 1
        self.residual = stride == 1 and channels_in == channels
        self.conv_dw = nn.Conv2d(middle, middle, kernel, stride, kernel // 2, groups=middle, bias=False)
        self.conv_pw = nn.Conv2d(channels_in, middle if self.expands else channels, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(middle), nn.BatchNorm2d(middle if self.expands else channels)
        if self.expands:
            self.conv_pwl, self.bn3 = nn.Conv2d(middle, channels, 1, bias=False), nn.BatchNorm2d(channels)
        self.se = SqueezeExcite(middle, max(1, channels_in // 4))
        self.drop = DropPath(rate)

    def forward(self, x):
        if self.expands:
            y = F.silu(self.bn2(self.conv_dw(F.silu(self.bn1(self.conv_pw(x))))))
            y = self.bn3(self.conv_pwl(self.se(y)))
        else:
            y = self.bn2(self.conv_pw(self.se(F.silu(self.bn1(self.conv_dw(x))))))
        return x + self.drop(y) if self.residual else y


class EfficientNet(nn.Module):
    maps = True

    def __init__(self, config, flex=None):
        super().__init__()
        width, head = config["stem_width"], config.get("head_width", 0)
        self.conv_stem = nn.Conv2d(config["in_channels"], width, 3, config["stem_stride"], 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        total, built, stages = sum(s["depth"] for s in config["stages"]), 0, []
        for s in config["stages"]:
            blocks = []
            for i in range(s["depth"]):
                stride, rate = s["stride"] if i == 0 else 1, config.get("drop_path", 0.0) * built / total
                blocks.append(InvertedResidual(width, s["width"], s["kernel"], stride, s["expand"], rate))
                built, width = built + 1, s["width"]
            stages.append(nn.Sequential(*blocks))
        self.blocks = nn.Sequential(*stages)
        self.has_head = head > 0
        if head:
            self.conv_head, self.bn2 = nn.Conv2d(width, head, 1, bias=False), nn.BatchNorm2d(head)
        self.dropout = nn.Dropout(config.get("dropout", 0.0))
        self.classifier = nn.Linear(head or width, config["num_classes"])

    def forward(self, image):
        x = self.blocks(F.silu(self.bn1(self.conv_stem(image))))
        if self.has_head:
            x = F.silu(self.bn2(self.conv_head(x)))
        return self.classifier(self.dropout(x.mean((2, 3))))

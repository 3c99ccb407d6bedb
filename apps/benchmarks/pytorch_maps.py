"""ResNet, EfficientNet and RMT with SDT: convolutions all through, on maps whose channels lie innermost in memory."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from pytorch_parts import DropPath, attend, drop_rates, of_stage, to_map, to_tokens


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


def manhattan(h, w):
    at = torch.arange(h * w)
    y, x = at // w, at % w
    return ((y[:, None] - y).abs() + (x[:, None] - x).abs()).float()


class DecayAttention(nn.Module):
    """RMT's: rotary positions, decay with distance, over all pairs or within rows and then columns."""

    explicit = False

    def __init__(self, dim, options, side):
        super().__init__()
        self.heads, self.side, self.decomposed = options["heads"], side, options["decomposed"]
        decay = options["decay"] or {"kind": None}
        if decay["kind"] not in (None, "fixed", "content"):
            raise ValueError(f"this peer knows no {decay}")
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        kernel = options["lepe"]
        self.lepe = nn.Conv2d(dim, dim, kernel, padding=kernel // 2, groups=dim) if kernel else None
        self.gate = nn.Linear(dim, self.heads) if decay["kind"] == "content" else None
        self.alpha, self.by_distance = decay.get("alpha", 1.0), decay.get("distance", True)
        if decay["kind"] != "fixed":
            self.slopes = None
        else:
            steps = [1 - 2.0 ** -(decay["initial"] + decay["range"] * h / self.heads) for h in range(self.heads)]
            self.register_buffer("slopes", torch.tensor([math.log(g) for g in steps]).view(-1, 1, 1), persistent=False)
        self.register_buffer("distance", manhattan(1, side) if self.decomposed else manhattan(side, side),
                             persistent=False)
        half = dim // self.heads // 2
        theta = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / max(half - 1, 1))
        angle = (torch.arange(side * side)[:, None] * theta).float()
        self.rope = options["rope"]
        self.register_buffer("cosine", angle.cos(), persistent=False)
        self.register_buffer("sine", angle.sin(), persistent=False)

    def rotated(self, x):
        even, odd = x[..., 0::2], x[..., 1::2]
        c, s = self.cosine.to(x.dtype), self.sine.to(x.dtype)
        return torch.stack([even * c - odd * s, odd * c + even * s], -1).flatten(-2)

    def added(self, gates):
        """gates [..., H, N] or None -> [1 or ..., H, N, N] or None"""
        if self.gate is not None:
            m = 0.5 * self.alpha * (gates[..., :, None] + gates[..., None, :])
            return -(m * self.distance if self.by_distance else m).abs()
        return None if self.slopes is None else (self.slopes * self.distance)[None]

    def attend(self, q, k, v, gates):
        added = self.added(gates)
        return attend(q, k, v, None if added is None else added.to(q.dtype), q.shape[-1] ** -0.5, self.explicit)

    def lines(self, x, columns):
        """[B, H, N, ...] -> [B lines, H, tokens of a line, ...]"""
        x = x.unflatten(2, (self.side, self.side))
        return (x.transpose(2, 3) if columns else x).transpose(1, 2).flatten(0, 1)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).chunk(3, -1)
        local = to_tokens(self.lepe(to_map(v, (self.side,) * 2))) if self.lepe is not None else 0.0
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
        if self.rope:
            q, k = self.rotated(q), self.rotated(k)
        gates = F.logsigmoid(self.gate(x)).transpose(1, 2) if self.gate is not None else None
        if not self.decomposed:
            v = self.attend(q, k, v, gates)
        else:
            for columns in (False, True):
                own = None if gates is None else self.lines(gates, columns)
                y = self.attend(*(self.lines(t, columns) for t in (q, k, v)), own)
                y = y.unflatten(0, (b, self.side)).transpose(1, 2)
                v = (y.transpose(2, 3) if columns else y).flatten(2, 3)
        return self.proj(v.transpose(1, 2).reshape(b, n, d) + local)


class ConvMlp(nn.Module):
    def __init__(self, dim, hidden, side):
        super().__init__()
        self.fc1, self.fc2, self.side = nn.Linear(dim, hidden), nn.Linear(hidden, dim), side
        self.dwconv = nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden)

    def forward(self, x):
        x = F.gelu(self.fc1(x))
        return self.fc2(x + to_tokens(self.dwconv(to_map(x, (self.side,) * 2))))


class LayerScale(nn.Module):
    def __init__(self, dim, initial):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((dim,), initial))

    def forward(self, x):
        return x * self.gamma.to(x.dtype)


class DecayBlock(nn.Module):
    def __init__(self, dim, options, side, mlp_ratio, scale, rate):
        super().__init__()
        self.side = side
        self.pos = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim, 1e-6), nn.LayerNorm(dim, 1e-6)
        self.attn, self.mlp = DecayAttention(dim, options, side), ConvMlp(dim, int(dim * mlp_ratio), side)
        self.ls1, self.ls2 = (LayerScale(dim, scale) if scale else nn.Identity() for _ in range(2))
        self.drop = DropPath(rate)

    def forward(self, x):
        x = x + to_tokens(self.pos(to_map(x, (self.side,) * 2)))
        x = x + self.drop(self.ls1(self.attn(self.norm1(x))))
        return x + self.drop(self.ls2(self.mlp(self.norm2(x))))


class Downsample(nn.Module):
    def __init__(self, dim, dim_out, side):
        super().__init__()
        self.side, self.reduction, self.norm = side, nn.Conv2d(dim, dim_out, 3, 2, 1), nn.BatchNorm2d(dim_out)

    def forward(self, x):
        return to_tokens(self.norm(self.reduction(to_map(x, (self.side,) * 2))))


class DecayStage(nn.Module):
    def __init__(self, blocks, downsample):
        super().__init__()
        self.blocks, self.downsample = nn.Sequential(*blocks), downsample

    def forward(self, x):
        return self.downsample(self.blocks(x))


class DecayStem(nn.Module):
    def __init__(self, channels, dim, strides):
        super().__init__()
        widths = [channels, dim // 2, dim // 2, dim, dim]
        self.convs = nn.ModuleList(nn.Conv2d(i, o, 3, s, 1) for i, o, s in zip(widths, widths[1:], strides))
        self.norms = nn.ModuleList(nn.BatchNorm2d(o) for o in widths[1:])

    def forward(self, x):
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            x = norm(conv(F.gelu(x) if i else x))
        return to_tokens(x)


class Rmt(nn.Module):
    """SDT is the same with the decay computed from the tokens."""

    maps = True

    def __init__(self, config, flex=None):
        super().__init__()
        dims, strides, side = config["dim"], config["tokenizer"]["strides"], config["image_size"]
        self.patch_embed = DecayStem(config["in_channels"], dims[0], strides)
        for stride in strides:
            side = (side - 1) // stride + 1
        rates = iter(drop_rates(config, sum(config["depth"])))
        layers = []
        for i, (dim, depth) in enumerate(zip(dims, config["depth"])):
            options = of_stage(config["attention"], i)
            if options["decay"]:
                options["decay"] = of_stage(options["decay"], i)
            scale = config.get("layer_scale", [0.0] * len(dims))[i]
            blocks = [DecayBlock(dim, options, side, config["mlp_ratio"][i], scale, next(rates)) for _ in range(depth)]
            last = i + 1 == len(dims)
            layers.append(DecayStage(blocks, nn.Identity() if last else Downsample(dim, dims[i + 1], side)))
            side = (side - 1) // 2 + 1
        self.layers = nn.Sequential(*layers)
        self.proj = nn.Linear(dims[-1], config["proj_dim"])
        self.norm = nn.BatchNorm1d(config["proj_dim"])
        self.head = nn.Linear(config["proj_dim"], config["num_classes"])

    def forward(self, image):
        x = self.proj(self.layers(self.patch_embed(image)))
        x = self.norm(x.flatten(0, 1)).view_as(x)  # over images and tokens
        return self.head(F.silu(x).mean(1))

"""RMT and SDT: stages of attention that decays with distance, on maps whose channels lie innermost in memory."""

import torch
from torch import nn
from torch.nn import functional as F

from pytorch_parts import DropPath, attend, drop_rates, of_stage, to_map, to_tokens
from pytorch_scores import Decay, gate_of, gates_of, manhattan


class DecayAttention(nn.Module):
    """RMT's: rotary positions, decay with distance, over all pairs or within rows and then columns."""

    explicit = False

    def __init__(self, dim, options, side):
        super().__init__()
        self.heads, self.side, self.decomposed = options["heads"], side, options["decomposed"]
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        kernel, decay = options["lepe"], options["decay"]
        self.lepe = nn.Conv2d(dim, dim, kernel, padding=kernel // 2, groups=dim) if kernel else None
        distance = manhattan(1 if self.decomposed else side, side)
        self.decay = Decay(decay, self.heads, distance) if decay else None
        self.gate = gate_of(decay, dim, self.heads)
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

    def attend(self, q, k, v, gates):
        added = None if self.decay is None else self.decay(gates).to(q.dtype)
        return attend(q, k, v, added, q.shape[-1] ** -0.5, self.explicit)

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
        gates = gates_of(self.gate, x)
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
    """SDT is the same with the decay computed from the tokens. Without classes it is a backbone."""

    maps = True

    def __init__(self, config, flex=None):
        super().__init__()
        dims, strides, side = config["dim"], config["tokenizer"]["strides"], config["image_size"]
        self.patch_embed = DecayStem(config["in_channels"], dims[0], strides)
        for stride in strides:
            side = (side - 1) // stride + 1
        rates = iter(drop_rates(config, sum(config["depth"])))
        layers = []
        self.dims, self.sides = dims, []
        for i, (dim, depth) in enumerate(zip(dims, config["depth"])):
            options = of_stage(config["attention"], i)
            if options["decay"]:
                options["decay"] = of_stage(options["decay"], i)
            scale = config.get("layer_scale", [0.0] * len(dims))[i]
            blocks = [DecayBlock(dim, options, side, config["mlp_ratio"][i], scale, next(rates)) for _ in range(depth)]
            last = i + 1 == len(dims)
            layers.append(DecayStage(blocks, nn.Identity() if last else Downsample(dim, dims[i + 1], side)))
            self.sides.append(side)
            side = (side - 1) // 2 + 1
        self.layers = nn.Sequential(*layers)
        if config["num_classes"] == 0:
            return
        self.proj = nn.Linear(dims[-1], config["proj_dim"])
        self.norm = nn.BatchNorm1d(config["proj_dim"])
        self.head = nn.Linear(config["proj_dim"], config["num_classes"])

    def stages(self, image):
        """The tokens after each stage."""
        x, seen = self.patch_embed(image), []
        for layer in self.layers:
            seen.append(layer.blocks(x))
            x = layer.downsample(seen[-1])
        return seen

    def forward(self, image):
        x = self.proj(self.stages(image)[-1])
        x = self.norm(x.flatten(0, 1)).view_as(x)  # over images and tokens
        return self.head(F.silu(x).mean(1))

"""The engine's transformers as fast ones are written in PyTorch, for pytorch_peer.py: the models of "Vision Transformer
for Small-Size Datasets" without soft splits. Beside it: pytorch_stems.py (T2T, LV-ViT, SP-ViT), pytorch_rmt.py (SDT
too), pytorch_maps.py (convolutional networks), pytorch_segment.py, pytorch_dit.py; pytorch_models.py knows them all.

Under autocast an f32 position would make the whole residual stream f32, twice the bytes: positions are cast.
"""

import torch
from torch import nn
from torch.nn import functional as F

from pytorch_parts import (Attention, Block, DropPath, Mlp, Tokens, drop_rates, of_stage, to_map, to_tokens,
                           with_class_token)


class ViT(nn.Module):
    def __init__(self, config, flex=None):
        super().__init__()
        dim, attention = config["dim"], config["attention"]
        side = config["image_size"] // config["tokenizer"]["patch_size"]
        self.patch_embed = Tokens(config["in_channels"], dim, config["tokenizer"])
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + side * side, dim))
        self.blocks = nn.Sequential(*[
            Block(dim, Attention(dim, attention, (side, side), 1, flex), config["mlp_ratio"], rate)
            for rate in drop_rates(config, config["depth"])])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, config["num_classes"])

    def forward(self, image):
        x = self.patch_embed(image)
        x = with_class_token(self.cls_token, x) + self.pos_embed.to(x.dtype)
        return self.head(self.norm(self.blocks(x)[:, 0]))


class ConvPool(nn.Module):
    """PiT's: half the map, twice the width; the class token through a map of its own."""

    def __init__(self, dim, grid):
        super().__init__()
        self.grid = grid
        self.conv = nn.Conv2d(dim, 2 * dim, 3, 2, 1, groups=dim)
        self.point, self.fc = nn.Conv2d(2 * dim, 2 * dim, 1), nn.Linear(dim, 2 * dim)

    def forward(self, x):
        tokens = to_tokens(self.point(self.conv(to_map(x[:, 1:], self.grid))))
        return torch.cat([self.fc(x[:, :1]), tokens], 1)


class ShiftedPool(Tokens):
    """SPT on the map of tokens, 2 x 2 to one."""

    def __init__(self, dim, grid, options, has_class):
        super().__init__(dim, 2 * dim, {**options, "patch_size": 2})
        self.grid, self.fc = grid, nn.Linear(dim, 2 * dim) if has_class else None

    def forward(self, x):
        if self.fc is None:
            return super().forward(to_map(x, self.grid))
        return torch.cat([self.fc(x[:, :1]), super().forward(to_map(x[:, 1:], self.grid))], 1)


class PitStage(nn.Module):
    def __init__(self, pool, blocks):
        super().__init__()
        self.pool, self.blocks = pool, nn.Sequential(*blocks)

    def forward(self, x):
        return self.blocks(x if self.pool is None else self.pool(x))


class PiT(nn.Module):
    def __init__(self, config, flex=None):
        super().__init__()
        dim, pool = config["dim"], config["pool"]
        side = config["image_size"] // config["tokenizer"]["patch_size"]
        self.patch_embed = Tokens(config["in_channels"], dim, config["tokenizer"])
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + side * side, dim))
        rates = iter(drop_rates({"drop_path_rule": "constant", **config}, sum(config["depth"])))
        stages = []
        for i, depth in enumerate(config["depth"]):
            own = None
            if i > 0:
                grid = (side, side)
                own = ConvPool(dim, grid) if pool["kind"] == "conv" else ShiftedPool(dim, grid, pool, True)
                dim, side = 2 * dim, (side + 1) // 2
            attention = of_stage(config["attention"], i)
            stages.append(PitStage(own, [
                Block(dim, Attention(dim, attention, (side, side), 1, flex), config["mlp_ratio"], next(rates))
                for _ in range(depth)]))
        self.transformers = nn.Sequential(*stages)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, config["num_classes"])

    def forward(self, image):
        x = self.patch_embed(image)
        x = with_class_token(self.cls_token, x) + self.pos_embed.to(x.dtype)
        return self.head(self.norm(self.transformers(x)[:, 0]))


def to_windows(x, side):
    """[B, h, w, D] -> [B windows, side^2, D]"""
    b, h, w, d = x.shape
    return x.view(b, h // side, side, w // side, side, d).transpose(2, 3).reshape(-1, side * side, d)


class SwinBlock(nn.Module):
    """Attention within windows, shifted in every second block."""

    def __init__(self, dim, options, side, window, shifted, mlp_ratio, rate):
        super().__init__()
        self.side, self.window = side, min(window, side)
        self.shift = window // 2 if shifted and side > window else 0
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.mlp = Attention(dim, options, (self.window,) * 2), Mlp(dim, int(dim * mlp_ratio))
        self.drop = DropPath(rate)
        mask = None
        if self.shift:  # pairs of which one came round the border
            round_ = (torch.arange(side) + self.shift >= side).long()
            part = to_windows((2 * round_[:, None] + round_).view(1, side, side, 1), self.window)[..., 0]
            mask = -100.0 * (part[:, :, None] != part[:, None])
        self.register_buffer("mask", mask, persistent=False)

    def attend(self, x):
        b, n, d = x.shape
        s, w = self.side, self.window
        x = x.view(b, s, s, d)
        if self.shift:
            x = x.roll((-self.shift, -self.shift), (1, 2))
        x = self.attn(to_windows(x, w), self.mask)
        x = x.view(b, s // w, s // w, w, w, d).transpose(2, 3).reshape(b, s, s, d)
        if self.shift:
            x = x.roll((self.shift, self.shift), (1, 2))
        return x.reshape(b, n, d)

    def forward(self, x):
        x = x + self.drop(self.attend(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class PatchMerging(nn.Module):
    def __init__(self, dim, side):
        super().__init__()
        self.side, self.norm = side, nn.LayerNorm(4 * dim)
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        b, _, d = x.shape
        x = x.view(b, self.side // 2, 2, self.side // 2, 2, d).permute(0, 1, 3, 4, 2, 5)
        return self.reduction(self.norm(x.reshape(b, -1, 4 * d)))


class SwinLayer(nn.Module):
    def __init__(self, downsample, blocks):
        super().__init__()
        self.downsample, self.blocks = downsample, nn.Sequential(*blocks)

    def forward(self, x):
        return self.blocks(x if self.downsample is None else self.downsample(x))


class Swin(nn.Module):
    """Without classes it is a backbone."""

    def __init__(self, config, flex=None):
        super().__init__()
        dim, pool = config["dim"], config["pool"]
        side = config["image_size"] // config["tokenizer"]["patch_size"]
        self.patch_embed = Tokens(config["in_channels"], dim, config["tokenizer"])
        self.pos_embed = nn.Parameter(torch.randn(1, side * side, dim) * 0.02) if config["pos_embed"] else None
        rates = iter(drop_rates(config, sum(config["depth"])))
        layers = []
        self.dims, self.sides = [], []
        for i, depth in enumerate(config["depth"]):
            own = None
            if i > 0:
                merges = pool["kind"] == "merge"
                own = PatchMerging(dim, side) if merges else ShiftedPool(dim, (side, side), pool, False)
                dim, side = 2 * dim, side // 2
            self.dims.append(dim)
            self.sides.append(side)
            attention = of_stage(config["attention"], i)
            layers.append(SwinLayer(own, [
                SwinBlock(dim, attention, side, config["window"], j % 2 == 1, config["mlp_ratio"], next(rates))
                for j in range(depth)]))
        self.layers = nn.Sequential(*layers)
        if config["num_classes"] == 0:
            return
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, config["num_classes"])

    def stages(self, image):
        """The tokens after each stage."""
        x, seen = self.patch_embed(image), []
        if self.pos_embed is not None:
            x = x + self.pos_embed.to(x.dtype)
        for layer in self.layers:
            x = layer(x)
            seen.append(x)
        return seen

    def forward(self, image):
        return self.head(self.norm(self.stages(image)[-1]).mean(1))


class TalkingHeads(nn.Module):
    """CaiT's attention, whose heads are mixed before and after the softmax. With a context (class layers) the queries
    are the class token's, keys and values the patches'."""

    def __init__(self, dim, options, of_class):
        super().__init__()
        heads, width = options["heads"], options["head_dim"]
        self.heads, inner = heads, heads * width
        if of_class:
            self.q, self.k, self.v = (nn.Linear(dim, inner, bias=options["qkv_bias"]) for _ in range(3))
        else:
            self.qkv = nn.Linear(dim, 3 * inner, bias=options["qkv_bias"])
        self.proj_l, self.proj_w = nn.Linear(heads, heads, bias=False), nn.Linear(heads, heads, bias=False)
        self.proj = nn.Linear(inner, dim)
        self.factor = width ** -0.5
        self.scale = nn.Parameter(torch.full((heads,), self.factor)) if options["scale"] == "learned" else None
        masked = options["mask_diagonal"] and not of_class
        self.fill = {"zero": 0.0, "-inf": float("-inf")}[options.get("mask_fill", "-inf")] if masked else None

    def filled(self, scores, wanted):
        if self.fill is None or (self.fill == 0) != wanted:
            return scores
        return scores.masked_fill(torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device), self.fill)

    def mixed(self, weight, x):
        return F.linear(x.permute(0, 2, 3, 1), weight).permute(0, 3, 1, 2)

    def forward(self, x, context=None):
        q, k, v = (self.q(x), self.k(context), self.v(context)) if context is not None else self.qkv(x).chunk(3, -1)
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
        factor = self.factor if self.scale is None else self.scale.to(q.dtype).view(-1, 1, 1)
        scores = self.mixed(self.proj_l.weight, self.filled((q * factor) @ k.transpose(-2, -1), True))
        shares = self.mixed(self.proj_w.weight, self.filled(scores, False).softmax(-1).to(v.dtype))
        return self.proj((shares @ v).transpose(1, 2).flatten(2))


class CaitBlock(nn.Module):
    def __init__(self, dim, options, of_class, mlp_ratio, rate):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.mlp = TalkingHeads(dim, options, of_class), Mlp(dim, int(dim * mlp_ratio))
        self.gamma_1, self.gamma_2 = (nn.Parameter(torch.full((dim,), 0.1)) for _ in range(2))
        self.drop = DropPath(rate)

    def forward(self, x, context=None):
        x = x + self.drop(self.gamma_1.to(x.dtype) * self.attn(self.norm1(x), context))
        return x + self.drop(self.gamma_2.to(x.dtype) * self.mlp(self.norm2(x)))


class CaiT(nn.Module):
    def __init__(self, config, flex=None):
        super().__init__()
        dim, depth = config["dim"], config["depth"]
        side = config["image_size"] // config["tokenizer"]["patch_size"]
        self.patch_embed = Tokens(config["in_channels"], dim, config["tokenizer"])
        self.pos_embed = nn.Parameter(torch.randn(1, side * side, dim))
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        rates = drop_rates({"drop_path_rule": "constant", **config}, depth + config["class_depth"])
        made = [CaitBlock(dim, config["attention"], i >= depth, config["mlp_ratio"], rate)
                for i, rate in enumerate(rates)]
        self.blocks, self.blocks_token_only = nn.Sequential(*made[:depth]), nn.ModuleList(made[depth:])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, config["num_classes"])

    def forward(self, image):
        x = self.patch_embed(image)
        x = self.blocks(x + self.pos_embed.to(x.dtype))
        token = self.cls_token.to(x.dtype).expand(len(x), -1, -1)
        for block in self.blocks_token_only:
            token = block(token, x)
        return self.head(self.norm(token[:, 0]))

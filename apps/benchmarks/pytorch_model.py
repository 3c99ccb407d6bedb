"""The engine's ViT family as a fast one is written in PyTorch, for pytorch_peer.py."""

import torch
from torch import nn
from torch.nn import functional as F

DIAGONAL = [(-1, -1), (-1, 1), (1, -1), (1, 1)]  # (dy, dx), in pixels of the shift


class Tokens(nn.Module):
    """Patches of the image, or of it and its four shifted copies (SPT), through a linear map."""

    def __init__(self, channels, dim, patch, shifted):
        super().__init__()
        self.patch, self.shift = patch, patch // 2 if shifted else 0
        planes = channels * (5 if shifted else 1)
        if shifted:
            self.norm = nn.LayerNorm(planes * patch * patch)
        self.proj = nn.Conv2d(planes, dim, patch, patch)

    def forward(self, x):
        if not self.shift:
            return self.proj(x).flatten(2).transpose(1, 2)
        s, (h, w) = self.shift, x.shape[2:]
        padded = F.pad(x, (s, s, s, s))
        x = torch.cat([x] + [padded[:, :, s + dy * s:s + dy * s + h, s + dx * s:s + dx * s + w]
                             for dy, dx in DIAGONAL], 1)
        cut = F.pixel_unshuffle(x, self.patch).flatten(2).transpose(1, 2)  # [B, N, (c, p1, p2)]
        return F.linear(self.norm(cut), self.proj.weight.flatten(1), self.proj.bias)


class Attention(nn.Module):
    """Softmax attention; LSA learns the scale and masks the diagonal."""

    def __init__(self, dim, heads, width, locality, tokens, flex):
        super().__init__()
        self.heads, self.width, self.flex, self.block_mask = heads, width, flex, None
        if flex and locality:  # made here: a compiler that is to see the whole graph cannot trace its making
            from torch.nn.attention.flex_attention import create_block_mask
            self.block_mask = create_block_mask(lambda b, h, i, j: i != j, None, None, tokens, tokens, flex)
        self.qkv = nn.Linear(dim, 3 * heads * width, bias=False)
        self.proj = nn.Linear(heads * width, dim)
        self.scale = nn.Parameter(torch.full((heads,), width ** -0.5)) if locality else None
        mask = ~torch.eye(tokens, dtype=torch.bool) if locality else None
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, self.width).permute(2, 0, 3, 1, 4)
        factor = self.width ** -0.5
        if self.scale is not None:
            q, factor = q * self.scale.to(q.dtype).view(-1, 1, 1), 1.0
        if self.flex:
            from torch.nn.attention.flex_attention import flex_attention
            y = flex_attention(q, k, v, scale=factor, block_mask=self.block_mask)
        else:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask, scale=factor)
        return self.proj(y.transpose(1, 2).reshape(b, n, -1))


class Mlp(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, dim, heads, width, hidden, locality, tokens, rate, flex):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads, width, locality, tokens, flex)
        self.mlp = Mlp(dim, hidden)
        self.rate = rate

    def drop(self, branch):
        if not self.training or self.rate == 0:
            return branch
        keep = torch.empty(branch.shape[0], 1, 1, device=branch.device, dtype=branch.dtype)
        return branch * keep.bernoulli_(1 - self.rate).div_(1 - self.rate)

    def forward(self, x):
        x = x + self.drop(self.attn(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class ViT(nn.Module):
    """A config of the engine (`tessera summary --json`, a fixture's) as a module with the same parameter names.
    `flex`: the device for flex_attention's masks, or None for scaled_dot_product_attention."""

    def __init__(self, config, flex=None):
        super().__init__()
        dim, depth, attention, tokenizer = (config[k] for k in ("dim", "depth", "attention", "tokenizer"))
        locality = attention["scale"] == "learned"
        if locality != attention["mask_diagonal"] or attention["qkv_bias"]:
            raise ValueError(f"this peer knows no {attention}")
        patch = tokenizer["patch_size"]
        tokens = (config["image_size"] // patch) ** 2 + 1
        self.patch_embed = Tokens(config["in_channels"], dim, patch, tokenizer["kind"] == "shifted")
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.randn(1, tokens, dim))
        self.blocks = nn.Sequential(*[
            Block(dim, attention["heads"], attention["head_dim"], int(dim * config["mlp_ratio"]), locality, tokens,
                  config["drop_path"], flex) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, config["num_classes"])

    def forward(self, image):
        x = self.patch_embed(image)
        # Under autocast an f32 position would make the whole residual stream f32, twice the bytes.
        x = torch.cat([self.cls_token.to(x.dtype).expand(len(x), -1, -1), x], 1) + self.pos_embed.to(x.dtype)
        return self.head(self.norm(self.blocks(x)[:, 0]))


def preset(name, image_size, classes):
    """As `tessera models` has it: 9 blocks of width 192, 12 heads of 16, 64 patches."""
    shifted, locality = name in ("s-vit", "sl-vit"), name in ("l-vit", "sl-vit")
    tokenizer = {"kind": "shifted" if shifted else "patch", "patch_size": image_size // 8}
    return {"image_size": image_size, "in_channels": 3, "num_classes": classes, "dim": 192, "depth": 9,
            "mlp_ratio": 2.0, "drop_path": 0.1, "tokenizer": tokenizer,
            "attention": {"heads": 12, "head_dim": 16, "qkv_bias": False,
                          "scale": "learned" if locality else "fixed", "mask_diagonal": locality}}

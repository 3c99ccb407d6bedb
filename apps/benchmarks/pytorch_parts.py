"""What the architectures share, as fast PyTorch is written.

Parameters have the names of the engine's, so that a fixture's weights load. Configs are the engine's own (`tessera
summary PRESET --json`, a fixture's metadata).
"""

import torch
from torch import nn
from torch.nn import functional as F

from pytorch_scores import Decay, RelativeBias, gate_of, gates_of, manhattan, prior_of

DIAGONAL = [(-1, -1), (-1, 1), (1, -1), (1, 1)]  # (dy, dx), in pixels of the shift


def with_copies(x, shift):
    """The image beside its four shifted copies: [B, C, H, W] -> [B, 5 C, H, W]"""
    h, w = x.shape[2:]
    padded = F.pad(x, (shift, shift, shift, shift))
    return torch.cat([x] + [padded[:, :, shift + dy * shift:shift + dy * shift + h,
                                   shift + dx * shift:shift + dx * shift + w] for dy, dx in DIAGONAL], 1)


def to_map(x, grid):
    """Tokens [B, h w, D] as a map [B, D, h, w] whose channels stay innermost in memory."""
    return x.unflatten(1, grid).permute(0, 3, 1, 2)


def to_tokens(x):
    return x.permute(0, 2, 3, 1).flatten(1, 2)


def drop_rates(config, blocks):
    """The rate of each residual branch: the same, or rising from 0."""
    rate = config.get("drop_path", 0.0)
    if config.get("drop_path_rule", "linear") == "constant":
        return [rate] * blocks
    return [rate * i / max(blocks - 1, 1) for i in range(blocks)]


def attend(q, k, v, mask, factor, explicit, omega=None):
    """Softmax attention by PyTorch's fused kernel, or explicit: on CPUs that kernel is the slower one in bf16, and it
    takes no factor `omega` of the scores. `mask`: what is added to them, or of bools what may be seen."""
    if not explicit and omega is None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=factor)
    scores = (q * factor) @ k.transpose(-2, -1)
    if omega is not None:
        scores = scores * omega.to(scores.dtype)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1).to(v.dtype) @ v


class DropPath(nn.Module):
    """Stochastic depth: drops a residual branch of some images in training."""

    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, branch):
        if not self.training or self.rate == 0:
            return branch
        keep = branch.new_empty(branch.shape[0], *[1] * (branch.dim() - 1))
        return branch * keep.bernoulli_(1 - self.rate).div_(1 - self.rate)


class Tokens(nn.Module):
    """Patches of the image, or of it and its four shifted copies (SPT), through a linear map."""

    def __init__(self, channels, dim, options):
        super().__init__()
        patch, shifted = options["patch_size"], options["kind"] == "shifted"
        if options["kind"] not in ("patch", "shifted") or options.get("directions", "diagonal") != "diagonal":
            raise ValueError(f"this peer knows no {options}")
        self.patch, self.shift = patch, int(patch * options.get("ratio", 0.5)) if shifted else 0
        planes = channels * (5 if shifted else 1)
        if shifted:
            self.norm = nn.LayerNorm(planes * patch * patch)
        elif options.get("post_norm"):
            self.norm = nn.LayerNorm(dim)
        else:
            self.norm = nn.Identity()
        self.proj = nn.Conv2d(planes, dim, patch, patch)

    def forward(self, x):
        if not self.shift:
            return self.norm(self.proj(x).flatten(2).transpose(1, 2))
        cut = F.pixel_unshuffle(with_copies(x, self.shift), self.patch)
        cut = cut.flatten(2).transpose(1, 2)  # [B, N, (c, p1, p2)]
        return F.linear(self.norm(cut), self.proj.weight.flatten(1), self.proj.bias)


class Attention(nn.Module):
    """Softmax attention of a grid's tokens after `prefix` others; LSA learns the scale and masks the diagonal, SP-SA
    multiplies the scores, Swin's bias and decay are added. `flex`: the device for flex_attention's mask, or None for
    attend()."""

    explicit = False

    def __init__(self, dim, options, grid, prefix=0, flex=None):
        super().__init__()
        self.heads, self.prefix = options["heads"], prefix
        self.width = options.get("head_dim", dim // self.heads)
        tokens, prior, decay = prefix + grid[0] * grid[1], options.get("prior"), options.get("decay")
        learned, masked = options.get("scale") == "learned", options.get("mask_diagonal", False)
        biased = options.get("relative_bias", False)
        if flex and (prior or decay or biased):
            raise ValueError("flex_attention is written for the diagonal's mask alone")
        if prior and prior["sharing"] == "model":
            raise ValueError("this peer shares a prior by the whole model in LV-ViT alone")
        self.flex, self.block_mask = flex, None
        if flex and masked:  # made here: a compiler that is to see the whole graph cannot trace its making
            from torch.nn.attention.flex_attention import create_block_mask
            self.block_mask = create_block_mask(lambda b, h, i, j: i != j, None, None, tokens, tokens, flex)
        self.qkv = nn.Linear(dim, 3 * self.heads * self.width, bias=options.get("qkv_bias", False))
        self.proj = nn.Linear(self.heads * self.width, dim)
        self.scale = nn.Parameter(torch.full((self.heads,), self.width ** -0.5)) if learned else None
        mask = ~torch.eye(tokens, dtype=torch.bool) if masked else None
        self.register_buffer("mask", mask, persistent=False)
        self.prior = prior_of(prior, self.heads if prior and prior["sharing"] == "head" else 1, grid[0], prefix)
        rows = (2 * grid[0] - 1) ** 2
        self.relative_position_bias_table = nn.Parameter(torch.randn(rows, self.heads) * 0.02) if biased else None
        self.bias = RelativeBias(grid[0], prefix) if biased else None
        self.decay = Decay(decay, self.heads, manhattan(*grid), prefix) if decay else None
        self.gate = gate_of(decay, dim, self.heads)

    def added(self, x, windows, dtype):
        """What is added to the scores (or, of bools, what may be seen): [1 or B, 1 or H, N, N], or None."""
        terms = []
        if self.bias is not None:
            terms.append(self.bias(self.relative_position_bias_table.to(dtype))[None])
        if windows is not None:
            terms = [sum(terms, windows[:, None].to(dtype)).repeat(len(x) // len(windows), 1, 1, 1)]
        if self.decay is not None:
            terms.append(self.decay(gates_of(self.gate, x, self.prefix)).to(dtype))
        if not terms:
            return self.mask
        total = sum(terms[1:], terms[0])
        return total if self.mask is None else total.masked_fill(~self.mask, float("-inf"))

    def forward(self, x, windows=None, omega=None):
        """x [B, N, D]; windows [W, N, N], added to the scores of every W images; omega [1, N, N], their factor where it
        is not of this layer."""
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, self.width).permute(2, 0, 3, 1, 4)
        factor = self.width ** -0.5
        if self.scale is not None:
            q, factor = q * self.scale.to(q.dtype).view(-1, 1, 1), 1.0
        if self.prior is not None:
            omega = self.prior()
        if self.flex:
            from torch.nn.attention.flex_attention import flex_attention
            y = flex_attention(q, k, v, scale=factor, block_mask=self.block_mask)
        else:
            y = attend(q, k, v, self.added(x, windows, q.dtype), factor, self.explicit, omega)
        return self.proj(y.transpose(1, 2).reshape(b, n, -1))


class Mlp(nn.Module):
    def __init__(self, dim, hidden, approximate="none"):
        super().__init__()
        self.fc1, self.fc2, self.approximate = nn.Linear(dim, hidden), nn.Linear(hidden, dim), approximate

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate=self.approximate))


class Block(nn.Module):
    """A pre-norm block whose branches are divided by `skip`; with `keeps_norm` (T2T) the normed input stays beside
    the attention."""

    def __init__(self, dim, attention, mlp_ratio, rate, skip=1.0, keeps_norm=False):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.mlp = attention, Mlp(dim, int(dim * mlp_ratio))
        self.drop, self.skip, self.keeps_norm = DropPath(rate), skip, keeps_norm

    def forward(self, x, omega=None):
        normed = self.norm1(x)
        branch = self.attn(normed, omega=omega)
        if self.keeps_norm:
            branch = branch + normed
        if self.skip == 1:
            x = x + self.drop(branch)
            return x + self.drop(self.mlp(self.norm2(x)))
        x = x + self.drop(branch) / self.skip
        return x + self.drop(self.mlp(self.norm2(x))) / self.skip


def with_class_token(token, x):
    return torch.cat([token.to(x.dtype).expand(len(x), -1, -1), x], 1)


def of_stage(options, i):
    """A stage's own values of the lists in a config."""
    return {key: value[i] if isinstance(value, list) else value for key, value in options.items()}

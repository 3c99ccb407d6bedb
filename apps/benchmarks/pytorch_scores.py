"""The terms of an attention score: SP-SA's factor, Swin's bias, the decay of RMT and SDT."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def offset_index(side):
    """The row of a table of all offsets for each pair of tokens, query minus key: [side^2, side^2]"""
    at = torch.arange(side)
    y, x = at.repeat_interleave(side), at.repeat(side)
    return (y[:, None] - y + side - 1) * (2 * side - 1) + x[:, None] - x + side - 1


def of_pairs(table, index, prefix, fill):
    """A table [T, H] by pairs of tokens, [H, N, N]; those with a token of the prefix have `fill`."""
    return F.pad(table[index].permute(2, 0, 1), (prefix, 0, prefix, 0), value=fill)


class RelativeBias(nn.Module):
    """Swin's. The parameter is the attention's own, under its name."""

    def __init__(self, side, prefix):
        super().__init__()
        self.prefix = prefix
        self.register_buffer("index", offset_index(side), persistent=False)

    def forward(self, table):
        return of_pairs(table, self.index, self.prefix, 0.0)


class HeadOutputs(nn.Module):
    """One output a head: [T, H, hidden] -> [T, H]"""

    def __init__(self, heads, hidden):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(heads, hidden)), nn.Parameter(torch.ones(heads))

    def forward(self, x):
        return (x * self.weight).sum(-1) + self.bias


class SpatialPrior(nn.Module):
    """SP-SA's factor of each head's scores, [H, N, N], by a small network from the offset (dx, dy), key minus query;
    it runs once for each offset. Pairs with a token of the prefix have 1."""

    def __init__(self, heads, hidden, side, prefix=0):
        super().__init__()
        self.heads, self.prefix = heads, prefix
        self.fc1, self.fc2 = nn.Linear(2, heads * hidden), HeadOutputs(heads, hidden)
        step = torch.arange(1 - side, side)
        offsets = torch.stack([step.repeat(2 * side - 1), step.repeat_interleave(2 * side - 1)], 1)
        self.register_buffer("offsets", offsets.float(), persistent=False)
        self.register_buffer("index", offset_index(side).T.contiguous(), persistent=False)

    def forward(self):
        hidden = F.relu(self.fc1(self.offsets)).unflatten(1, (self.heads, -1))
        return of_pairs(self.fc2(hidden), self.index, self.prefix, 1.0)


def prior_of(options, heads, side, prefix=0):
    """The prior of a config's "attention.prior" for this many heads, or None."""
    return SpatialPrior(heads, options.get("hidden", 16), side, prefix) if options else None


def manhattan(h, w):
    at = torch.arange(h * w)
    y, x = at // w, at % w
    return ((y[:, None] - y).abs() + (x[:, None] - x).abs()).float()


class Decay(nn.Module):
    """What decay adds to the scores, which is never positive: for `content` by the gates of the tokens, else the same
    for all images. Pairs with a token of the prefix have 0."""

    def __init__(self, options, heads, distance, prefix=0):
        super().__init__()
        kind, self.alpha = options["kind"], options.get("alpha", 1.0)
        self.gated, self.by_distance, self.prefix = kind == "content", options.get("distance", True), prefix
        if kind == "fixed":
            first, more = options.get("initial", 2.0), options.get("range", 4.0)
            slopes = [math.log(1 - 2.0 ** -(first + more * head / heads)) for head in range(heads)]
        elif kind in ("distance", "content"):
            slopes = [-self.alpha]
        else:
            raise ValueError(f"this peer knows no {options}")
        constant = distance if self.gated else self.padded(torch.tensor(slopes).view(1, -1, 1, 1) * distance)
        self.register_buffer("constant", constant, persistent=False)

    def padded(self, x):
        return F.pad(x, (self.prefix, 0, self.prefix, 0))

    def forward(self, gates=None):
        """gates [..., H, N] of the grid's tokens, for content alone -> [1 or ..., 1 or H, N, N]"""
        if not self.gated:
            return self.constant
        m = 0.5 * self.alpha * (gates[..., :, None] + gates[..., None, :])
        return self.padded(-(m * self.constant if self.by_distance else m).abs())


def gate_of(options, dim, heads):
    """The map from tokens to a content decay's gates, or None."""
    return nn.Linear(dim, heads) if options and options["kind"] == "content" else None


def gates_of(gate, x, prefix=0):
    """[B, N, D] -> [B, H, N] without the prefix, or None without a gate"""
    return None if gate is None else F.logsigmoid(gate(x[:, prefix:])).transpose(1, 2)

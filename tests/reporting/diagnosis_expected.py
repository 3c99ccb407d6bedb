"""Writes diagnosis_expected.json: what PyTorch definitions of the models make of the fixtures, in float64.

    python3 diagnosis_expected.py REFERENCE FIXTURES > diagnosis_expected.json

REFERENCE is a folder with the definitions from which the fixtures come; FIXTURES is tests/fixtures.
The attention of each layer is computed here as one matrix over all pairs of tokens, for decomposed
attention the product of its two parts, so that nothing of how the engine does it is repeated.
"""

import json
import sys

import torch

sys.path.insert(0, sys.argv[1])
import fixture  # noqa: E402
import models  # noqa: E402

NAMES = ["vit", "l-vit", "sl-vit", "sp-vit", "sp-vit-layer", "sp-vit-shared", "rmt", "sdt", "sdt-distance",
         "sdt-no-distance"]
QUERY = (0.3, 0.7)


def divergence(p):
    """p [B, H, Q, N] -> by head, the mean of sum_j p_j log(N p_j)."""
    terms = torch.where(p > 0, p * torch.log(p * p.shape[-1]), torch.zeros_like(p))
    return terms.sum(-1).mean((0, 2)).tolist()


class Watch:
    """Records the probabilities of every softmax and the module in which it ran."""

    def __init__(self, model):
        self.layers, self.inputs = [], {}
        for name, module in model.named_modules():
            if name.endswith("attn"):
                module.register_forward_pre_hook(lambda m, x, name=name: self.enter(name, m, x[0]))

    def enter(self, name, module, x):
        self.layers.append((name, module, []))
        self.inputs[name] = x

    def __enter__(self):
        self.softmax = torch.Tensor.softmax
        torch.Tensor.softmax = lambda s, dim: self.note(self.softmax(s, dim))
        return self

    def __exit__(self, *_):
        torch.Tensor.softmax = self.softmax

    def note(self, p):
        self.layers[-1][2].append(p)
        return p


def whole(parts):
    """The attention [B, H, N, N] of a layer, from one softmax or from rows [B, h, H, w, w] and columns."""
    if len(parts) == 1:
        return parts[0]
    rows, columns = parts
    a = torch.einsum("bxnpy,bynxz->bnpxyz", columns, rows)
    return a.flatten(4, 5).flatten(2, 3)


def around(matrix, grid):
    """One query's row of the first image of [(B,) H, N, N], on the grid."""
    m = matrix[0] if matrix.dim() == 4 else matrix
    (h, w), prefix = grid, m.shape[-1] - grid[0] * grid[1]
    token = prefix + int(QUERY[0] * h) * w + int(QUERY[1] * w)
    return m[:, token, prefix:].unflatten(1, grid).tolist()


def by_offset(prior):
    """Omega [H, N, N] of all pairs, one value for each offset (dy, dx)."""
    omega, (h, w) = prior(), prior.grid
    omega = omega[:, -h * w:, -h * w:]
    table = torch.zeros(len(omega), 2 * h - 1, 2 * w - 1, dtype=omega.dtype)
    for i in range(h * w):
        for j in range(h * w):
            table[:, j // w - i // w + h - 1, j % w - i % w + w - 1] = omega[:, i, j]
    return table.tolist()


def layer(name, module, parts, x):
    heads, scale = module.heads, getattr(module, "scale", None)
    width = module.qkv.weight.shape[0] // (3 * heads)
    learned = isinstance(scale, torch.nn.Parameter)
    row = {"path": name, "learned": learned, "sqrt_d": width ** 0.5,
           "temperature": (1 / scale).tolist() if learned else [width ** 0.5] * heads,
           "divergence": divergence(whole(parts))}
    if module.gate is not None:
        row["decay"] = around(module.gate(x), module.grid)
    return row


def expected(name):
    model, inputs, _ = fixture.rebuild(*fixture.load(f"{sys.argv[2]}/{name}.safetensors"))
    model = model.double().eval()
    watch = Watch(model)
    with watch, torch.no_grad():
        model(inputs["input"].double())
        layers = [layer(path, module, parts, watch.inputs[path]) for path, module, parts in watch.layers]
        priors = [{"path": path, "omega": by_offset(module)}
                  for path, module in sorted(model.named_modules()) if path.split(".")[-1] == "prior"]
    return {"layers": layers, "priors": priors}


def rounded(x):
    """Nine digits, which keeps the file small."""
    if isinstance(x, dict):
        return {key: rounded(value) for key, value in x.items()}
    return [rounded(value) for value in x] if isinstance(x, list) else \
        float(f"{x:.9g}") if isinstance(x, float) else x


print(json.dumps({name: rounded(expected(name)) for name in NAMES}))

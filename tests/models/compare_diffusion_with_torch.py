#!/usr/bin/env python3
"""Compares the diffusion of DiT, with a learned variance, with what PyTorch's distributions give in double.

    compare_diffusion_with_torch.py --tessera build/tessera [--write FIXTURE.safetensors]

A network whose last layer answers its bias alone makes the noise and v known numbers, so that noise, loss, its gradient
and both samplers follow from the equations of Ho et al. (2020), Nichol and Dhariwal (2021) and Song et al. (2021) with
nothing of a transformer. Here q(x_{t-1} | x_t, x_0) is Bayes' product of two normal densities, the divergence is that
of torch.distributions, and the gradient is autograd's. For each schedule a fixture is written, which `tessera parity`
compares in double. --write leaves the fixture of the short cosine schedule where it says.

Exit code 1 where a difference exceeds parity's tolerance of 1e-6, or where a wrong value is not noticed; 77 where torch
is missing.
"""

import argparse
import json
import math
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    from torch.distributions import Normal, kl_divergence
except ImportError as error:
    print(f"skipped: python3 has no {error.name}")
    sys.exit(77)

torch.set_default_dtype(torch.float64)
SIDE, CHANNELS, CLASSES, DIM, PATCH = 4, 2, 3, 8, 2
CASES = [("linear", 1000, True), ("linear", 40, True), ("cosine", 1000, True), ("cosine", 24, True),
         ("cosine", 60, False)]


def abars(betas, steps):
    """abar_t for t = 0 .. steps - 1."""
    if betas == "linear":
        beta = torch.linspace(1e-4 * 1000 / steps, 0.02 * 1000 / steps, steps)
    else:
        def remaining(t):
            return math.cos((t / steps + 0.008) / 1.008 * math.pi / 2) ** 2
        beta = torch.tensor([min(1 - remaining(t + 1) / remaining(t), 0.999) for t in range(steps)])
    return torch.cumprod(1 - beta, 0)


class Step:
    """One step of a chain, from the noisier image x (abar `now`) to the one before (abar `before`)."""

    def __init__(self, now, before, clipped_variance):
        self.now, self.before = now, before
        self.alpha = now / before
        self.beta = 1 - self.alpha
        self.smallest = clipped_variance  # log variance of q; the first step, where it would be -inf, has the second's

    def posterior(self, x0, x):
        """Mean of q(x_{t-1} | x_t, x_0): N(x_t; sqrt(alpha) x_{t-1}, beta) N(x_{t-1}; sqrt(before) x_0, 1 - before)."""
        if self.before == 1:
            return x0
        precision = self.alpha / self.beta + 1 / (1 - self.before)
        return (self.alpha.sqrt() / self.beta * x + self.before.sqrt() / (1 - self.before) * x0) / precision

    def x0(self, x, noise):
        return (x - (1 - self.now).sqrt() * noise) / self.now.sqrt()

    def log_variance(self, v):
        return self.beta.log() if v is None else (v + 1) / 2 * self.beta.log() + (1 - v) / 2 * self.smallest


def chain(all_abars, times):
    abar = all_abars[times]
    before = torch.cat([torch.ones(1), abar[:-1]])
    beta = 1 - abar / before
    variance = 1 / (abar / before / beta + 1 / (1 - before))     # of Bayes' product
    variance[0] = variance[1]
    return [Step(abar[i], before[i], variance[i].log()) for i in range(len(times))]


def normal_cdf(x):
    """The tanh approximation of the authors' code."""
    return 0.5 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def bits(step, first, x0, x, mean, log_variance):
    """The variational bound of one image's elements."""
    spread = (log_variance / 2).exp()
    if not first:
        q = Normal(step.posterior(x0, x), (step.smallest / 2).exp())
        return kl_divergence(q, Normal(mean, spread)) / math.log(2)
    above, below = normal_cdf((x0 + 1 / 255 - mean) / spread), normal_cdf((x0 - 1 / 255 - mean) / spread)
    mass = torch.where(x0 < -0.999, above, torch.where(x0 > 0.999, 1 - below, above - below))
    return -mass.clamp(min=1e-12).log2()


def training_loss(steps, out, x0, x, t, noise):
    predicted, v = (out[:, :CHANNELS], out[:, CHANNELS:]) if out.shape[1] > CHANNELS else (out, None)
    simple = ((predicted - noise) ** 2).mean()
    if v is None:
        return simple
    terms = []
    for i, time in enumerate(t.tolist()):
        step = steps[time]
        mean = step.posterior(step.x0(x[i], predicted[i].detach()), x[i])
        terms.append(bits(step, time == 0, x0[i], x[i], mean, step.log_variance(v[i])))
    return simple + torch.stack(terms).mean()


def sample(all_abars, start, answer, draw):
    """(ddpm, ddim) in five steps; guidance changes nothing, as the answer knows no class."""
    count = len(all_abars)
    steps = chain(all_abars, torch.tensor([round(i * (count - 1) / 4) for i in range(5)]))
    noise, v = answer[:, :CHANNELS], answer[:, CHANNELS:] if answer.shape[1] > CHANNELS else None
    ancestral, implicit = start, start
    for i in reversed(range(5)):
        step = steps[i]
        spread = (step.log_variance(v) / 2).exp() if i > 0 else 0
        ancestral = step.posterior(step.x0(ancestral, noise), ancestral) + spread * draw
        implicit = step.before.sqrt() * step.x0(implicit, noise) + (1 - step.before).sqrt() * noise
    return ancestral, implicit


def parameters(out_channels, generator):
    """Every parameter of the network, in its order; all but the last bias do not reach the answer."""
    def some(*shape):
        return torch.randn(*shape, generator=generator) * 0.1
    half = torch.cat([torch.zeros(DIM), -torch.ones(DIM)])       # shift 0, scale -1: the last layer is given zeros
    out = PATCH * PATCH * out_channels
    return {"patch_embed.proj.weight": some(DIM, CHANNELS, PATCH, PATCH), "patch_embed.proj.bias": some(DIM),
            "t_embed.fc1.weight": some(DIM, 8), "t_embed.fc1.bias": some(DIM),
            "t_embed.fc2.weight": some(DIM, DIM), "t_embed.fc2.bias": some(DIM),
            "y_embed.weight": some(CLASSES + 1, DIM),
            "blocks.0.attn.qkv.weight": some(3 * DIM, DIM), "blocks.0.attn.qkv.bias": some(3 * DIM),
            "blocks.0.attn.proj.weight": some(DIM, DIM), "blocks.0.attn.proj.bias": some(DIM),
            "blocks.0.mlp.fc1.weight": some(4 * DIM, DIM), "blocks.0.mlp.fc1.bias": some(4 * DIM),
            "blocks.0.mlp.fc2.weight": some(DIM, 4 * DIM), "blocks.0.mlp.fc2.bias": some(DIM),
            "blocks.0.adaln.weight": some(6 * DIM, DIM), "blocks.0.adaln.bias": some(6 * DIM),
            "final.adaln.weight": torch.zeros(2 * DIM, DIM), "final.adaln.bias": half,
            "final.proj.weight": torch.zeros(out, DIM), "final.proj.bias": 5 * some(out)}


def unpatchified(bias, batch):
    """The answer for every image: the bias holds one patch, [P, P, C]. [B, C, SIDE, SIDE]"""
    patch = bias.reshape(PATCH, PATCH, -1).permute(2, 0, 1)
    return patch.repeat(1, SIDE // PATCH, SIDE // PATCH).expand(batch, -1, -1, -1)


def fixture(betas, steps, learn_sigma, seed):
    """(config, {name: tensor}) of one schedule."""
    generator = torch.Generator().manual_seed(seed)
    out_channels = CHANNELS * (1 + learn_sigma)
    config = {"arch": "dit", "image_size": SIDE, "in_channels": CHANNELS, "num_classes": CLASSES, "dim": DIM,
              "depth": 1, "tokenizer": {"kind": "patch", "patch_size": PATCH},
              "attention": {"heads": 2, "qkv_bias": True},
              "learn_sigma": learn_sigma, "time_dim": 8, "steps": steps, "betas": betas}
    # Times at both ends, and numbers beyond and within +-0.999 at time 0.
    t = torch.tensor([0, 0, 1, steps // 2, steps - 1])
    y = torch.tensor([0, 1, 2, 0, 1])
    shape = (len(t), CHANNELS, SIDE, SIDE)
    # What the file rounds to f32 is rounded before anything is computed from it.
    x0, noise = [torch.randn(shape, generator=generator).float().double() for _ in range(2)]
    weights = {name: value.float().double() for name, value in parameters(out_channels, generator).items()}
    bias = weights["final.proj.bias"].clone().requires_grad_()
    answer = unpatchified(bias, len(t))
    loss = ((answer[:, :CHANNELS] - noise) ** 2).mean()
    slope, = torch.autograd.grad(loss, bias)

    all_abars = abars(betas, steps)
    x = torch.stack([all_abars[k].sqrt() * x0[i] + (1 - all_abars[k]).sqrt() * noise[i]
                     for i, k in enumerate(t.tolist())])
    out = answer.detach().clone().requires_grad_()
    step_loss = training_loss(chain(all_abars, torch.arange(steps)), out, x0, x, t, noise)
    gradient, = torch.autograd.grad(step_loss, out)
    ddpm, ddim = sample(all_abars, noise, answer.detach(), x0)
    tensors = {"t": t, "y": y, "input": x0, "noise": noise, "logits": answer, "loss": loss, "noisy": x,
               "noisy_logits": answer, "training_loss": step_loss, "grad_noisy_logits": gradient, "ddpm": ddpm,
               "ddim": ddim, "grad_input": torch.zeros(shape)}
    for name, value in weights.items():
        tensors["param." + name] = value
        tensors["grad." + name] = slope if name == "final.proj.bias" else torch.zeros(value.shape)
    return config, {name: tensor.detach() for name, tensor in tensors.items()}


def write(path, config, tensors):
    header, data = {"__metadata__": {"config": json.dumps(config)}}, b""
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1].dtype != torch.int64):  # 8 bytes first
        values = tensor.contiguous() if tensor.dtype == torch.int64 else tensor.float().contiguous()
        raw = values.numpy().tobytes()
        header[name] = {"dtype": "I64" if values.dtype == torch.int64 else "F32", "shape": list(values.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def parity(tessera, path):
    run = subprocess.run([tessera, "parity", path, "--dtype", "f64"], capture_output=True, text=True, check=False)
    return run.returncode == 0, (run.stdout + run.stderr).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", required=True)
    parser.add_argument("--write")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "case.safetensors")
        for seed, case in enumerate(CASES):
            config, tensors = fixture(*case, seed)
            write(path, config, tensors)
            equal, said = parity(options.tessera, path)
            failed |= not equal
            print(f"{case}: {'equal' if equal else 'DIFFERS'}\n{said}")
            for name in ("training_loss", "grad_noisy_logits", "ddpm", "ddim"):    # a hundredth of a per cent off
                write(path, config, {**tensors, name: tensors[name] * 1.0001})
                if parity(options.tessera, path)[0]:
                    failed = True
                    print(f"{case}: a wrong {name} is not noticed")
        if options.write:
            write(options.write, *fixture("cosine", 24, True, 7))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""What DiT is trained with: the noise of a time, and the loss of the network's answer."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def betas_of(steps, kind):
    at = torch.arange(steps, dtype=torch.float64)
    if kind == "linear":
        return (1e-4 + (0.02 - 1e-4) * at / (steps - 1)) * 1000 / steps

    def wave(t):
        return torch.cos((t / steps + 0.008) / 1.008 * math.pi / 2) ** 2

    return (1 - wave(at + 1) / wave(at)).clamp(max=0.999)


def normal_below(x):
    """The normal distribution function, by the approximation that it is a sigmoid."""
    return torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))


class Diffusion(nn.Module):
    """Coefficients of every time, computed in double; x_t = kept x_0 + added noise."""

    def __init__(self, steps, betas="linear"):
        super().__init__()
        beta = betas_of(steps, betas)
        kept = torch.cumprod(1 - beta, 0)
        before = torch.cat([torch.ones(1, dtype=kept.dtype), kept[:-1]])
        variance = beta * (1 - before) / (1 - kept)
        variance[0] = variance[1]  # the first step's is 0, and has no logarithm
        of_time = {"kept": kept.sqrt(), "added": (1 - kept).sqrt(),
                   "to_clean": beta * before.sqrt() / (1 - kept),
                   "to_noisy": (1 - before) * (1 - beta).sqrt() / (1 - kept),
                   "least": variance.log(), "most": beta.log()}
        for name, values in of_time.items():
            self.register_buffer(name, values.float().view(-1, 1, 1, 1), persistent=False)

    def noisy(self, clean, t, noise):
        return self.kept[t].to(clean.dtype) * clean + self.added[t].to(clean.dtype) * noise

    def mean(self, clean, noisy, t):
        """Of the step back from `noisy`."""
        return self.to_clean[t] * clean + self.to_noisy[t] * noisy

    def bound(self, answer, variance, clean, noisy, t):
        """The variational bound in bits for each number; its gradient goes to the variance alone."""
        mean = self.mean((noisy - self.added[t] * answer.detach()) / self.kept[t], noisy, t)
        log = torch.lerp(self.least[t], self.most[t], (1 + variance) / 2)
        ratio, apart = log - self.least[t], (self.mean(clean, noisy, t) - mean) ** 2 * (-log).exp()
        divergence = 0.5 * (ratio - 1 + (-ratio).exp() + apart)
        above, below = (normal_below((clean - mean + side / 255) * (-0.5 * log).exp()) for side in (1, -1))
        mass = torch.where(clean < -0.999, above, torch.where(clean > 0.999, 1 - below, above - below))
        first = (t == 0).view(-1, 1, 1, 1)
        return torch.where(first, -mass.clamp(min=1e-12).log(), divergence).mean() / math.log(2)

    def loss(self, answer, clean, noisy, t, noise):
        """The mean squared error of the noise and, where the network learns the variance, the bound."""
        answer, clean, noisy, noise = answer.float(), clean.float(), noisy.float(), noise.float()
        channels = clean.shape[1]
        error = F.mse_loss(answer[:, :channels], noise)
        if answer.shape[1] == channels:
            return error
        return error + self.bound(answer[:, :channels], answer[:, channels:], clean, noisy, t)

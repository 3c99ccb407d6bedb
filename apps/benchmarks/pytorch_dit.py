"""DiT: a transformer that predicts the noise in an image, told the time and the class."""

import torch
from torch import nn
from torch.nn import functional as F

from pytorch_parts import Attention, Mlp, Tokens


def waves(position, count):
    k = torch.arange(count, dtype=torch.float64, device=position.device)
    return position.double()[..., None] * 10000.0 ** (-k / count)


def modulate(x, shift, scale):
    return F.layer_norm(x, x.shape[-1:], eps=1e-6) * (1 + scale[:, None]) + shift[:, None]


class TimeEmbedding(nn.Module):
    def __init__(self, time_dim, dim):
        super().__init__()
        self.half, self.fc1, self.fc2 = time_dim // 2, nn.Linear(time_dim, dim), nn.Linear(dim, dim)

    def forward(self, t):
        angle = waves(t, self.half)
        return self.fc2(F.silu(self.fc1(torch.cat([angle.cos(), angle.sin()], 1).to(self.fc1.weight.dtype))))


class DitBlock(nn.Module):
    def __init__(self, dim, options, grid, mlp_ratio, flex):
        super().__init__()
        self.attn, self.mlp = Attention(dim, options, grid, 0, flex), Mlp(dim, int(dim * mlp_ratio), "tanh")
        self.adaln = nn.Linear(dim, 6 * dim)

    def forward(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.adaln(c).chunk(6, 1)
        x = x + gate1[:, None] * self.attn(modulate(x, shift1, scale1))
        return x + gate2[:, None] * self.mlp(modulate(x, shift2, scale2))


class FinalLayer(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.adaln, self.proj = nn.Linear(dim, 2 * dim), nn.Linear(dim, out)

    def forward(self, x, c):
        return self.proj(modulate(x, *self.adaln(c).chunk(2, 1)))


class DiT(nn.Module):
    """Its step is a regression: the mean squared error of the noise that was added."""

    def __init__(self, config, flex=None):
        super().__init__()
        dim, self.patch = config["dim"], config["tokenizer"]["patch_size"]
        self.side = config["image_size"] // self.patch
        if config["learn_sigma"]:
            raise ValueError("this peer predicts the noise alone")
        options = {"scale": "fixed", "mask_diagonal": False, **config["attention"]}
        self.patch_embed = Tokens(config["in_channels"], dim, config["tokenizer"])
        self.t_embed = TimeEmbedding(config["time_dim"], dim)
        self.y_embed = nn.Embedding(config["num_classes"] + (config["label_dropout"] > 0), dim)
        self.blocks = nn.ModuleList(
            DitBlock(dim, options, (self.side, self.side), config["mlp_ratio"], flex) for _ in range(config["depth"]))
        self.final = FinalLayer(dim, self.patch ** 2 * config["in_channels"])
        at = torch.arange(self.side)
        x, y = waves(at.repeat(self.side), dim // 4), waves(at.repeat_interleave(self.side), dim // 4)
        self.register_buffer("positions", torch.cat([x.sin(), x.cos(), y.sin(), y.cos()], 1).float(), persistent=False)
        scale = 1000 / config["steps"]
        betas = torch.linspace(1e-4 * scale, 0.02 * scale, config["steps"], dtype=torch.float64)
        self.register_buffer("kept", torch.cumprod(1 - betas, 0), persistent=False)

    def forward(self, image, t, y):
        x = self.patch_embed(image)
        x = x + self.positions.to(x.dtype)
        c = F.silu(self.t_embed(t) + self.y_embed(y))
        for block in self.blocks:
            x = block(x, c)
        x = self.final(x, c).unflatten(2, (self.patch, self.patch, -1)).unflatten(1, (self.side, self.side))
        return x.permute(0, 5, 1, 3, 2, 4).flatten(4, 5).flatten(2, 3)  # b, channel, h, p1, w, p2

    def loss(self, run, image, target, smoothing=0.0):
        """Of a step: a time for each image, and noise, drawn here."""
        t = torch.randint(len(self.kept), (len(image),), device=image.device)
        kept = self.kept[t].view(-1, 1, 1, 1)
        noise = torch.randn_like(image)
        noisy = kept.sqrt().to(image.dtype) * image + (1 - kept).sqrt().to(image.dtype) * noise
        return F.mse_loss(run(noisy, t, target).float(), noise.float())

"""DiT: a transformer that predicts the noise in an image, told the time and the class."""

import torch
from torch import nn
from torch.nn import functional as F

from pytorch_diffusion import Diffusion
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
    """Its step is a regression: the error of the noise that was added, and the bound of the variance that it learns."""

    def __init__(self, config, flex=None):
        super().__init__()
        dim, self.patch, self.classes = config["dim"], config["tokenizer"]["patch_size"], config["num_classes"]
        self.side, self.label_dropout = config["image_size"] // self.patch, config.get("label_dropout", 0.1)
        self.patch_embed = Tokens(config["in_channels"], dim, config["tokenizer"])
        self.t_embed = TimeEmbedding(config["time_dim"], dim)
        self.y_embed = nn.Embedding(self.classes + (self.label_dropout > 0), dim)
        self.blocks = nn.ModuleList(
            DitBlock(dim, config["attention"], (self.side, self.side), config.get("mlp_ratio", 4.0), flex)
            for _ in range(config["depth"]))
        self.final = FinalLayer(dim, self.patch ** 2 * config["in_channels"] * (1 + config["learn_sigma"]))
        at = torch.arange(self.side)
        x, y = waves(at.repeat(self.side), dim // 4), waves(at.repeat_interleave(self.side), dim // 4)
        self.register_buffer("positions", torch.cat([x.sin(), x.cos(), y.sin(), y.cos()], 1).float(), persistent=False)
        self.diffusion = Diffusion(config["steps"], config.get("betas", "linear"))

    def forward(self, image, t, y):
        x = self.patch_embed(image)
        x = x + self.positions.to(x.dtype)
        c = F.silu(self.t_embed(t) + self.y_embed(y))
        for block in self.blocks:
            x = block(x, c)
        x = self.final(x, c).unflatten(2, (self.patch, self.patch, -1)).unflatten(1, (self.side, self.side))
        return x.permute(0, 5, 1, 3, 2, 4).flatten(4, 5).flatten(2, 3)  # b, channel, h, p1, w, p2

    def infer(self, image):
        """One step of a sampler for the whole batch."""
        zeros = torch.zeros(len(image), dtype=torch.int64, device=image.device)
        return self(image, zeros, zeros)

    def loss(self, run, image, target, smoothing=0.0):
        """Of a step: a time for each image, and noise, drawn here; some labels are dropped."""
        t = torch.randint(len(self.diffusion.kept), (len(image),), device=image.device)
        dropped = torch.rand(len(image), device=image.device) < self.label_dropout
        noise = torch.randn_like(image)
        noisy = self.diffusion.noisy(image, t, noise)
        answer = run(noisy, t, torch.where(dropped, self.classes, target))
        return self.diffusion.loss(answer, image, noisy, t, noise)

    def evaluate(self, stored):
        """The outputs of a fixture's inputs, without samples."""
        image, t, y, noise = (stored[name] for name in ("input", "t", "y", "noise"))
        logits, noisy = self(image, t, y), self.diffusion.noisy(image, t, noise)
        answer = self(noisy, t, y)
        return {"logits": logits, "loss": F.mse_loss(logits[:, :image.shape[1]], noise), "noisy": noisy,
                "noisy_logits": answer, "training_loss": self.diffusion.loss(answer, image, noisy, t, noise)}

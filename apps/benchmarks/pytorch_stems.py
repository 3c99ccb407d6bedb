"""Transformers behind a stem of their own: T2T-ViT (soft splits), and LV-ViT with SP-ViT (convolutions)."""

import random

import torch
from torch import nn
from torch.nn import functional as F

from pytorch_parts import Attention, Block, Mlp, attend, drop_rates, to_map, to_tokens, with_class_token, with_copies
from pytorch_scores import prior_of


def soft_split(x):
    """3 x 3 windows, two pixels apart: [B, C, H, W] -> [B, N, 9 C]"""
    return F.unfold(x, 3, stride=2, padding=1).transpose(1, 2)


class TokenAttention(nn.Module):
    """One head on tokens of another width; the values take the place of the residual."""

    explicit = False

    def __init__(self, width, dim, options, tokens):
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * dim, bias=options["qkv_bias"]), nn.Linear(dim, dim)
        self.factor = width ** -0.5
        self.scale = nn.Parameter(torch.full((1,), self.factor)) if options["scale"] == "learned" else None
        mask = ~torch.eye(tokens, dtype=torch.bool) if options["mask_diagonal"] else None
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        q, k, v = (t[:, None] for t in self.qkv(x).chunk(3, -1))
        factor = self.factor
        if self.scale is not None:
            q, factor = q * self.scale.to(q.dtype), 1.0
        y = attend(q, k, v, self.mask, factor, self.explicit)
        return v[:, 0] + self.proj(y[:, 0])


class TokenTransformer(nn.Module):
    def __init__(self, width, dim, options, tokens):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(dim)
        self.attn, self.mlp = TokenAttention(width, dim, options, tokens), Mlp(dim, dim)

    def forward(self, x):
        x = self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TokensToToken(nn.Module):
    def __init__(self, config):
        super().__init__()
        options, side = config["tokenizer"], config["image_size"]
        self.shift = int(2 * options.get("ratio", 0.5)) if options.get("directions") else 0
        channels = config["in_channels"] * (5 if self.shift else 1)
        self.sides = []
        for i in range(options["splits"]):
            side = (side + 1) // 2
            self.sides.append(side)
            if i + 1 < options["splits"]:
                own = TokenTransformer(9 * channels, options["token_dim"], config["attention"], side * side)
                self.add_module(f"attention{i + 1}", own)
                channels = options["token_dim"]
        self.project = nn.Linear(9 * channels, config["dim"])

    def forward(self, x):
        if self.shift:
            x = with_copies(x, self.shift)
        for i, side in enumerate(self.sides[:-1]):
            tokens = getattr(self, f"attention{i + 1}")(soft_split(x))
            x = tokens.transpose(1, 2).unflatten(2, (side, side))
        return self.project(soft_split(x))


class T2T(nn.Module):
    def __init__(self, config, flex=None):
        super().__init__()
        dim = config["dim"]
        self.tokens_to_token = TokensToToken(config)
        side = self.tokens_to_token.sides[-1]
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        column = torch.arange(dim)
        angle = torch.arange(1 + side * side)[:, None] / 10000.0 ** (2 * (column // 2) / dim)
        sines = torch.where(column % 2 == 0, angle.sin(), angle.cos())
        self.register_buffer("pos_embed", sines[None].float())
        self.blocks = nn.Sequential(*[
            Block(dim, Attention(dim, config["attention"], (side, side), 1, flex), config["mlp_ratio"], rate,
                  keeps_norm=True) for rate in drop_rates(config, config["depth"])])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, config["num_classes"])

    def forward(self, image):
        x = self.tokens_to_token(image)
        x = with_class_token(self.cls_token, x) + self.pos_embed.to(x.dtype)
        return self.head(self.norm(self.blocks(x)[:, 0]))


class ConvStem(nn.Module):
    """Three convolutions at half the resolution, then patches."""

    def __init__(self, config):
        super().__init__()
        options = config["tokenizer"]
        c, half = options["channels"], options["patch_size"] // 2
        self.conv1 = nn.Conv2d(config["in_channels"], c, 7, 2, 3, bias=False)
        self.conv2, self.conv3 = (nn.Conv2d(c, c, 3, padding=1, bias=False) for _ in range(2))
        self.bn1, self.bn2, self.bn3 = (nn.BatchNorm2d(c) for _ in range(3))
        self.proj = nn.Conv2d(c, config["dim"], half, half)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.proj(F.relu(self.bn3(self.conv3(x))))


class LvBlock(Block):
    """With pos_cnn a depthwise convolution of the patches follows."""

    def __init__(self, dim, attention, config, rate):
        super().__init__(dim, attention, config["mlp_ratio"], rate, config["skip_lam"])
        self.pos_cnn = nn.Conv2d(dim, dim, 3, padding=1, groups=dim) if config["pos_cnn"] else None

    def patches(self, x, grid):
        """Their map, without the class token: [B, D, h, w]"""
        return to_map(x[:, self.attn.prefix:], grid)

    def forward(self, x, grid, omega=None):
        x = super().forward(x, omega)
        if self.pos_cnn is None:
            return x
        patches = self.patches(x, grid)
        placed = to_tokens(patches + self.pos_cnn(patches))
        return torch.cat([x[:, :1], placed], 1) if self.attn.prefix else placed


class LvVit(nn.Module):
    """SP-ViT is the same with a prior in the first blocks, which the class token joins after. Dense, its patches are
    classified too; in training the tokens of a box are swapped between mirrored images. Without classes it is a
    backbone."""

    maps = True

    def __init__(self, config, flex=None):
        super().__init__()
        dim, side = config["dim"], config["image_size"] // config["tokenizer"]["patch_size"]
        self.grid, self.mixes, self.sp_layers = (side, side), config["mix_token"], config["sp_layers"]
        self.patch_embed = ConvStem(config)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, (self.sp_layers == 0) + side * side, dim) * 0.02)
        plain, prior = {**config["attention"], "prior": None}, config["attention"].get("prior")
        shared = prior is not None and prior["sharing"] == "model"
        self.prior = prior_of(prior, 1, side) if shared else None
        first = plain if shared else config["attention"]
        self.blocks = nn.ModuleList()
        for i, rate in enumerate(drop_rates(config, config["depth"])):
            has_class = i >= self.sp_layers
            attention = Attention(dim, plain if has_class else first, self.grid, int(has_class), flex)
            self.blocks.append(LvBlock(dim, attention, config, rate))
        if config["num_classes"] == 0:
            return
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, config["num_classes"])
        self.aux_head = nn.Linear(dim, config["num_classes"]) if config["dense"] else None

    def draw_box(self):
        """[h, w] of bools, true inside the box."""
        half = int(self.grid[0] * (1 - random.random()) ** 0.5) // 2
        at = torch.arange(self.grid[0])
        y, x = ((at - random.randrange(self.grid[0])) for _ in range(2))
        return ((y >= -half) & (y < half))[:, None] & ((x >= -half) & (x < half))

    def features(self, image, box=None, wanted=()):
        """The tokens after the last block, and the maps [B, D, h, w] after the wanted ones."""
        x = self.patch_embed(image)
        if box is not None:
            x = torch.where(box, x.flip(0), x)
        x, maps = to_tokens(x), []
        if self.sp_layers == 0:
            x = with_class_token(self.cls_token, x)
        x = x + self.pos_embed.to(x.dtype)
        omega = None if self.prior is None else self.prior()
        for i, block in enumerate(self.blocks):
            if i == self.sp_layers > 0:
                x = with_class_token(self.cls_token, x)
            x = block(x, self.grid, omega if i < self.sp_layers else None)
            if i in wanted:
                maps.append(block.patches(x, self.grid))
        return x, maps

    def forward(self, image, box=None):
        """Logits [B, K]; of a dense one (logits, the patches' logits [B, N, K])."""
        x = self.norm(self.features(image, box)[0])
        if self.aux_head is None:
            return self.head(x[:, 0])
        aux = self.aux_head(x[:, 1:])
        if box is not None:
            aux = torch.where(box.flatten()[:, None], aux.flip(0), aux)
        return self.head(x[:, 0]), aux

    def infer(self, image):
        if self.aux_head is None:
            return self(image)
        logits, aux = self(image)
        return logits + 0.5 * aux.amax(1)

    def label_loss(self, logits, aux, target, patches, box, smoothing=0.0):
        """Targets of the images [B] or [B, K], of the patches [B N] or [B N, K]; the images' are mixed by the box."""
        loss = F.cross_entropy(logits.float(), target, label_smoothing=smoothing)
        if box is not None:
            other = F.cross_entropy(logits.float(), target.flip(0), label_smoothing=smoothing)
            loss = torch.lerp(loss, other, box.float().mean())
        return loss + 0.5 * F.cross_entropy(aux.float().flatten(0, 1), patches, label_smoothing=smoothing)

    def loss(self, run, image, target, smoothing=0.0):
        """Of a step: labels of images are those of their patches too."""
        if self.aux_head is None:
            return F.cross_entropy(run(image).float(), target, label_smoothing=smoothing)
        box = self.draw_box().to(image.device) if self.mixes and self.training else None
        logits, aux = run(image, box)
        return self.label_loss(logits, aux, target, target.repeat_interleave(aux.shape[1]), box, smoothing)

    def evaluate(self, stored):
        """The outputs of a fixture's inputs."""
        image, target = stored["input"], stored["target"]
        if self.aux_head is None:
            logits = self(image)
            return {"logits": logits, "loss": F.cross_entropy(logits, target)}
        top, bottom, left, right = stored["box"].tolist()
        box = torch.zeros(self.grid, dtype=torch.bool, device=image.device)
        box[top:bottom, left:right] = True
        logits, aux = self(image, box)
        loss = self.label_loss(logits, aux, target, stored["aux_target"].flatten(0, 1), box)
        outputs = {"logits": logits, "aux_logits": aux, "loss": loss}
        return outputs if self.training else {**outputs, "eval_logits": self.infer(image)}

"""The papers' training data as PyTorch's users make it: for pytorch_peer.py --pipeline. Needs torchvision.

Pictures lie in memory as bytes, decoded. Worker processes crop, flip, apply AutoAugment, normalise and erase one
picture after another, by torchvision on tensors (0.29 takes a tenth to a fifth longer on Pillow's pictures of this
size); whole batches come through pinned memory and are mixed on the device (Mixup or CutMix, half of them).

batches_on_device() keeps the pictures on the device and makes whole batches there: crop, flip and erasing by a draw
an image; AutoAugment, whose operations torchvision has for a batch only with one draw, by a draw for each of 16 parts.
"""

import os

import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

PICTURES = 20_000  # as the engine's built-in set has
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class Pictures(Dataset):
    """Random pixels and labels: what they show costs nothing."""

    def __init__(self, size, classes):
        draw = torch.Generator().manual_seed(0)
        self.pixels = torch.randint(256, (PICTURES, 3, size, size), dtype=torch.uint8, generator=draw)
        self.labels = torch.randint(classes, (PICTURES,), generator=draw)
        policy = v2.AutoAugmentPolicy.CIFAR10 if size <= 32 else v2.AutoAugmentPolicy.IMAGENET
        self.transform = v2.Compose([
            v2.RandomCrop(size, padding=4),
            v2.RandomHorizontalFlip(),
            v2.AutoAugment(policy),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, DEVIATION),
            v2.RandomErasing(0.25, (0.02, 0.4), (0.3, 1 / 0.3)),
        ])

    def __len__(self):
        return PICTURES

    def __getitem__(self, i):
        return self.transform(self.pixels[i]), self.labels[i]


def batches(size, classes, batch, device):
    """(images [B, 3, H, W], labels [B] or, of mixed ones, shares [B, K]), without an end, on the device."""
    cuda = device.type == "cuda"
    loader = DataLoader(Pictures(size, classes), batch, shuffle=True, drop_last=True, pin_memory=cuda,
                        num_workers=os.cpu_count(), persistent_workers=True, prefetch_factor=4)
    mix = v2.RandomApply([v2.RandomChoice([v2.MixUp(num_classes=classes), v2.CutMix(num_classes=classes)])], 0.5)
    while True:
        for images, labels in loader:
            yield mix(images.to(device, non_blocking=cuda), labels.to(device, non_blocking=cuda))


def cropped(pixels, offsets):
    """pixels [B, 3, S, S] padded by 4 and cut to S x S again, offsets [2, B] of 0 to 8 rows and columns an image."""
    size = pixels.shape[-1]
    padded = torch.nn.functional.pad(pixels, (4, 4, 4, 4))
    line = torch.arange(size, device=pixels.device)
    rows, columns = (line + offset[:, None] for offset in offsets)  # [B, S]
    images = torch.arange(len(pixels), device=pixels.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[images, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def erased(images, draw):
    """A quarter of the images with a rectangle set to 0: 0.02 to 0.4 of the area, sides of 0.3 to 1 / 0.3."""
    count, size = len(images), images.shape[-1]
    area = size * size * (0.02 + 0.38 * draw(count))
    ratio = torch.exp((2 * draw(count) - 1) * torch.log(torch.tensor(1 / 0.3, device=images.device)))
    high, wide = (torch.sqrt(area * ratio).round(), torch.sqrt(area / ratio).round())
    wanted = (draw(count) < 0.25) & (high < size) & (wide < size)  # torchvision draws again where it does not fit
    top, left = draw(count) * (size - high + 1), draw(count) * (size - wide + 1)
    line = torch.arange(size, device=images.device)
    rows = (line >= top[:, None].floor()) & (line < (top.floor() + high)[:, None])
    columns = (line >= left[:, None].floor()) & (line < (left.floor() + wide)[:, None])
    inside = rows[:, :, None] & columns[:, None, :] & wanted[:, None, None]
    return images.masked_fill(inside[:, None], 0)


def batches_on_device(size, classes, batch, device):
    """As batches(), made on the device."""
    pictures = Pictures(size, classes)
    pixels, labels = pictures.pixels.to(device), pictures.labels.to(device)
    policy = next(t for t in pictures.transform.transforms if isinstance(t, v2.AutoAugment))
    to_float = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)])
    mix = v2.RandomApply([v2.RandomChoice([v2.MixUp(num_classes=classes), v2.CutMix(num_classes=classes)])], 0.5)

    def draw(count):
        return torch.rand(count, device=device)

    while True:
        for chosen in torch.randperm(PICTURES, device=device).split(batch):
            if len(chosen) < batch:
                continue
            images = cropped(pixels[chosen], torch.randint(9, (2, batch), device=device))
            images = torch.where((draw(batch) < 0.5)[:, None, None, None], images.flip(3), images)
            images = torch.cat([policy(part) for part in images.chunk(16)])
            yield mix(erased(to_float(images), draw), labels[chosen])

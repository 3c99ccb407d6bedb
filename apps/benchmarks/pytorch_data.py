"""The papers' training data as PyTorch's users make it: for pytorch_peer.py --pipeline. Needs torchvision.

Pictures lie in memory as bytes, decoded. Worker processes crop, flip, apply AutoAugment, normalise and erase one
picture after another, by torchvision on tensors (0.29 takes a tenth to a fifth longer on Pillow's pictures of this
size); whole batches come through pinned memory and are mixed on the device (Mixup or CutMix, half of them).
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

#!/usr/bin/env python3
"""The same training step in PyTorch, as a fast one is written there, beside `tessera bench train`.

    apps/bench/pytorch_peer.py --tessera build/tessera --model sl-vit --image-size 32 --classes 10 --batch 128
    apps/bench/pytorch_peer.py --device cuda --precision bf16 --quick --image-size 32 64 --batch 128 1024
    apps/bench/pytorch_peer.py --verify tests/fixtures/sl-vit.safetensors

The models are vit, s-vit, l-vit and sl-vit ("Vision Transformer for Small-Size Datasets"). A step is zero_grad,
forward under autocast where --precision is bf16, label smoothing cross entropy, backward, and AdamW (fused where
the device has it). It runs eagerly, compiled, and on a GPU compiled with CUDA graphs (--autotune: with tuned
kernels too, minutes more each); attention is scaled_dot_product_attention and, on a GPU, flex_attention too.
--quick leaves the eager step and the one with graphs. Each number is printed as soon as it is there. Before
anything is timed, the loss on the weights and images of the fixtures must be the file's, as `tessera parity` demands
of the engine; with --tessera, that is run too. Needs torch alone. Exit code 1 where a loss is off, or where none of
these runs.
"""

import argparse
import json
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

FIXTURES = Path(__file__).resolve().parents[2] / "tests" / "fixtures"
DIAGONAL = [(-1, -1), (-1, 1), (1, -1), (1, 1)]  # (dy, dx), in pixels of the shift
TYPES = {"F32": torch.float32, "I64": torch.int64, "F64": torch.float64}


class Tokens(nn.Module):
    """Patches of the image, or of it and its four shifted copies (SPT), through a linear map."""

    def __init__(self, channels, dim, patch, shifted):
        super().__init__()
        self.patch, self.shift = patch, patch // 2 if shifted else 0
        planes = channels * (5 if shifted else 1)
        if shifted:
            self.norm = nn.LayerNorm(planes * patch * patch)
        self.proj = nn.Conv2d(planes, dim, patch, patch)

    def forward(self, x):
        if not self.shift:
            return self.proj(x).flatten(2).transpose(1, 2)
        s, (h, w) = self.shift, x.shape[2:]
        padded = F.pad(x, (s, s, s, s))
        x = torch.cat([x] + [padded[:, :, s + dy * s:s + dy * s + h, s + dx * s:s + dx * s + w]
                             for dy, dx in DIAGONAL], 1)
        cut = F.pixel_unshuffle(x, self.patch).flatten(2).transpose(1, 2)  # [B, N, (c, p1, p2)]
        return F.linear(self.norm(cut), self.proj.weight.flatten(1), self.proj.bias)


class Attention(nn.Module):
    """Softmax attention; LSA learns the scale and masks the diagonal."""

    def __init__(self, dim, heads, width, locality, tokens, flex):
        super().__init__()
        self.heads, self.width, self.flex, self.block_mask = heads, width, flex, None
        self.qkv = nn.Linear(dim, 3 * heads * width, bias=False)
        self.proj = nn.Linear(heads * width, dim)
        self.scale = nn.Parameter(torch.full((heads,), width ** -0.5)) if locality else None
        mask = ~torch.eye(tokens, dtype=torch.bool) if locality else None
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, self.width).permute(2, 0, 3, 1, 4)
        factor = self.width ** -0.5
        if self.scale is not None:
            q, factor = q * self.scale.to(q.dtype).view(-1, 1, 1), 1.0
        if self.flex:
            from torch.nn.attention.flex_attention import create_block_mask, flex_attention
            if self.scale is not None and self.block_mask is None:
                self.block_mask = create_block_mask(lambda b, h, i, j: i != j, None, None, n, n, x.device)
            y = flex_attention(q, k, v, scale=factor, block_mask=self.block_mask)
        else:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask, scale=factor)
        return self.proj(y.transpose(1, 2).reshape(b, n, -1))


class Mlp(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, dim, heads, width, hidden, locality, tokens, rate, flex):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads, width, locality, tokens, flex)
        self.mlp = Mlp(dim, hidden)
        self.rate = rate

    def drop(self, branch):
        if not self.training or self.rate == 0:
            return branch
        keep = torch.empty(branch.shape[0], 1, 1, device=branch.device, dtype=branch.dtype)
        return branch * keep.bernoulli_(1 - self.rate).div_(1 - self.rate)

    def forward(self, x):
        x = x + self.drop(self.attn(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class ViT(nn.Module):
    """A config of the engine (`tessera summary --json`, a fixture's) as a module with the same parameter names."""

    def __init__(self, config, flex=False):
        super().__init__()
        dim, depth, attention, tokenizer = (config[k] for k in ("dim", "depth", "attention", "tokenizer"))
        locality = attention["scale"] == "learned"
        if locality != attention["mask_diagonal"] or attention["qkv_bias"]:
            raise ValueError(f"this peer knows no {attention}")
        patch = tokenizer["patch_size"]
        tokens = (config["image_size"] // patch) ** 2 + 1
        self.patch_embed = Tokens(config["in_channels"], dim, patch, tokenizer["kind"] == "shifted")
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.randn(1, tokens, dim))
        self.blocks = nn.Sequential(*[
            Block(dim, attention["heads"], attention["head_dim"], int(dim * config["mlp_ratio"]), locality, tokens,
                  config["drop_path"], flex) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, config["num_classes"])

    def forward(self, image):
        x = self.patch_embed(image)
        x = torch.cat([self.cls_token.to(x.dtype).expand(len(x), -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x)[:, 0]))


def preset(name, image_size, classes):
    """As `tessera models` has it: 9 blocks of width 192, 12 heads of 16, 64 patches."""
    shifted, locality = name in ("s-vit", "sl-vit"), name in ("l-vit", "sl-vit")
    tokenizer = {"kind": "shifted" if shifted else "patch", "patch_size": image_size // 8}
    return {"image_size": image_size, "in_channels": 3, "num_classes": classes, "dim": 192, "depth": 9,
            "mlp_ratio": 2.0, "drop_path": 0.1, "tokenizer": tokenizer,
            "attention": {"heads": 12, "head_dim": 16, "qkv_bias": False,
                          "scale": "learned" if locality else "fixed", "mask_diagonal": locality}}


def read_safetensors(path):
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        flat = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[entry["dtype"]])
        tensors[name] = flat.view(entry["shape"])
    return tensors, metadata


def verify(path, device, tolerance=1e-5):
    """Whether loss and logits on the file's weights are the file's."""
    stored, metadata = read_safetensors(path)
    model = ViT(json.loads(metadata["config"])).eval()
    model.load_state_dict({name[6:]: t for name, t in stored.items() if name.startswith("param.")})
    model.to(device)
    with torch.no_grad():
        logits = model(stored["input"].to(device))
        loss = F.cross_entropy(logits, stored["target"].to(device)).item()
    error = (logits.cpu() - stored["logits"]).abs().max().item() / stored["logits"].abs().max().item()
    expected = stored["loss"].item()
    good = error <= tolerance and abs(loss - expected) <= tolerance * abs(expected)
    print(f"{Path(path).name}: loss {loss:.7f}, the file's {expected:.7f}, logits within {error:.1e}: "
          f"{'equal' if good else 'NOT EQUAL'}", file=sys.stderr)
    return good


def time_steps(args, case, flex, mode):
    """Milliseconds of a step, the median over the rounds; raises where this PyTorch cannot do it. On a GPU a round
    is many steps, and the host waits at its end alone."""
    size, classes, batch = case
    device = torch.device(args.device)
    torch.manual_seed(0)
    torch.compiler.reset()  # one size after another is no reason for code of any size
    torch.set_float32_matmul_precision("high" if args.precision == "tf32" else "highest")
    model = ViT(preset(args.model, size, classes), flex).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003, weight_decay=0.05, fused=True)
    images = torch.randn(batch, 3, size, size, device=device)
    labels = torch.randint(classes, (batch,), device=device)
    run = model
    if mode:
        run = torch.compile(model, mode=mode, fullgraph=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=args.precision == "bf16"):
            loss = F.cross_entropy(run(images), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        return loss

    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    for _ in range(args.warmup):
        step()
    rounds, length = (5, args.steps) if device.type == "cuda" else (args.steps, 1)
    seconds = []
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        for _ in range(length):
            step()
        wait()
        seconds.append((time.perf_counter() - start) / length)
    return 1000 * statistics.median(seconds)


def time_tessera(args, case):
    size, classes, batch = case
    command = [args.tessera, "bench", "train", "--model", args.model, "--image-size", str(size),
               "--classes", str(classes), "--batch", str(batch), "--device", args.device,
               "--steps", str(args.steps), "--warmup", str(max(args.warmup, 3)), "--json"]
    if args.precision != "f32":
        command += ["--precision", args.precision]
    if args.threads:
        command += ["--threads", str(args.threads)]
    row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return 1000 * row["step_seconds"]


def ways_of(args):
    """(name, flex attention, torch.compile's mode) of each way of PyTorch's."""
    cuda, eager = args.device == "cuda", [("eager", False, None)]
    if args.no_compile:
        return eager
    graphs = [("compiled, graphs", False, "reduce-overhead")] if cuda else []
    if args.quick:
        return eager + (graphs or [("compiled", False, "default")])
    ways = eager + [("compiled", False, "default")] + graphs
    if cuda:
        ways += [("compiled, flex attention", True, "default"),
                 ("compiled, graphs, flex attention", True, "reduce-overhead")]
    if args.autotune:
        ways += [("compiled, tuned", False, "max-autotune")]
    return ways


def measure(args):
    """A row for each way and case, Tessera first: what comes late may find no time."""
    cases = [(size, args.classes or (10 if size <= 32 else 200), batch)
             for size in args.image_size for batch in args.batch]
    ways = [("Tessera", lambda case: time_tessera(args, case))] if args.tessera else []
    ways += [(f"PyTorch {torch.__version__}, {name}", lambda case, f=flex, m=mode: time_steps(args, case, f, m))
             for name, flex, mode in ways_of(args)]
    rows = []
    for name, time_of in ways:
        for case in cases:
            try:
                ms = time_of(case)
            except Exception as error:  # what a version cannot compile is no row
                print(f"pytorch_peer: {name}: {type(error).__name__}: {str(error).partition(chr(10))[0]}",
                      file=sys.stderr)
                continue
            size, _, batch = case
            rows.append({"implementation": name, "image_size": size, "batch": batch, "step_ms": ms,
                         "images_per_second": 1000 * batch / ms})
            print(f"{name}, {size} px, batch {batch}: {ms:.2f} ms", file=sys.stderr, flush=True)
    return rows


def print_table(args, rows):
    for size, batch in dict.fromkeys((row["image_size"], row["batch"]) for row in rows):
        of_case = [row for row in rows if (row["image_size"], row["batch"]) == (size, batch)]
        peers = [row["step_ms"] for row in of_case if row["implementation"] != "Tessera"]
        print(f"{args.model}, {size} px, batch {batch}, {args.device}, {args.precision}")
        for row in of_case:
            ratio = f"{min(peers) / row['step_ms']:8.2f} x the best of PyTorch" if peers else ""
            print(f"  {row['implementation']:<48}{row['step_ms']:10.2f} ms"
                  f"{row['images_per_second']:12.0f} images/s{ratio}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["vit", "s-vit", "l-vit", "sl-vit"], default="sl-vit")
    parser.add_argument("--image-size", type=int, nargs="+", default=[32])
    parser.add_argument("--classes", type=int, help="10, or 200 above 32 pixels")
    parser.add_argument("--batch", type=int, nargs="+", default=[128])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    parser.add_argument("--no-compile", action="store_true", help="time the eager step alone")
    parser.add_argument("--quick", action="store_true", help="the eager step, and on a GPU compiled with graphs")
    parser.add_argument("--autotune", action="store_true", help="compiled with tuned kernels too")
    parser.add_argument("--tessera", help="the program, to be timed beside it")
    parser.add_argument("--verify", nargs="+", metavar="FIXTURE", help="compare with these files and end")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        print("pytorch_peer: skipped: this PyTorch sees no GPU", file=sys.stderr)
        return 0
    if args.threads:
        torch.set_num_threads(args.threads)

    files = args.verify or [str(FIXTURES / f"{args.model}.safetensors")]
    good = all([verify(path, args.device) for path in files])
    if args.tessera:
        good = subprocess.run([args.tessera, "parity", *files, "--device", args.device],
                              stdout=sys.stderr).returncode == 0 and good
    if not good:
        return 1
    if args.verify:
        return 0

    rows = measure(args)
    if not any(row["implementation"] != "Tessera" for row in rows):
        return 1
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        print_table(args, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

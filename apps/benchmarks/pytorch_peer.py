#!/usr/bin/env python3
"""The same training step in PyTorch, as a fast one is written there, beside `tessera bench train`.

    apps/benchmarks/pytorch_peer.py --tessera build/tessera --model sl-vit --image-size 32 --classes 10 --batch 128
    apps/benchmarks/pytorch_peer.py --device cuda --precision bf16 --quick --image-size 32 64 --batch 128 1024
    apps/benchmarks/pytorch_peer.py --tessera build/tessera --pipeline --seconds 60
    apps/benchmarks/pytorch_peer.py --tessera build/tessera --table
    apps/benchmarks/pytorch_peer.py --verify tests/fixtures/sl-vit.safetensors

The model is a preset of the engine, whose config its program prints (`tessera summary`). A step is zero_grad, forward
under autocast where --precision is bf16, label smoothing cross entropy, backward, and AdamW (fused where the device
has it). It runs eagerly, compiled, and on a GPU compiled with CUDA graphs, with tuned kernels (max-autotune;
--no-autotune leaves that out, minutes less each), and as one CUDA graph of the whole step, AdamW included, in bf16
with bf16 weights and f32 masters. Attention is scaled_dot_product_attention; on a GPU flex_attention too, on a CPU in
bf16 products and a softmax too. --quick leaves the eager step, the one with graphs and the whole step as a graph.
--table compares every family, f32 and bf16, in turns. --pipeline measures from the stored pictures on: the images of a
step are no longer the same random numbers, but the regime's augmentation makes them, here by pytorch_data.py, there by
`tessera bench run`. Each number is printed as soon as it is there. Before anything is timed, the loss on the weights
and images of the fixtures must be the file's, as `tessera parity` demands of the engine; with --tessera, that is run
too. Needs torch alone, --pipeline torchvision too. Exit code 1 where a loss is off, or where none of these runs.
"""

import argparse
import itertools
import json
import statistics
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional as F

import pytorch_table
from pytorch_models import FAMILIES, FIXTURES as FIXTURES_OF, build, config_of, loss_of

FIXTURES = Path(__file__).resolve().parents[2] / "tests" / "fixtures"
TYPES = {"F32": torch.float32, "I64": torch.int64, "F64": torch.float64}


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


def outputs_of(model, stored, device):
    """Logits and loss on the file's inputs."""
    there = {name: stored[name].to(device) for name in ("input", "t", "y", "target", "noise") if name in stored}
    with torch.no_grad():
        if "t" in there:  # a diffusion's loss is the error of the noise
            logits = model(there["input"], there["t"], there["y"])
            return logits.cpu(), F.mse_loss(logits, there["noise"]).item()
        logits = model(there["input"])
        return logits.cpu(), F.cross_entropy(logits, there["target"]).item()


def verify(path, device, tolerance=1e-5):
    """Whether loss and logits on the file's weights are the file's, with attention of either kind."""
    stored, metadata = read_safetensors(path)
    torch.backends.cudnn.allow_tf32 = False  # the patch convolution in f32, as the tolerance asks
    good, expected = True, stored["loss"].item()
    for explicit in (False, True):
        model = build(json.loads(metadata["config"]), explicit=explicit).eval()
        model.load_state_dict({name[6:]: t for name, t in stored.items() if name.startswith("param.")} |
                              {name: t for name, t in model.state_dict().items() if name.endswith("batches_tracked")})
        logits, loss = outputs_of(model.to(device), stored, device)
        error = (logits - stored["logits"]).abs().max().item() / stored["logits"].abs().max().item()
        equal = error <= tolerance and abs(loss - expected) <= tolerance * abs(expected)
        good = good and equal
        if not explicit or not equal:
            print(f"{Path(path).name}: loss {loss:.7f}, the file's {expected:.7f}, logits within {error:.1e}: "
                  f"{'equal' if equal else 'NOT EQUAL'}", file=sys.stderr)
    return good


def fixtures_of(args, presets):
    """The files that the peers of these presets are held to."""
    names = {}
    for preset in presets:
        arch = config_of(preset, 32, 10, args.tessera)["arch"]
        names.update(dict.fromkeys(FIXTURES_OF.get(arch, (arch,))))
    return [str(FIXTURES / f"{name}.safetensors") for name in names]


def feed(args, case, device):
    """The batches of the steps: the same random images again and again, or the pipeline's."""
    size, classes, batch = case
    if args.pipeline:
        import pytorch_data
        make = pytorch_data.batches if args.pipeline == "workers" else pytorch_data.batches_on_device
        return make(size, classes, batch, device)
    images = torch.randn(batch, 3, size, size, device=device)
    return itertools.repeat((images, torch.randint(classes, (batch,), device=device)))


def median_round(step, wait, rounds, length):
    """Seconds of a step, the median over the rounds, at whose end alone the host waits."""
    seconds = []
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        for _ in range(length):
            step()
        wait()
        seconds.append((time.perf_counter() - start) / length)
    return statistics.median(seconds)


def mean_until(step, wait, enough):
    """Seconds of a step, the mean over so many seconds: what was made ahead counts once."""
    wait()
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < enough:
        step()
        steps += 1
    wait()
    return (time.perf_counter() - start) / steps


class Masters:
    """bf16 weights of a model, and their f32 masters, which AdamW steps: what a fast training loop in bf16 keeps."""

    def __init__(self, model):
        self.weights = [p for p in model.parameters()]
        self.masters = [p.detach().clone().requires_grad_() for p in self.weights]
        for weight in self.weights:
            weight.data = weight.data.bfloat16()
        self.optimizer = torch.optim.AdamW(self.masters, lr=0.003, weight_decay=0.05, fused=True,
                                           capturable=self.masters[0].is_cuda)

    def step(self):
        gradients = [master.grad for master in self.masters]
        torch._foreach_copy_(gradients, [weight.grad for weight in self.weights])
        self.optimizer.step()
        torch._foreach_copy_([weight.data for weight in self.weights], self.masters)

    def make_gradients(self):
        for master, weight in zip(self.masters, self.weights):
            master.grad, weight.grad = torch.zeros_like(master), torch.zeros_like(weight)


def whole_step(args, model, run, batches):
    """A step that copies a batch into place and runs forward, loss, backward and AdamW, on a GPU as one CUDA graph."""
    narrow, cuda = args.precision == "bf16", args.device == "cuda"
    masters = Masters(model) if narrow else None
    optimizer = None if narrow else torch.optim.AdamW(model.parameters(), lr=0.003, weight_decay=0.05, fused=True,
                                                      capturable=cuda)
    images, labels = (t.clone() for t in next(batches))
    if narrow:
        images = images.bfloat16()
        masters.make_gradients()

    def work():
        for p in model.parameters():
            if p.grad is not None:
                p.grad.zero_()
        loss = loss_of(model, run, images, labels, 0.1)
        loss.backward()
        (masters or optimizer).step()

    def place():
        for to, new in zip((images, labels), next(batches)):
            to.copy_(new, non_blocking=True)

    if not cuda:
        return lambda: (place(), work())
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):  # before a capture, as its manual asks
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()

    return lambda: (place(), graph.replay())


def make_step(args, case, way):
    """A step as `way` takes it, warmed up; raises where this PyTorch cannot do it."""
    size, classes, _ = case
    device = torch.device(args.device)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high" if args.precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    model = build(config_of(args.model, size, classes, args.tessera), device if way.flex else None,
                  way.explicit).to(device)
    if getattr(model, "maps", False):  # the layout that its convolutions are fastest in
        model.to(memory_format=torch.channels_last)
    batches = feed(args, case, device)
    run = torch.compile(model, mode=way.mode, fullgraph=True) if way.mode else model
    step = whole_step(args, model, run, batches) if way.whole else loop_step(args, model, run, batches, device)
    for _ in range(args.warmup):
        step()
    return step


def time_steps(args, case, way):
    """Milliseconds of a step."""
    torch.compiler.reset()  # one size after another is no reason for code of any size
    step = make_step(args, case, way)
    wait = torch.cuda.synchronize if args.device == "cuda" else lambda: None
    if args.pipeline:
        return 1000 * mean_until(step, wait, args.seconds)
    rounds, length = (5, args.steps) if args.device == "cuda" else (args.steps, 1)
    return 1000 * median_round(step, wait, rounds, length)


def loop_step(args, model, run, batches, device):
    """A step as a training loop writes it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003, weight_decay=0.05, fused=True)

    def step():
        images, labels = next(batches)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=args.precision == "bf16"):
            loss = loss_of(model, run, images, labels, 0.1)
        loss.backward()
        optimizer.step()
        return loss

    return step


def time_tessera(args, case):
    size, classes, batch = case
    command = [args.tessera, "bench", "run" if args.pipeline else "train", "--model", args.model,
               "--image-size", str(size), "--batch", str(batch), "--device", args.device,
               "--warmup", str(max(args.warmup, 3)), "--json"]
    if args.pipeline:
        command += ["--recipe", f"sl-vit-{'cifar10' if size <= 32 else 'tiny-imagenet'}", "--dataset", "shapes",
                    "--seconds", str(args.seconds)]
    else:
        command += ["--classes", str(classes), "--steps", str(args.steps)]
    if args.precision != "f32":
        command += ["--precision", args.precision]
    if args.threads:
        command += ["--threads", str(args.threads)]
    row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return 1000 * row["step_seconds"]


@dataclass
class Way:
    """One way of writing the step in PyTorch."""

    name: str
    flex: bool = False  # flex_attention
    mode: str | None = None  # torch.compile's; None: eager
    explicit: bool = False  # attention by products and a softmax
    whole: bool = False  # bf16 weights with f32 masters, and on a GPU the whole step as one CUDA graph


def ways_of(args):
    """The ways of this device, the likely fastest of a GPU early."""
    cuda, eager = args.device == "cuda", Way("eager")
    if args.no_compile:
        return [eager] if cuda else [eager, Way("eager, explicit attention", explicit=True)]
    graphs = [Way("compiled, graphs", mode="reduce-overhead"),
              Way("compiled, whole step a graph", mode="default", whole=True)] if cuda else []
    if not cuda and args.precision == "bf16":
        graphs = [Way("eager, explicit attention", explicit=True),
                  Way("compiled, explicit attention", mode="default", explicit=True),
                  Way("compiled, bf16 weights", mode="default", whole=True)]
    if args.quick:
        return [eager] + ([] if cuda else [Way("compiled", mode="default")]) + graphs
    ways = [eager, Way("compiled", mode="default")] + graphs
    if cuda:
        ways += [Way("compiled, flex attention", flex=True, mode="default"),
                 Way("compiled, graphs, flex attention", flex=True, mode="reduce-overhead")]
    if not args.no_autotune:
        ways += [Way("compiled, tuned", mode="max-autotune")]
        if cuda:
            ways += [Way("compiled, tuned, whole step a graph", mode="max-autotune-no-cudagraphs", whole=True)]
    return ways


def measure(args, timed):
    """A row for each way and case, Tessera first: what comes late may find no time."""
    cases = [(size, args.classes or (10 if size <= 32 or args.pipeline else 200), batch)
             for size in args.image_size for batch in args.batch]
    ways = [("Tessera", lambda case: time_tessera(args, case))] if timed else []
    ways += [(f"PyTorch {torch.__version__}, {way.name}", lambda case, way=way: time_steps(args, case, way))
             for way in ways_of(args)]
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
        what = ", with the data" if args.pipeline else ""
        print(f"{args.model}, {size} px, batch {batch}, {args.device}, {args.precision}{what}")
        for row in of_case:
            ratio = f"{min(peers) / row['step_ms']:8.2f} x the best of PyTorch" if peers else ""
            print(f"  {row['implementation']:<48}{row['step_ms']:10.2f} ms"
                  f"{row['images_per_second']:12.0f} images/s{ratio}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="sl-vit", metavar="PRESET", help="of `tessera models`, SP-ViT apart")
    parser.add_argument("--table", nargs="*", metavar="PRESET",
                        help="a table of these presets (without one: of every family), each in turns with ours, in f32 "
                             "and bf16")
    parser.add_argument("--rounds", type=int, default=3, help="turns of a row of the table")
    parser.add_argument("--image-size", type=int, nargs="+", default=[32])
    parser.add_argument("--classes", type=int, help="10, or 200 above 32 pixels; of the pipeline's pictures 10")
    parser.add_argument("--batch", type=int, nargs="+", default=[128])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    parser.add_argument("--no-compile", action="store_true", help="time the eager step alone")
    parser.add_argument("--quick", action="store_true", help="the eager step and what is likely fastest")
    parser.add_argument("--no-autotune", action="store_true", help="not compiled with tuned kernels")
    parser.add_argument("--pipeline", nargs="?", const="workers", choices=("workers", "device"),
                        help="from stored pictures on, by the regime's augmentation: PyTorch's in worker processes, or "
                        "by whole batches on its device")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement then")
    parser.add_argument("--tessera", help="the program, which says what a preset is and is timed beside it; the "
                                          "default is build/tessera, untimed")
    parser.add_argument("--verify", nargs="+", metavar="FIXTURE", help="compare with these files and end")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.pipeline and args.classes not in (None, 10):
        parser.error("--pipeline: the built-in pictures have 10 classes")
    if args.device == "cuda" and not torch.cuda.is_available():
        print("pytorch_peer: skipped: this PyTorch sees no GPU", file=sys.stderr)
        return 0
    if args.threads:
        torch.set_num_threads(args.threads)

    timed = args.tessera is not None
    args.tessera = args.tessera or str(FIXTURES.parents[1] / "build" / "tessera")
    presets = (args.table or list(FAMILIES)) if args.table is not None else [args.model]
    files = args.verify or fixtures_of(args, presets)
    good = all([verify(path, args.device) for path in files])
    if timed:
        good = subprocess.run([args.tessera, "parity", *files, "--device", args.device],
                              stdout=sys.stderr).returncode == 0 and good
    if not good:
        return 1
    if args.verify:
        return 0
    if args.table is not None:
        return pytorch_table.run(args, presets, make_step)

    rows = measure(args, timed)
    if not any(row["implementation"] != "Tessera" for row in rows):
        return 1
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        print_table(args, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

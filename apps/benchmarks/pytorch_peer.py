#!/usr/bin/env python3
"""The same step in PyTorch, as a fast one is written there, beside `tessera bench train` or `infer`.

    apps/benchmarks/pytorch_peer.py --tessera build/tessera --model sl-vit --image-size 32 --classes 10 --batch 128
    apps/benchmarks/pytorch_peer.py --device cuda --precision bf16 --quick --image-size 32 64 --batch 128 1024
    apps/benchmarks/pytorch_peer.py --tessera build/tessera --pipeline --seconds 60
    apps/benchmarks/pytorch_peer.py --tessera build/tessera --table
    apps/benchmarks/pytorch_peer.py --tessera build/tessera --table sp-vit-s swin-seg --infer
    apps/benchmarks/pytorch_peer.py --verify
    apps/benchmarks/pytorch_peer.py --verify tests/fixtures/sl-vit.safetensors

The model is any preset of the engine, whose config its program prints (`tessera summary`). A training step is
zero_grad, forward under autocast where --precision is bf16, label smoothing cross entropy (a segmenter's is of pixels,
DiT's of the noise, neither smoothed), backward, and AdamW (fused where the device has it). It runs eagerly, compiled,
and on a GPU compiled with CUDA graphs, with tuned kernels (max-autotune; --no-autotune leaves that out, minutes less
each), and as one CUDA graph of the whole step, AdamW included, in bf16 with bf16 weights and f32 masters. Attention is
scaled_dot_product_attention; on a GPU flex_attention too, on a CPU products and a softmax too (in f32 not with
--quick); SP-ViT's prior, a factor of the scores, leaves these alone. --quick leaves the eager step, the one with graphs
and the whole step as a graph. --infer measures a forward pass in evaluation instead, under inference_mode, in bf16 with
bf16 weights, compiled on a CPU with frozen weights. --table compares every family, f32 and bf16, in turns. --pipeline
measures from the stored pictures on: the images of a step are no longer the same random numbers, but the regime's
augmentation makes them, here by pytorch_data.py, there by `tessera bench run`. Each number is printed as soon as it is
there. Before anything is timed, the outputs and the loss on the weights and inputs of every fixture of the architecture
must be the file's, as `tessera parity` demands of the engine; with --tessera, that is run too. Needs torch alone,
--pipeline torchvision too. Exit code 1 where a fixture is off, or where none of these runs.
"""

import argparse
import json
import subprocess
import sys
import time

import torch

import pytorch_table
from pytorch_models import FAMILIES, case_of
from pytorch_program import bench, config_of
from pytorch_step import make_step, median_round, wait_for, ways_of
from pytorch_verify import FIXTURES, fixtures_of, verify, verify_presets


def mean_until(step, device, enough):
    """Seconds of a step, the mean over so many seconds: what was made ahead counts once."""
    wait_for(device)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < enough:
        step()
        steps += 1
    wait_for(device)
    return (time.perf_counter() - start) / steps


def time_steps(args, case, way):
    """Milliseconds of a step."""
    torch.compiler.reset()  # one size after another is no reason for code of any size
    step = make_step(args, case, way)
    if args.pipeline:
        return 1000 * mean_until(step, args.device, args.seconds)
    rounds, length = (5, args.steps) if args.device == "cuda" else (args.steps, 1)
    return 1000 * median_round(step, args.device, rounds, length)


def measure(args, timed):
    """A row for each way and case, Tessera first: what comes late may find no time."""
    cases = [(size, args.classes or (10 if size <= 32 or args.pipeline else 200), batch)
             for size in args.image_size for batch in args.batch]
    ways = [("Tessera", lambda case: 1000 * bench(args, case, max(args.warmup, 3)))] if timed else []
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
        what = ", with the data" if args.pipeline else ", inference" if args.infer else ""
        print(f"{args.model}, {size} px, batch {batch}, {args.device}, {args.precision}{what}")
        for row in of_case:
            ratio = f"{min(peers) / row['step_ms']:8.2f} x the best of PyTorch" if peers else ""
            print(f"  {row['implementation']:<48}{row['step_ms']:10.2f} ms"
                  f"{row['images_per_second']:12.0f} images/s{ratio}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="sl-vit", metavar="PRESET", help="of `tessera models`")
    parser.add_argument("--table", nargs="*", metavar="PRESET",
                        help="a table of these presets (without one: of every family), each in turns with ours, in f32 "
                             "and bf16")
    parser.add_argument("--infer", action="store_true", help="a forward pass in evaluation, not a training step")
    parser.add_argument("--rounds", type=int, default=3, help="turns of a row of the table")
    parser.add_argument("--image-size", type=int, nargs="+", default=[32])
    parser.add_argument("--classes", type=int, help="10, or 200 above 32 pixels; of the pipeline's pictures 10")
    parser.add_argument("--batch", type=int, nargs="+", default=[128])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"],
                        help="f32 without it; the table has f32 and bf16 without it, and this one alone with it")
    parser.add_argument("--no-compile", action="store_true", help="time the eager step alone")
    parser.add_argument("--quick", action="store_true", help="the eager step and what is likely fastest")
    parser.add_argument("--no-autotune", action="store_true", help="not compiled with tuned kernels")
    parser.add_argument("--pipeline", nargs="?", const="workers", choices=("workers", "device"),
                        help="from stored pictures on, by the regime's augmentation: PyTorch's in worker processes, or "
                        "by whole batches on its device")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement then")
    parser.add_argument("--tessera", help="the program, which says what a preset is and is timed beside it; the "
                                          "default is build/tessera, untimed")
    parser.add_argument("--verify", nargs="*", metavar="FIXTURE",
                        help="compare with these files and end; without one with all, and every preset with its peer")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.precisions = [args.precision] if args.precision else ["f32", "bf16"]
    args.precision = args.precision or "f32"
    if args.pipeline and args.classes not in (None, 10):
        parser.error("--pipeline: the built-in pictures have 10 classes")
    if args.infer and (args.pipeline or args.precision == "tf32"):
        parser.error("--infer: not with --pipeline, and in f32 or bf16")
    if args.device == "cuda" and not torch.cuda.is_available():
        print("pytorch_peer: skipped: this PyTorch sees no GPU", file=sys.stderr)
        return 0
    if args.threads:
        torch.set_num_threads(args.threads)

    timed = args.tessera is not None
    args.tessera = args.tessera or str(FIXTURES.parents[1] / "build" / "tessera")
    presets = (args.table or list(FAMILIES)) if args.table is not None else [args.model]
    if args.verify is not None:
        files = args.verify or fixtures_of()
    else:
        files = fixtures_of({config_of(preset, *case_of(preset)[:2], args.tessera)["arch"] for preset in presets})
    good = all([verify(path, args.device) for path in files])
    if args.verify == []:
        good = verify_presets(args.tessera) and good
    if timed:
        good = subprocess.run([args.tessera, "parity", *files, "--device", args.device],
                              stdout=sys.stderr).returncode == 0 and good
    if not good:
        return 1
    if args.verify is not None:
        return 0
    if args.table is not None:
        return pytorch_table.run(args, presets)

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

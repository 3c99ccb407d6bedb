"""pytorch_peer.py --table: every family's training step beside PyTorch's, in f32 and bf16, eager and compiled.

What is compared runs in turns, a round after another, because a shared machine is faster now than a minute later: the
ratio is of the best of ours and the best of theirs in the same round, and its median and ends are printed.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

from pytorch_models import FAMILIES, build, config_of

PRECISIONS = ("f32", "bf16")


class Way:
    """A way of writing the step, as pytorch_peer.py has them."""

    flex = whole = False

    def __init__(self, mode, explicit=False):
        self.mode, self.explicit = mode, explicit


WAYS = {"eager": Way(None), "eager, explicit attention": Way(None, True), "compiled": Way("default"),
        "compiled, explicit attention": Way("default", True)}


def ours(args, preset, case, precision):
    """Images a second."""
    size, classes, batch = case
    command = [args.tessera, "bench", "train", "--model", preset, "--image-size", str(size), "--classes", str(classes),
               "--batch", str(batch), "--steps", str(args.steps), "--warmup", "1", "--precision", precision, "--json"]
    if args.threads:
        command += ["--threads", str(args.threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["images_per_second"]


def theirs(step, steps, batch):
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return batch / statistics.median(seconds)


def has_attention(args, preset, case):
    """Whether the preset's peer can choose how it attends (CaiT's heads, which talk, leave no choice)."""
    model = build(config_of(preset, case[0], case[1], args.tessera))
    return any(hasattr(module, "explicit") for module in model.modules())


def measure(args, preset, make_step):
    """{way: [images a second of each round]}, of ours and of theirs."""
    case = FAMILIES.get(preset, (32, 10, 64))
    steps = {}
    for name, way in WAYS.items():
        if (way.mode and args.no_compile) or (way.explicit and not has_attention(args, preset, case)):
            continue
        for precision in PRECISIONS:
            own = argparse.Namespace(**{**vars(args), "model": preset, "precision": precision})
            try:
                steps[name, precision] = make_step(own, case, way)
            except Exception as error:  # what a version cannot compile is no column
                print(f"pytorch_table: {preset}, {name}, {precision}: {type(error).__name__}: "
                      f"{str(error).partition(chr(10))[0]}", file=sys.stderr)
    rates = {}
    for _ in range(args.rounds):
        for precision in PRECISIONS:
            rates.setdefault(("ours", precision), []).append(ours(args, preset, case, precision))
        for key, step in steps.items():
            rates.setdefault(key, []).append(theirs(step, args.steps, case[2]))
        last = {" ".join(key): round(values[-1], 1) for key, values in rates.items()}
        print(preset, last, file=sys.stderr, flush=True)
    return rates


def row_of(preset, rates):
    rounds = len(rates["ours", "f32"])
    best = [[max(values[i] for (name, _), values in rates.items() if (name == "ours") == own) for i in range(rounds)]
            for own in (True, False)]
    ratios = sorted(a / b for a, b in zip(*best))
    return {"model": preset, "case": FAMILIES.get(preset, (32, 10, 64)),
            "rates": {" ".join(key): statistics.median(values) for key, values in rates.items()},
            "ratio": statistics.median(ratios), "lowest": ratios[0], "highest": ratios[-1]}


def print_table(rows):
    columns = list(dict.fromkeys(name for row in rows for name in row["rates"]))
    print("Images a second, medians; ours to their best: the median of the rounds, and its ends.\n")
    print("| model | pixels, classes, batch | " + " | ".join(columns) + " | ours to their best |")
    print("|---|---|" + "--:|" * len(columns) + "---|")
    for row in rows:
        rates = " | ".join(f"{row['rates'][name]:.0f}" if name in row["rates"] else "-" for name in columns)
        print(f"| `{row['model']}` | {', '.join(map(str, row['case']))} | {rates} | {row['ratio']:.2f} "
              f"({row['lowest']:.2f} to {row['highest']:.2f}) |")


def run(args, presets, make_step):
    rows = []
    for preset in presets:
        rows.append(row_of(preset, measure(args, preset, make_step)))
        print_table(rows[-1:])
    print()
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        print_table(rows)
    return 0

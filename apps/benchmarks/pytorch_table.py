"""pytorch_peer.py --table: every family's step beside PyTorch's, in f32 and bf16 (or in --precision alone), eager and
compiled; with --infer a forward pass in evaluation.

What is compared runs in turns, a round after another, because a shared machine is faster now than a minute later: the
ratio is of the best of ours and the best of theirs in the same round, and its median and ends are printed.
"""

import argparse
import json
import statistics
import sys

import torch

from pytorch_models import build, case_of
from pytorch_program import bench, config_of
from pytorch_step import make_step, median_round, ways_of


def has_attention(args, preset, case):
    """Whether the preset's peer can choose how it attends (CaiT's heads, which talk, leave no choice)."""
    with torch.device("meta"):
        model = build(config_of(preset, case[0], case[1], args.tessera))
    return any(hasattr(module, "explicit") for module in model.modules())


def make_steps(args, case, attends):
    """{way: its step} for args.model and args.precision."""
    steps = {}
    for way in ways_of(args):
        if way.explicit and not attends:
            continue
        try:
            steps[way.name] = make_step(args, case, way)
        except Exception as error:  # what a version cannot compile is no column
            print(f"pytorch_table: {args.model}, {way.name}, {args.precision}: {type(error).__name__}: "
                  f"{str(error).partition(chr(10))[0]}", file=sys.stderr)
    return steps


def measure(args, preset):
    """{(way, precision): [images a second of each round]}, of ours and of theirs."""
    torch.compiler.reset()  # one preset after another is no reason for code of any config
    case = case_of(preset)
    own = {precision: argparse.Namespace(**{**vars(args), "model": preset, "precision": precision, "no_autotune": True})
           for precision in args.precisions}
    attends = has_attention(args, preset, case)
    steps = {precision: make_steps(own[precision], case, attends) for precision in args.precisions}
    rates = {}
    for _ in range(args.rounds):
        for precision in args.precisions:
            rates.setdefault(("ours", precision), []).append(case[2] / bench(own[precision], case, 1))
        for precision in args.precisions:
            for name, step in steps[precision].items():
                rate = case[2] / median_round(step, args.device, args.steps, 1)
                rates.setdefault((name, precision), []).append(rate)
        last = {" ".join(key): round(values[-1], 1) for key, values in rates.items()}
        print(preset, last, file=sys.stderr, flush=True)
    return rates


def row_of(preset, rates):
    rounds = len(next(iter(rates.values())))
    best = [[max(values[i] for (name, _), values in rates.items() if (name == "ours") == own) for i in range(rounds)]
            for own in (True, False)]
    ratios = sorted(a / b for a, b in zip(*best))
    return {"model": preset, "case": case_of(preset),
            "rates": {" ".join(key): statistics.median(values) for key, values in rates.items()},
            "ratio": statistics.median(ratios), "lowest": ratios[0], "highest": ratios[-1]}


def digits(rate):
    return f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}"


def print_table(rows, infer):
    columns = list(dict.fromkeys(name for row in rows for name in row["rates"]))
    what = "Images a second, inference" if infer else "Images a second"
    print(f"{what}, medians; ours to their best: the median of the rounds, and its ends.\n")
    print("| model | pixels, classes, batch | " + " | ".join(columns) + " | ours to their best |")
    print("|---|---|" + "--:|" * len(columns) + "---|")
    for row in rows:
        rates = " | ".join(digits(row["rates"][name]) if name in row["rates"] else "-" for name in columns)
        print(f"| `{row['model']}` | {', '.join(map(str, row['case']))} | {rates} | {row['ratio']:.2f} "
              f"({row['lowest']:.2f} to {row['highest']:.2f}) |")


def run(args, presets):
    rows = []
    for preset in presets:
        try:
            rows.append(row_of(preset, measure(args, preset)))
        except (RuntimeError, ValueError) as error:  # the other rows are worth having
            print(f"pytorch_table: {preset}: {error}", file=sys.stderr)
            continue
        print_table(rows[-1:], args.infer)
    print()
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        print_table(rows, args.infer)
    return 0 if len(rows) == len(presets) else 1

"""What the program tells the peer: the config of a preset, and the time of its own step."""

import json
import subprocess


def answer(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout)


def config_of(preset, image_size, classes, program):
    """The engine's config of a preset."""
    return answer([program, "summary", preset, "--image-size", str(image_size), "--classes", str(classes),
                   "--json"])["model"]


def bench(args, case, warmup):
    """Seconds of the program's step (of a batch, with --infer) for args.model and args.precision."""
    size, classes, batch = case
    kind = "run" if args.pipeline else "infer" if args.infer else "train"
    command = [args.tessera, "bench", kind, "--model", args.model, "--image-size", str(size), "--batch", str(batch),
               "--device", args.device, "--warmup", str(warmup), "--json"]
    if args.pipeline:
        command += ["--recipe", f"sl-vit-{'cifar10' if size <= 32 else 'tiny-imagenet'}", "--dataset", "shapes",
                    "--seconds", str(args.seconds)]
    else:
        command += ["--classes", str(classes), "--steps", str(args.steps)]
    if args.precision != "f32":
        command += ["--dtype" if args.infer else "--precision", args.precision]
    if args.threads:
        command += ["--threads", str(args.threads)]
    return answer(command)["batch_seconds" if args.infer else "step_seconds"]

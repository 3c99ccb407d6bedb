"""A step in PyTorch, as a fast one is written there: of training or, with --infer, a forward pass in evaluation."""

import itertools
import statistics
import time
from dataclasses import dataclass

import torch
import torch._inductor.config

from pytorch_models import build, labels_shape, loss_of
from pytorch_program import config_of


@dataclass
class Way:
    """One way of writing the step in PyTorch."""

    name: str
    flex: bool = False  # flex_attention
    mode: str | None = None  # torch.compile's; None: eager
    explicit: bool = False  # attention by products and a softmax
    whole: bool = False  # bf16 weights with f32 masters, and on a GPU the whole step as one CUDA graph
    frozen: bool = False  # of inference: the compiler packs the weights and folds batch norms into convolutions


def cpu_ways(args):
    narrow = args.precision == "bf16"
    ways = [Way("eager"), Way("eager, explicit attention", explicit=True)]
    if not args.no_compile:
        ways += [Way("compiled", mode="default", frozen=args.infer),
                 Way("compiled, explicit attention", mode="default", explicit=True, frozen=args.infer)]
        if narrow and not args.infer:
            ways += [Way("compiled, bf16 weights", mode="default", whole=True)]
    if args.quick and not narrow:
        ways = [way for way in ways if not way.explicit]
    if not (args.quick or args.no_autotune or args.no_compile):
        ways += [Way("compiled, tuned", mode="max-autotune", frozen=args.infer)]
    return ways


def gpu_ways(args):
    """The likely fastest early."""
    ways = [Way("eager")]
    if args.no_compile:
        return ways
    graphs = [Way("compiled, graphs", mode="reduce-overhead"),
              Way("compiled, whole step a graph", mode="default", whole=True)]
    if args.quick:
        ways += graphs
    else:
        ways += [Way("compiled", mode="default"), *graphs,
                 Way("compiled, flex attention", flex=True, mode="default"),
                 Way("compiled, graphs, flex attention", flex=True, mode="reduce-overhead")]
    if not (args.quick or args.no_autotune):
        ways += [Way("compiled, tuned", mode="max-autotune"),
                 Way("compiled, tuned, whole step a graph", mode="max-autotune-no-cudagraphs", whole=True)]
    return [way for way in ways if not (way.whole and args.infer)]


def ways_of(args):
    """The ways of this device and precision."""
    return gpu_ways(args) if args.device == "cuda" else cpu_ways(args)


def feed(args, case, device, config):
    """The batches of the steps: the same random images again and again, or the pipeline's."""
    size, classes, batch = case
    if args.pipeline:
        import pytorch_data
        make = pytorch_data.batches if args.pipeline == "workers" else pytorch_data.batches_on_device
        return make(size, classes, batch, device)
    images = torch.randn(batch, config["in_channels"], size, size, device=device)
    return itertools.repeat((images, torch.randint(classes, labels_shape(config, batch), device=device)))


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


def infer_step(args, model, way, batches):
    """A forward pass in evaluation; in bf16 the weights and images are, as the engine's then."""
    model.eval()
    images = next(batches)[0]
    if args.precision == "bf16":
        model, images = model.bfloat16(), images.bfloat16()
    run = getattr(model, "infer", model)
    if way.mode:
        run = torch.compile(run, mode=way.mode, fullgraph=True)

    @torch.inference_mode()
    def step():
        return run(images)

    return step


def make_step(args, case, way):
    """A step as `way` takes it, warmed up; raises where this PyTorch cannot do it."""
    size, classes, _ = case
    device = torch.device(args.device)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high" if args.precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    config = config_of(args.model, size, classes, args.tessera)
    model = build(config, device if way.flex else None, way.explicit).to(device)
    if getattr(model, "maps", False):  # the layout that its convolutions are fastest in
        model.to(memory_format=torch.channels_last)
    batches = feed(args, case, device, config)
    if args.infer:
        step = infer_step(args, model, way, batches)
    else:
        run = torch.compile(model, mode=way.mode, fullgraph=True) if way.mode else model
        step = whole_step(args, model, run, batches) if way.whole else loop_step(args, model, run, batches, device)
    with torch._inductor.config.patch(freezing=way.frozen):  # read when a step first runs
        for _ in range(max(args.warmup, 1)):
            step()
    return step


def wait_for(device):
    if device == "cuda":
        torch.cuda.synchronize()


def median_round(step, device, rounds, length):
    """Seconds of a step, the median over the rounds, at whose end alone the host waits."""
    seconds = []
    for _ in range(rounds):
        wait_for(device)
        start = time.perf_counter()
        for _ in range(length):
            step()
        wait_for(device)
        seconds.append((time.perf_counter() - start) / length)
    return statistics.median(seconds)

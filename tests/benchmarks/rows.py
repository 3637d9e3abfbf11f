# SPDX-License-Identifier: Apache-2.0
"""What is compared with what: the rows of the table, by the name they are asked for.

Every ratio is the peer's time divided by ours, so that more is better and a bar is a lower bound:
a share of a step that may be lost at most is written as the ratio that must be left.
"""
import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "benchmarks"
PEERS = ROOT / "tests" / "benchmarks" / "peers"

# glibc's malloc keeps what is freed instead of handing it back to the kernel: several peers take
# new memory at every step, and would be measured by their page faults.
TUNED_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
}
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@dataclasses.dataclass(frozen=True)
class Program:
    """One side of a comparison (see window.h). `needs` are arguments of prepare.sh."""
    command: tuple
    environment: dict
    needs: tuple = ()


@dataclasses.dataclass(frozen=True)
class Limit:
    """A peer that is but a number of milliseconds."""
    milliseconds: float


@dataclasses.dataclass(frozen=True)
class Row:
    workload: str
    ours: Program
    peers: tuple  # The best one counts.
    bar: float


def ours(*command, tree="release", environment=None):
    program = OUT / tree / "tests" / "benchmarks" / command[0]
    needs = () if tree == "release" else (tree,)
    return Program((str(program), *command[1:]), environment or {}, needs)


def training(model, replicas=1, **where):
    return ours("training_step", model, str(replicas), **where)


def torch(script, *arguments):
    stand_ins = {"LD_LIBRARY_PATH": str(OUT / "torch" / "stand_ins")}
    return Program((str(OUT / "torch/bin/python"), str(PEERS / script), *arguments),
                   TUNED_MALLOC | ONE_THREAD | stand_ins, ("torch",))


def libtorch(program):
    return Program((str(OUT / program),), TUNED_MALLOC | ONE_THREAD, ("libtorch",))


def debian_torch(script, *arguments):
    return Program(("/usr/bin/python3", str(PEERS / script), *arguments),
                   TUNED_MALLOC | ONE_THREAD, ("python3_torch",))


def tensorflow(script, *arguments):
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    return Program((str(OUT / "tensorflow/bin/python"), str(PEERS / script), *arguments),
                   TUNED_MALLOC | quiet, ("tensorflow",))


def has_bf16_products():
    """Whether this CPU multiplies matrices of bf16 faster than of f32."""
    try:
        flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


MODELS = {"mlp": "MLP", "lenet": "LeNet", "resnet20": "ResNet-20", "gpt": "GPT"}

ROWS = {
    "mlp": [
        Row("MLP, 1 replica", training("mlp"),
            (libtorch("torch_mlp"), torch("torch_step.py", "mlp")), 1.15)],
    "lenet": [
        Row("LeNet, 1 replica", training("lenet"), (torch("torch_step.py", "lenet"),), 1.2)],
    "resnet20": [
        Row("ResNet-20, 1 replica", training("resnet20"), (torch("torch_step.py", "resnet20"),),
            1.05)],
    "gpt": [
        Row("GPT, 1 replica", training("gpt"), (torch("torch_step.py", "gpt"),), 1.2)],
    "bf16": [
        Row("wide MLP, bf16 against f32", training("wide_mlp_bf16"), (training("wide_mlp"),), 1.5)
    ] if has_bf16_products() else [],
    "scaling": [
        Row(f"{MODELS[model]}, 2 replicas against 2 threads that share nothing", training(model, 2),
            (ours("training_apart", model, "2"),), bar)
        for model, bar in (("mlp", 0.92), ("resnet20", 0.95), ("gpt", 0.95))],
    "ddp": [
        Row(f"{MODELS[model]}, 2 replicas against 2 processes", training(model, 2),
            (torch("torch_ddp.py", model),), bar)
        for model, bar in (("mlp", 2.2), ("gpt", 1.3), ("resnet20", 1.05))],
    "libtorch": [
        Row(f"{MODELS[model]} in LibTorch, 2 replicas against 2 processes",
            ours("libtorch_step", model, "2", environment=TUNED_MALLOC | ONE_THREAD),
            (debian_torch("torch_ddp.py", model),), bar)
        for model, bar in (("mlp", 1.2), ("resnet20", 1.0))],
    "tape": [
        Row("MLP against its kernels alone", training("mlp"), (ours("mlp_by_hand"),), 0.97)],
    "malloc": [
        Row(f"{name}, default against tuned malloc", training(model),
            (training(model, environment=TUNED_MALLOC),), 0.95)
        for model, name in (("mlp", "MLP"), ("lenet", "LeNet"))],
    "portable": [
        Row(f"{name}, portable against x86-64-v4", training(model),
            (training(model, tree="v4"),), 0.97)
        for model, name in (("mlp", "MLP"), ("lenet", "LeNet"))],
    "empty_run": [
        Row(f"empty run + reduce, {replicas} replicas", ours("empty_run", str(replicas)),
            (Limit(milliseconds),), 1)
        for replicas, milliseconds in ((2, 0.004), (4, 0.030))],
    "gemm512": [
        Row("512 x 512 matrix product, share of peak", ours("kernels", "gemm512"),
            (ours("fma_peak"),), 0.85)],
    "conv": [
        Row("conv 32x64x28x28 3x3, forward + backward", ours("kernels", "conv"),
            (torch("torch_ops.py", "conv"),), 1.0)],
    "adam": [
        Row("Adam, 10M weights", ours("kernels", "adam"), (torch("torch_ops.py", "adam"),), 1.5),
        Row("Adam, share of what memory allows", ours("kernels", "adam"), (ours("memory_bound"),),
            0.9)],
    "cross_entropy": [
        Row("softmax cross entropy 128x1000", ours("kernels", "cross_entropy"),
            (torch("torch_ops.py", "cross_entropy"),), 3)],
    "layer_norm": [
        Row("layer norm 2048x512, forward + backward", ours("kernels", "layer_norm"),
            (torch("torch_ops.py", "layer_norm"),), 1.8)],
    "tensorflow": [
        Row(f"{name}, 2 replicas against 2 logical CPUs", training(model, 2),
            tuple(tensorflow("tensorflow_step.py", model, threads) for threads in "01"), 1.5)
        for model, name in MODELS.items()],
    "ops": [],  # measured by sweep.py
}

# Every op by itself: ours and PyTorch's, and what the ratio of each, and their median, must reach.
EACH_OP = (ours("ops"), torch("torch_each_op.py"))
EVERY_OP = 0.7
MEDIAN_OP = 1.2

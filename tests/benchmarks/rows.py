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

# glibc's malloc keeps what is freed instead of handing it back to the kernel: several peers take new
# memory at every step, and would be measured by their page faults.
TUNED_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
}
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@dataclasses.dataclass(frozen=True)
class Program:
    """One side of a comparison: see window.h for what it does. `needs` is an argument of prepare.sh."""
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
    return Program((str(program), *command[1:]), environment or {}, ("v4",) if tree == "v4" else ())


def torch(script, *arguments):
    environment = TUNED_MALLOC | ONE_THREAD | {"LD_LIBRARY_PATH": str(OUT / "torch" / "stand_ins")}
    return Program((str(OUT / "torch/bin/python"), str(PEERS / script), *arguments), environment, ("torch",))


def libtorch(program):
    return Program((str(OUT / program),), TUNED_MALLOC | ONE_THREAD, ("libtorch",))


def tensorflow(script, *arguments):
    environment = TUNED_MALLOC | {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}
    return Program((str(OUT / "tensorflow/bin/python"), str(PEERS / script), *arguments), environment,
                   ("tensorflow",))


ROWS = {
    "mlp": [Row("MLP, 1 replica", ours("training_step", "mlp", "1"),
                (libtorch("torch_mlp"), torch("torch_step.py", "mlp")), 1.15)],
    "lenet": [Row("LeNet, 1 replica", ours("training_step", "lenet", "1"), (torch("torch_step.py", "lenet"),), 1.2)],
    "scaling": [Row("MLP, 2 replicas, against 2 threads that share nothing", ours("training_step", "mlp", "2"),
                    (ours("training_apart", "mlp", "2"),), 0.92)],
    "ddp": [Row("MLP, 2 replicas, against 2 processes of DDP", ours("training_step", "mlp", "2"),
                (torch("torch_ddp.py"),), 2.2)],
    "tape": [Row("MLP, against its kernels alone", ours("training_step", "mlp", "1"), (ours("mlp_by_hand"),), 0.97)],
    "malloc": [
        Row("MLP, default against tuned malloc", ours("training_step", "mlp", "1"),
            (ours("training_step", "mlp", "1", environment=TUNED_MALLOC),), 0.95),
        Row("LeNet, default against tuned malloc", ours("training_step", "lenet", "1"),
            (ours("training_step", "lenet", "1", environment=TUNED_MALLOC),), 0.95)],
    "portable": [
        Row("MLP, against a build for x86-64-v4", ours("training_step", "mlp", "1"), (ours("training_step", "mlp", "1", tree="v4"),), 0.97),
        Row("LeNet, against a build for x86-64-v4", ours("training_step", "lenet", "1"),
            (ours("training_step", "lenet", "1", tree="v4"),), 0.97)],
    "empty_run": [
        Row("empty run + reduce, 2 replicas", ours("empty_run", "2"), (Limit(0.004),), 1),
        Row("empty run + reduce, 4 replicas", ours("empty_run", "4"), (Limit(0.030),), 1)],
    "gemm512": [Row("product of 512 x 512, share of peak", ours("kernels", "gemm512"),
                    (ours("fma_peak"),), 0.85)],
    "conv": [Row("3x3 convolution 32x64x28x28, forward + backward", ours("kernels", "conv"),
                 (torch("torch_ops.py", "conv"),), 1.0)],
    "adam": [Row("Adam, 10M weights", ours("kernels", "adam"), (torch("torch_ops.py", "adam"),), 1.5)],
    "cross_entropy": [Row("softmax cross entropy 128x1000, forward + backward",
                          ours("kernels", "cross_entropy"),
                          (torch("torch_ops.py", "cross_entropy"),), 3)],
    "tensorflow": [Row("MLP, 2 replicas, against MirroredStrategy", ours("training_step", "mlp", "2"),
                       (tensorflow("tensorflow_mlp.py"),), 1.5)],
}

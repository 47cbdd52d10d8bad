"""A plan as tables and as one JSON record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from launch.cluster.plan.count import (
    ENGINES,
    LOADER_TOKENS,
    MAX_SHORT_VOCABULARY,
    Memory,
    Speed,
    Work,
    bytes_sent,
    disk_of,
    memory,
    micro_batches,
    speed,
    work_of,
)
from launch.cluster.plan.gpus import Gpu
from launch.console import PlainConsole, Table, number_table, print_table
from launch.recipe import Recipe
from pretrain.engine.memory import GIB

LINK_SHARE = 0.1  # share of a step that the network may take


@dataclass(frozen=True, slots=True)
class Choice:
    """A kind of GPU, its precision, and the price per hour."""

    gpu: Gpu
    precision: str
    price: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """A recipe on each kind of GPU, number of nodes and assumed share of the peak."""

    recipe: Recipe
    work: Work
    choices: Sequence[Choice]
    nodes: Sequence[int]
    per_node: int
    shares: Sequence[float]

    @classmethod
    def of(
        cls, recipe: Recipe, choices: Sequence[Choice], nodes: Sequence[int], per_node: int, shares: Sequence[float]
    ) -> Plan:
        """The plan; ``BadInput`` if the recipe has no sizes or its batch cannot be divided by the GPUs."""
        made = cls(recipe, work_of(recipe), choices, nodes, per_node, shares)
        for count in nodes:
            micro_batches(recipe.pretrain, count * per_node)
        return made

    def headline(self) -> str:
        work, config = self.work, self.recipe.pretrain
        said = (
            f"{self.recipe.name}: {work.parameters / 1e6:.2f} M parameters, {work.flops_per_token / 1e6:,.1f} MFLOP a "
            f"token; {work.steps:,} steps of {config.global_batch:,} rows, {work.tokens:.3g} tokens, "
            f"{work.flops:.3g} operations"
        )
        return said.replace("e+", "e")

    def memories(self, choice: Choice, nodes: int) -> list[Memory]:
        """One for each engine that supports the precision."""
        config, gpus = self.recipe.pretrain, nodes * self.per_node
        return [
            memory(config, self.work, engine, choice.gpu, choice.precision, gpus)
            for engine in ENGINES
            if not engine.refuses(choice.precision)
        ]

    def network(self, choice: Choice, nodes: int, found: Memory) -> tuple[float, float]:
        """Bytes that a GPU sends per step, and bytes per second at which that takes ``LINK_SHARE`` of a step."""
        gpus = nodes * self.per_node
        sent = bytes_sent(self.recipe.pretrain, self.work, found, choice.precision, gpus)
        fastest = speed(self.work, choice.gpu, choice.precision, gpus, self.shares[-1], None)
        return sent, sent / (LINK_SHARE * fastest.seconds / self.work.steps)

    def as_json(self) -> dict[str, Any]:
        """Every figure, sizes in bytes and times in seconds."""
        places = [(choice, nodes) for choice in self.choices for nodes in self.nodes]
        return {
            "recipe": self.recipe.name,
            "work": asdict(self.work) | {"flops_per_token": self.work.flops_per_token},
            "assumed": {"share_of_link": LINK_SHARE, "loader_tokens_per_core": LOADER_TOKENS},
            "runs": [
                _place(choice, nodes, self.per_node)
                | {"mfu": share}
                | asdict(speed(self.work, choice.gpu, choice.precision, nodes * self.per_node, share, choice.price))
                for choice, nodes in places
                for share in self.shares
            ],
            "memory": [
                _place(choice, nodes, self.per_node)
                | {"engine": found.engine.name, "sequences": found.sequences}
                | found.needed._asdict()
                | dict(zip(("sent_per_step", "link_bytes_per_second"), self.network(choice, nodes, found), strict=True))
                for choice, nodes in places
                for found in self.memories(choice, nodes)
            ],
            "disk": asdict(disk_of(self.recipe.pretrain, self.work)),
        }


def _place(choice: Choice, nodes: int, per_node: int) -> dict[str, Any]:
    return {"gpu": choice.gpu.name, "nodes": nodes, "gpus": nodes * per_node, "precision": choice.precision}


def print_plan(plan: Plan, console: PlainConsole) -> None:
    """Print headline, tables and notes."""
    console.print(plan.headline(), soft_wrap=True)
    for table in tables_of(plan):
        print_table(table, console)
    for note in notes_of(plan):
        console.print(note, soft_wrap=True)


def tables_of(plan: Plan) -> Iterator[Table]:
    """Time, then memory and network by precision, as engines differ by it."""
    yield time_table(plan)
    for _, group in groupby(sorted(plan.choices, key=lambda one: one.precision), key=lambda one: one.precision):
        choices = list(group)
        yield memory_table(plan, choices)
        if plan.nodes[-1] * plan.per_node > 1:
            yield network_table(plan, choices)


def time_table(plan: Plan) -> Table:
    """One row per kind of GPU and number of nodes, with a figure for each share of the peak."""
    rows = []
    has_price = ("cost",) if any(choice.price is not None for choice in plan.choices) else ()
    for choice in plan.choices:
        for nodes in plan.nodes:
            gpus = nodes * plan.per_node
            found = [speed(plan.work, choice.gpu, choice.precision, gpus, share, choice.price) for share in plan.shares]
            rows.append(
                [
                    choice.gpu.name,
                    f"{nodes} x {plan.per_node}",
                    choice.precision,
                    f"{plan.recipe.pretrain.global_batch // gpus:,}",
                    " / ".join(f"{one.tokens_per_second / 1e6:,.2f}" for one in found),
                    " / ".join(map(_say_days, found)),
                    *(" / ".join(f"{one.cost:,.0f}" for one in found if one.cost is not None) for _ in has_price),
                ]
            )
    shares = " / ".join(f"{share:.0%}" for share in plan.shares)
    return Table(
        ("gpu", "GPUs", "precision", "rows a GPU", "M tokens a second", "days", *has_price),
        rows,
        numbers=range(3, 7),
        title=f"Time at {shares} of the peak",
        note="The share of the peak is an assumption; the log of the first 50 steps shows it as mfu. Measurements, "
        "checkpoints, the network and failures are not included.",
    )


def _say_days(found: Speed) -> str:
    days = found.seconds / 86_400
    return f"{days:,.1f}" if days >= 1 else f"{days:.2g}"


def memory_table(plan: Plan, choices: Sequence[Choice]) -> Table:
    """GiB on one GPU and largest number of sequences by engine, on the smallest number of nodes."""
    nodes, rows = plan.nodes[0], []
    for memories in zip(*(plan.memories(choice, nodes) for choice in choices), strict=True):
        needed, sequences = memories[0].needed, max(memories[0].sequences, 1)
        fixed = (needed.weights, needed.gradients, needed.moments, needed.buffers)
        rows.append(
            [
                memories[0].engine.name,
                *(f"{size / GIB:.2f}" for size in (*fixed, (needed.activations + needed.scores) / sequences)),
                *(f"{found.sequences:,}" if found.fits else "no" for found in memories),
            ]
        )
    gpus = nodes * plan.per_node
    return number_table(
        f"Memory of each of {gpus:,} GPUs in {choices[0].precision}, GiB; most sequences that fit at once",
        ("engine", "weights", "grads", "moments", "buffers", "sequence", *(one.gpu.name for one in choices)),
        rows,
        f"sequence: activations and scores of one; of a step a GPU has {plan.recipe.pretrain.global_batch // gpus:,}",
    )


def network_table(plan: Plan, choices: Sequence[Choice]) -> Table:
    """Bytes that each GPU sends per step by engine, on the largest number of nodes."""
    nodes, rows = plan.nodes[-1], []
    for memories in zip(*(plan.memories(choice, nodes) for choice in choices), strict=True):
        cells = []
        for choice, found in zip(choices, memories, strict=True):
            sent, rate = plan.network(choice, nodes, found)
            cells.append(f"{sent / 1e9:,.2f} / {rate / 1e9:,.1f}" if found.fits else "–")
        rows.append([memories[0].engine.name, *cells])
    return number_table(
        f"Network of {nodes} x {plan.per_node} GPUs in {choices[0].precision}: GB sent a step / GB a second",
        ("engine", *(one.gpu.name for one in choices)),
        rows,
        f"Per GPU and, in a ring, per node. At the second figure, sending takes {LINK_SHARE:.0%} of a step at "
        f"{plan.shares[-1]:.0%} of the peak, without overlap. A link of 100 Gbit/s carries 12.5 GB per second.",
    )


def notes_of(plan: Plan) -> Iterator[str]:
    """Disk, host memory, loader, and settings that the plan needs."""
    config, work, disk = plan.recipe.pretrain, plan.work, disk_of(plan.recipe.pretrain, plan.work)
    yield (
        f"disk: model {disk.model / GIB:.2f} GiB, optimizer {disk.optimizer / GIB:.2f}, a checkpoint "
        f"{disk.checkpoint / GIB:.2f}; at most {disk.run / GIB:.2f} GiB at once ({config.saved.keep_checkpoints} kept, "
        "the best, one being written, the model)"
    )
    yield f"host memory: {disk.checkpoint / GIB:.2f} GiB in the first process while a checkpoint is written"
    most = max(
        speed(work, choice.gpu, choice.precision, plan.per_node, plan.shares[-1], None).tokens_per_second
        for choice in plan.choices
    )
    width = 2 if work.vocab_size <= MAX_SHORT_VOCABULARY else 4
    yield (
        f"loader: {most / 1e6:,.2f} M tokens a second on the fastest node take {most / LOADER_TOKENS:.2f} of a core "
        f"({LOADER_TOKENS / 1e6:.1f} M a second and core) and {most * width / 1e6:,.1f} MB a second of the token store"
    )
    if config.engine.precision == "auto" and (old := [one for one in plan.choices if one.precision == "fp16"]):
        share = old[0].gpu.peak("fp32") / old[0].gpu.peak("fp16")
        yield (
            f"{', '.join(one.gpu.name for one in old)}: no bf16, so planned in fp16; set pretrain.engine.precision="
            f"fp16 (DeepSpeed), because auto trains in fp32, at {share:.0%} of the peak"
        )

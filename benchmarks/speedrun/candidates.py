"""Candidates of the speedrun: recipes for pretraining, by name or file, with overrides.

``trainer``, ``paper`` and every shipped recipe are built at the size of the setup (``--size``); a recipe file keeps
its own sizes. Gated units get a smaller width, so that all have equal numbers of weights. ``NAME: RECIPE KEY=VALUE
…`` defines a variant of any recipe, so a switch is one override. Warm-ups in steps become shares of the recipe's own
steps, because the budget decides the number of steps.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from corpus.documents.errors import BadInput
from launch.recipe import load_recipe
from pretrain.config import PretrainConfig

Side = Literal["malmoi", "trainer"]
PAPER, TRAINER = "paper", "trainer"
BASELINES = (TRAINER, PAPER, "real-small")  # speed-ups are computed against these by default
DEFAULT_CANDIDATES = (*BASELINES, "malmoi-small")
# the paper's steps of a million tokens do not fit a budget of minutes; smaller steps need another learning rate
AT_THIS_SIZE = (
    "pretrain.global_batch=16", "pretrain.rows.sequence_length=128", "pretrain.model.positions=128",
    "pretrain.optimizer.lr=5.0e-4",
)  # fmt: skip
OWN_BASES: dict[str, tuple[str, tuple[str, ...]]] = {
    TRAINER: ("klue-roberta-base", AT_THIS_SIZE),
    PAPER: ("klue-roberta-base", AT_THIS_SIZE),
}
NAME = re.compile(r"[^\W_][\w.-]*")
SIZE = re.compile(r"([1-9]\d*)x([1-9]\d*)")
ENDLESS = 10**9  # steps; the budget decides the real number
HEAD = 64  # columns of an attention head, as in the models of the paper


@dataclass(frozen=True, slots=True)
class Candidate:
    """``command``: recipe and overrides as given; ``config``: the resolved settings with seed 1."""

    name: str
    command: str
    side: Side
    config: PretrainConfig

    def identity(self) -> dict[str, Any]:
        """Everything that decides the result except setup and seed, as JSON."""
        return {"side": self.side, "config": self.config.identity()}

    def seeded(self, seed: int) -> PretrainConfig:
        return self.config.model_copy(update={"seed": seed})


def read_candidates(texts: Sequence[str], size: str, precision: str) -> list[Candidate]:
    """Read candidates from the command line.

    Args:
        texts: each "NAME" or "NAME: RECIPE KEY=VALUE …"; ``DEFAULT_CANDIDATES`` if empty.
        size: LAYERSxHIDDEN of candidates without their own sizes.
        precision: fp32 or bf16, for all.

    Raises:
        BadInput, LaunchError: a duplicate name, an unknown recipe, or settings that cannot be compared.
    """
    candidates = [_read(text, size, precision) for text in texts or DEFAULT_CANDIDATES]
    names = [candidate.name for candidate in candidates]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"--candidate {twice[0]}: two candidates have this name; rename one of them")
    return candidates


def _read(text: str, size: str, precision: str) -> Candidate:
    name, colon, rest = (part.strip() for part in text.partition(":"))
    try:
        base, *overrides = shlex.split(rest) if colon else [name]
    except ValueError as error:
        raise BadInput(f"--candidate {text}: write it as NAME: RECIPE KEY=VALUE … ({error or 'no recipe'})") from None
    if not NAME.fullmatch(name):
        raise BadInput(f"--candidate {text}: needs a name of letters, digits, '.', '-' and '_'; write NAME: {text}")
    if other := [override for override in overrides if not override.startswith("pretrain.")]:
        raise BadInput(f"--candidate {name}: {other[0]}: only pretrain.KEY=VALUE may differ")
    recipe, own = OWN_BASES.get(base, (base, ()))
    is_gated = load_recipe(recipe, own).pretrain.model.architecture == "modernbert"
    sizes = () if Path(base).suffix in (".yaml", ".yml") else _size_of(size, is_gated)
    config = load_recipe(recipe, (*own, *sizes, *overrides)).pretrain
    side: Side = "trainer" if base == TRAINER else "malmoi"
    _check(name, side, config)
    return Candidate(name, " ".join([base, *overrides]), side, _with_setup(config, precision))


def _size_of(size: str, is_gated: bool) -> tuple[str, ...]:
    match = SIZE.fullmatch(size)
    if match is None:
        raise BadInput(f"--size {size}: expected LAYERSxWIDTH, for example 4x256")
    layers, hidden = map(int, match.groups())
    heads = max(1, hidden // HEAD)
    intermediate = round(hidden / 3) * 8 if is_gated else 4 * hidden  # gated units have three matrices, others two
    fields = {"layers": layers, "hidden": hidden, "heads": heads, "intermediate": intermediate}
    return tuple(f"pretrain.model.{key}={value}" for key, value in fields.items())


def _check(name: str, side: Side, config: PretrainConfig) -> None:
    """Refuse settings that cannot run or be compared here."""
    problems = {
        "pretrain.init_from": config.init_from is not None,
        "pretrain.continue_from": config.continue_from is not None,
        "pretrain.model.nsp": config.model.nsp,
        f"pretrain.model.objective={config.model.objective}": config.model.objective == "causal",
    }
    if keys := [key for key, is_set in problems.items() if is_set]:
        raise BadInput(f"--candidate {name}: {keys[0]}: candidates can only learn masked words from --data")
    if side == "trainer" and config.rows.packing != "blocks":
        raise BadInput(f"--candidate {name}: pretrain.rows.packing must be blocks for the Trainer")


def _with_setup(config: PretrainConfig, precision: str) -> PretrainConfig:
    """Apply the settings of the setup. Of the candidate's own rows only one block or document is held out."""
    optimizer = config.optimizer
    if optimizer.warmup_steps is not None:
        share = min(optimizer.warmup_steps / config.steps, 0.5)
        config = config.replaced("optimizer", warmup_share=share, warmup_steps=None)
    config = config.replaced("engine", name="plain", precision=precision, compile=False)
    config = config.replaced("rows", held_out_share=1e-9)
    config = config.replaced("watch", measure_every=ENDLESS, log_every=ENDLESS)
    fields = config.model_copy(update={"seed": 1, "steps": ENDLESS}).model_dump(mode="json")
    return PretrainConfig.model_validate(fields)

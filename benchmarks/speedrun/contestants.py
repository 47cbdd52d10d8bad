"""Who takes part in the speedrun: a recipe for pretraining, by name or file, with overrides.

``trainer``, ``paper`` and every shipped recipe stand ready, in the size of the arena, with as many weights whether
their units are gated or not; a file keeps the sizes it names.
``NAME: RECIPE KEY=VALUE …`` makes another one of any of them, so a switch is one override. Warm-ups given in steps
become shares of the recipe's own steps, as the number of steps is the arena's to find.
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
RIVALS = (TRAINER, PAPER, "real-small")  # those whose losses all are timed against
STANDING = (*RIVALS, "malmoi-small")  # those who run where nobody else is named
# what the paper leaves no budget of minutes for: steps of a million tokens, and the rate that goes with them
AT_THIS_SIZE = (
    "pretrain.global_batch=16", "pretrain.rows.sequence_length=128", "pretrain.model.positions=128",
    "pretrain.optimizer.lr=5.0e-4",
)  # fmt: skip
BASES: dict[str, tuple[str, tuple[str, ...]]] = {
    TRAINER: ("klue-roberta-base", AT_THIS_SIZE),
    PAPER: ("klue-roberta-base", AT_THIS_SIZE),
}
NAME = re.compile(r"[^\W_][\w.-]*")
SIZE = re.compile(r"([1-9]\d*)x([1-9]\d*)")
ENDLESS = 10**9  # steps, until the budget says how many
HEAD = 64  # columns of a head, as in all models of the paper


@dataclass(frozen=True, slots=True)
class Contestant:
    """``told``: recipe and overrides as they were given; ``config``: what is trained, with seed 1."""

    name: str
    told: str
    side: Side
    config: PretrainConfig

    def identity(self) -> dict[str, Any]:
        """What decides its result beside arena and seed, as JSON."""
        return {"side": self.side, "config": self.config.identity()}

    def seeded(self, seed: int) -> PretrainConfig:
        return self.config.model_copy(update={"seed": seed})


def read_contestants(texts: Sequence[str], size: str, precision: str) -> list[Contestant]:
    """Contestants as they are named on the command line.

    Args:
        texts: each "NAME" or "NAME: RECIPE KEY=VALUE …"; ``STANDING`` if empty.
        size: LAYERSxHIDDEN of those that name no sizes themselves.
        precision: fp32 or bf16, of all.

    Raises:
        BadInput, LaunchError: a name twice, no such recipe, or settings that the arena cannot compare.
    """
    found = [_read(text, size, precision) for text in texts or STANDING]
    names = [contestant.name for contestant in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"--contestant {twice[0]}: two have this name; give one of them another")
    return found


def _read(text: str, size: str, precision: str) -> Contestant:
    name, colon, rest = (part.strip() for part in text.partition(":"))
    try:
        base, *overrides = shlex.split(rest) if colon else [name]
    except ValueError as error:
        raise BadInput(f"--contestant {text}: write it as NAME: RECIPE KEY=VALUE … ({error or 'no recipe'})") from None
    if not NAME.fullmatch(name):
        raise BadInput(f"--contestant {text}: begins with a name of letters, digits, '.', '-' and '_'; NAME: {text}")
    if other := [override for override in overrides if not override.startswith("pretrain.")]:
        raise BadInput(f"--contestant {name}: {other[0]}: text and vocabulary are the arena's; give pretrain.KEY=VALUE")
    recipe, own = BASES.get(base, (base, ()))
    is_gated = load_recipe(recipe, own).pretrain.model.architecture == "modernbert"
    sizes = () if Path(base).suffix in (".yaml", ".yml") else _size_of(size, is_gated)
    given = load_recipe(recipe, (*own, *sizes, *overrides)).pretrain
    side: Side = "trainer" if base == TRAINER else "malmoi"
    _check(name, side, given)
    return Contestant(name, " ".join([base, *overrides]), side, _settled(given, precision))


def _size_of(size: str, is_gated: bool) -> tuple[str, ...]:
    found = SIZE.fullmatch(size)
    if found is None:
        raise BadInput(f"--size {size}: layers and width, such as 4x256")
    layers, hidden = map(int, found.groups())
    heads = max(1, hidden // HEAD)
    intermediate = round(hidden / 3) * 8 if is_gated else 4 * hidden  # gated units have three matrices, others two
    fields = {"layers": layers, "hidden": hidden, "heads": heads, "intermediate": intermediate}
    return tuple(f"pretrain.model.{key}={value}" for key, value in fields.items())


def _check(name: str, side: Side, config: PretrainConfig) -> None:
    """Refuse what cannot run or be compared here, in a sentence."""
    wrong = {
        "pretrain.init_from": config.init_from is not None,
        "pretrain.continue_from": config.continue_from is not None,
        "pretrain.model.nsp": config.model.nsp,
        f"pretrain.model.objective={config.model.objective}": config.model.objective == "causal",
        "pretrain.rows.masking.unit=morpheme": config.rows.masking.unit == "morpheme",
    }
    if named := [key for key, is_given in wrong.items() if is_given]:
        raise BadInput(f"--contestant {name}: {named[0]}: contestants learn masked words from the arena's text alone")
    if side == "trainer" and config.rows.packing != "blocks":
        raise BadInput(f"--contestant {name}: pretrain.rows.packing: the Trainer gets blocks")


def _settled(config: PretrainConfig, precision: str) -> PretrainConfig:
    """What the arena decides for all; of the contestant's own rows one block or document is held out, no more."""
    optimizer = config.optimizer
    if optimizer.warmup_steps is not None:
        share = min(optimizer.warmup_steps / config.steps, 0.5)
        config = config.replaced("optimizer", warmup_share=share, warmup_steps=None)
    config = config.replaced("engine", name="plain", precision=precision, compile=False)
    config = config.replaced("rows", held_out_share=1e-9)
    config = config.replaced("watch", measure_every=ENDLESS, log_every=ENDLESS, trackers=())
    found = config.model_copy(update={"seed": 1, "steps": ENDLESS}).model_dump(mode="json")
    return PretrainConfig.model_validate(found)

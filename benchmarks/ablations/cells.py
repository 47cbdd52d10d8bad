"""The cells of the ablation: vocabulary x text x seed, each a run folder that the ordinary stages fill.

```
out/text/                    what was planted where (``plant``)
out/corpora/TEXT/            stage corpus: of plain, pseudonymized, and of the two held-out texts
out/vocabularies/NAME-TEXT/  stages tokenizer and tokens, on a link to that corpus
out/cells/NAME-TEXT-seed-N/  stages pretrain, model, finetune, on links to all that; measured.json
```
A stage folder is complete or gone on with, so the same command finishes what was killed. Several commands may share
``out``: what one is at work on, another leaves alone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.ablations.plant import PLANTED_NAME, READ_NAME
from benchmarks.pretrain import Given
from benchmarks.speedrun.pace import LEAST_STEPS, Cost
from corpus.documents.errors import BadInput
from launch.conduct import run_stage
from launch.pipeline import STAGES
from launch.recipe import OWN_MODEL, Recipe, load_recipe
from pretrain.config import PretrainConfig

PLAIN, PSEUDONYMIZED = TEXTS = ("plain", "pseudonymized")
READ, UNREAD = "read", "unread"  # held-out documents of the sources that are trained on, and of others
# in the order of the tables; the first is what the others are held beside
VOCABULARIES = {
    "bpe": ("tokenizer.builder=bpe",),
    "klue": ("tokenizer.builder=klue",),
    "malmoi": ("tokenizer.builder=malmoi",),
    "malmoi-2x": ("tokenizer.builder=malmoi",),  # twice the entries
}
DOUBLED = "malmoi-2x"
NAME = re.compile(r"[^\W_][\w.]*(?:-[\w.]+)*")
STAGE = {stage.name: stage for stage in STAGES}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A name for the tables, and the overrides of the recipe that make it."""

    name: str
    overrides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One model: whose name is also that of its folder."""

    vocabulary: Vocabulary
    text: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.vocabulary.name}-{self.text}-seed-{self.seed}"


@dataclass(frozen=True, slots=True)
class Base:
    """What all cells share: a recipe with overrides, raw text by name, KLUE files, the budget, ``out``.

    ``inputs``: of ``READ`` those that are trained on and held out from, of ``UNREAD`` those that never are.
    """

    recipe: str
    overrides: tuple[str, ...]
    inputs: Mapping[str, tuple[str, ...]]
    klue: str | None
    operations: float
    out: Path

    def load(self, *overrides: str) -> Recipe:
        """The recipe with further overrides; benchmark files are those of finetune.

        Raises:
            LaunchError: one of them cannot be. BadInput: models of it fill no masks.
        """
        found = load_recipe(self.recipe, (*self.overrides, *overrides))
        if found.pretrain.init_from is not None or found.pretrain.model.objective == "causal":
            raise BadInput(
                f"{self.recipe}: each cell trains a masked model of its own; leave out pretrain.init_from, and give "
                "pretrain.model.objective=masked"
            )
        corpus = found.corpus.model_copy(update={"inputs": list(self.inputs[READ])} if self.inputs[READ] else {})
        finetune = found.finetune.model_copy(update={"data": self.klue} if self.klue else {})
        return found.model_copy(update={"corpus": corpus, "finetune": finetune})

    # --- what cells stand on

    def corpus(self, text: str) -> Path:
        """The folder of a text's corpus, made if need be."""
        recipe, run = self.load(), self.out / "corpora" / text
        name = READ_NAME if text == READ else PLANTED_NAME
        inputs = list(self.inputs[UNREAD]) if text == UNREAD else [str(self.out / "text" / name)]
        pii = recipe.corpus.pii.model_copy(update={"mode": "keep" if text == PLAIN else "replace"})
        most = recipe.corpus.max_documents_per_file if text == UNREAD else None  # the others were cut when planted
        told: dict[str, object] = {"inputs": inputs, "sources": {}, "max_documents_per_file": most, "pii": pii}
        run_stage(STAGE["corpus"], recipe.model_copy(update={"corpus": recipe.corpus.model_copy(update=told)}), run)
        return run / "corpus"

    def recipe_of(self, cell: Cell) -> Recipe:
        return self.load(*cell.vocabulary.overrides)

    def vocabulary(self, cell: Cell) -> None:
        """Fill the run folder of the cell's vocabulary: tokenizer and tokens."""
        recipe, run = self.recipe_of(cell), self.folder_of_vocabulary(cell)
        _link(run / "corpus", self.out / "corpora" / cell.text / "corpus")
        for name in ("tokenizer", "tokens"):
            run_stage(STAGE[name], recipe, run)

    def folder_of_vocabulary(self, cell: Cell) -> Path:
        return self.out / "vocabularies" / f"{cell.vocabulary.name}-{cell.text}"

    def folder_of(self, cell: Cell) -> Path:
        return self.out / "cells" / cell.name

    def train(self, cell: Cell) -> None:
        """Fill the run folder of the cell, whose vocabulary is there: pretrain and model."""
        recipe, made, run = self.recipe_of(cell), self.folder_of_vocabulary(cell), self.folder_of(cell)
        for name in ("corpus", "tokenizer", "tokens"):
            _link(run / name, made / name)
        pretrain = recipe.pretrain.model_copy(update={"seed": cell.seed})
        steps = steps_within(made / "tokens", made / "tokenizer", pretrain, self.operations)
        pretrain = PretrainConfig.model_validate(pretrain.model_dump(mode="json") | {"steps": steps})
        for name in ("pretrain", "model"):
            run_stage(STAGE[name], recipe.model_copy(update={"pretrain": pretrain}), run)

    def finetune(self, cell: Cell, tasks: Sequence[str]) -> None:
        """Fine-tune and score the cell's model on the tasks, those of them that have no result yet."""
        recipe = self.recipe_of(cell)
        told = {"models": (OWN_MODEL,), "seeds": (cell.seed,), "tasks": tuple(tasks)}
        finetune = recipe.finetune.model_copy(update=told)
        run_stage(STAGE["finetune"], recipe.model_copy(update={"finetune": finetune}), self.folder_of(cell))


def steps_within(tokens: Path, tokenizer: Path, config: PretrainConfig, operations: float) -> int:
    """Steps that cost no more than ``operations``, by the formula of the MFU; BadInput where they hold no schedule."""
    given = Given.open(tokens, tokenizer, config)
    cost = Cost.of(given.batches(), config, given.network(), stock=False)
    steps = cost.steps_within(config, 0, operations)
    if steps < LEAST_STEPS:
        raise BadInput(f"{operations:g} operations are {steps} steps of this model; raise --operations")
    return steps


def _link(path: Path, target: Path) -> None:
    """A relative link, so that ``out`` may be moved or mounted elsewhere."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_symlink():
        path.symlink_to(Path("..", "..") / target.parent.parent.name / target.parent.name / target.name)


def read_vocabularies(texts: Sequence[str], recipe: Recipe) -> list[Vocabulary]:
    """Vocabularies as the command line names them: one of ``VOCABULARIES``, or "NAME: KEY=VALUE …".

    Args:
        texts: the four of ``VOCABULARIES`` if empty.
        recipe: what ``malmoi-2x`` doubles the entries of.

    Raises:
        BadInput: a name twice, unknown, or none; an override that is not of the tokenizer.
    """
    found = [_read_vocabulary(text, recipe) for text in texts or VOCABULARIES]
    names = [one.name for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(f"--vocabulary {twice}: named twice; give each one a name of its own")
    return found


def _read_vocabulary(text: str, recipe: Recipe) -> Vocabulary:
    name, colon, rest = (part.strip() for part in text.partition(":"))
    if not colon:
        if name not in VOCABULARIES:
            known = ", ".join(VOCABULARIES)
            raise BadInput(f"--vocabulary {text}: there are {known}; or write NAME: tokenizer.KEY=VALUE …")
        standing = Vocabulary(name, VOCABULARIES[name])
        doubled = f"tokenizer.vocab_size={2 * recipe.tokenizer.vocab_size}"
        return replace(standing, overrides=(*standing.overrides, doubled)) if name == DOUBLED else standing
    overrides = tuple(shlex.split(rest))
    if not NAME.fullmatch(name) or name in VOCABULARIES:
        raise BadInput(f"--vocabulary {text}: begins with a name of its own, of letters, digits, '.' and '-'")
    if not overrides or any(not override.startswith("tokenizer.") for override in overrides):
        raise BadInput(f"--vocabulary {name}: all else is the same for all cells; give tokenizer.KEY=VALUE")
    return Vocabulary(name, overrides)

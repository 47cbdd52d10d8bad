"""The variants of an ablation: vocabulary x text x seed. Each is a run folder that the ordinary stages fill.

```
out/text/                    the planted text and its values (``canaries``)
out/corpora/TEXT/            stage corpus: plain, pseudonymized, and the two held-out texts
out/vocabularies/NAME-TEXT/  stages tokenizer and tokens, with a link to that corpus
out/models/NAME-TEXT-seed-N/ stages pretrain, model, finetune, with links to all that; measured.json
```
A killed command is finished by running it again. Several commands may share ``out``: each skips the variants that
another one works on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ablations.canaries import PLANTED_NAME, SEEN_NAME
from benchmarks.pretrain import TrainingData
from benchmarks.speedrun.budget import MIN_STEPS, Cost
from corpus.documents.errors import BadInput
from launch.conduct import run_stage
from launch.pipeline import STAGES
from launch.recipe import OWN_MODEL, Recipe, load_recipe
from pretrain.config import PretrainConfig

PLAIN, PSEUDONYMIZED = TEXTS = ("plain", "pseudonymized")
SEEN, UNSEEN = "seen", "unseen"  # held-out documents of the training sources, and documents of other sources
# in the order of the tables; the others are compared with the first
VOCABULARIES = {
    "bpe": ("tokenizer.builder=bpe",),
    "klue": ("tokenizer.builder=klue",),
    "malmoi": ("tokenizer.builder=malmoi",),
    "malmoi-2x": ("tokenizer.builder=malmoi",),  # twice the entries
}
DOUBLED = "malmoi-2x"
STAGE = {stage.name: stage for stage in STAGES}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Name and overrides of the recipe."""

    name: str
    overrides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """One model; ``name`` is also the name of its folder."""

    vocabulary: Vocabulary
    text: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.vocabulary.name}-{self.text}-seed-{self.seed}"


@dataclass(frozen=True, slots=True)
class Experiment:
    """What all variants share: recipe and overrides, raw text, KLUE files, the budget, the output folder.

    ``inputs``: training sources under ``SEEN``, sources that are only evaluated under ``UNSEEN``.
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
            LaunchError: an override is invalid. BadInput: the recipe does not train a masked model from scratch.
        """
        recipe = load_recipe(self.recipe, (*self.overrides, *overrides))
        if recipe.pretrain.init_from is not None or recipe.pretrain.model.objective == "causal":
            raise BadInput(
                f"{self.recipe}: the ablation trains masked models from scratch; remove pretrain.init_from and set "
                "pretrain.model.objective=masked"
            )
        corpus = recipe.corpus.model_copy(update={"inputs": list(self.inputs[SEEN])} if self.inputs[SEEN] else {})
        finetune = recipe.finetune.model_copy(update={"data": self.klue} if self.klue else {})
        return recipe.model_copy(update={"corpus": corpus, "finetune": finetune})

    # --- stages

    def corpus(self, text: str) -> Path:
        """Run the corpus stage for a text; returns its folder."""
        recipe, run = self.load(), self.out / "corpora" / text
        name = SEEN_NAME if text == SEEN else PLANTED_NAME
        inputs = list(self.inputs[UNSEEN]) if text == UNSEEN else [str(self.out / "text" / name)]
        pii = recipe.corpus.pii.model_copy(update={"mode": "keep" if text == PLAIN else "replace"})
        limit = recipe.corpus.max_documents_per_file if text == UNSEEN else None  # the other texts are already limited
        changes: dict[str, object] = {"inputs": inputs, "sources": {}, "max_documents_per_file": limit, "pii": pii}
        run_stage(STAGE["corpus"], recipe.model_copy(update={"corpus": recipe.corpus.model_copy(update=changes)}), run)
        return run / "corpus"

    def recipe_of(self, variant: Variant) -> Recipe:
        return self.load(*variant.vocabulary.overrides)

    def vocabulary(self, variant: Variant) -> None:
        """Run the stages tokenizer and tokens of the vocabulary."""
        recipe, run = self.recipe_of(variant), self.folder_of_vocabulary(variant)
        _link(run / "corpus", self.out / "corpora" / variant.text / "corpus")
        for name in ("tokenizer", "tokens"):
            run_stage(STAGE[name], recipe, run)

    def folder_of_vocabulary(self, variant: Variant) -> Path:
        return self.out / "vocabularies" / f"{variant.vocabulary.name}-{variant.text}"

    def folder_of(self, variant: Variant) -> Path:
        return self.out / "models" / variant.name

    def train(self, variant: Variant) -> None:
        """Run the stages pretrain and model; the vocabulary is complete."""
        recipe, made, run = self.recipe_of(variant), self.folder_of_vocabulary(variant), self.folder_of(variant)
        for name in ("corpus", "tokenizer", "tokens"):
            _link(run / name, made / name)
        pretrain = recipe.pretrain.model_copy(update={"seed": variant.seed})
        steps = steps_within(made / "tokens", made / "tokenizer", pretrain, self.operations)
        pretrain = PretrainConfig.model_validate(pretrain.model_dump(mode="json") | {"steps": steps})
        for name in ("pretrain", "model"):
            run_stage(STAGE[name], recipe.model_copy(update={"pretrain": pretrain}), run)

    def finetune(self, variant: Variant, tasks: Sequence[str]) -> None:
        """Fine-tune and score the model on the tasks without a result."""
        recipe = self.recipe_of(variant)
        changes = {"models": (OWN_MODEL,), "seeds": (variant.seed,), "tasks": tuple(tasks)}
        finetune = recipe.finetune.model_copy(update=changes)
        run_stage(STAGE["finetune"], recipe.model_copy(update={"finetune": finetune}), self.folder_of(variant))


def steps_within(tokens: Path, tokenizer: Path, config: PretrainConfig, operations: float) -> int:
    """Number of steps that cost at most ``operations``, by the formula of the MFU; BadInput if there are too few."""
    data = TrainingData.open(tokens, tokenizer, config)
    cost = Cost.of(data.batches(), config, data.network(), stock=False)
    steps = cost.steps_within(config, 0, operations)
    if steps < MIN_STEPS:
        raise BadInput(f"{operations:g} operations allow only {steps} steps of this model; raise --operations")
    return steps


def _link(path: Path, target: Path) -> None:
    """Create a relative link, so that ``out`` can be moved."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_symlink():
        path.symlink_to(Path("..", "..") / target.parent.parent.name / target.parent.name / target.name)


def read_vocabularies(names: Sequence[str], recipe: Recipe) -> list[Vocabulary]:
    """The ``VOCABULARIES`` with these names, all if there are none; ``malmoi-2x`` has twice the recipe's entries.

    Raises:
        BadInput: a duplicate or unknown name.
    """
    doubled = f"tokenizer.vocab_size={2 * recipe.tokenizer.vocab_size}"
    vocabularies = []
    for name in names or VOCABULARIES:
        if name not in VOCABULARIES or names.count(name) > 1:
            raise BadInput(f"--vocabulary {name}: expected different names of {', '.join(VOCABULARIES)}")
        vocabularies.append(Vocabulary(name, (*VOCABULARIES[name], *([doubled] if name == DOUBLED else []))))
    return vocabularies

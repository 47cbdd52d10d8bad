"""The model card: what a reader of a model folder must know about data, training and held-out scores.

Everything in it was measured or set in the run; where a figure is not known yet (a checkpoint before the first
measurement), its section is left out. The names are those of the Hub, so that a pushed folder is found and linked.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corpus.documents.escaping import markdown, visible
from pretrain.config import PretrainConfig
from pretrain.model.init_from import SIZES, longest_input

CARD_NAME = "README.md"
FIGURES = {
    "mlm_loss": "MLM loss",
    "masked_accuracy": "masked accuracy, %",
    "pseudo_perplexity": "pseudo-perplexity",
    "nsp_loss": "NSP loss",
    "nsp_accuracy": "NSP accuracy, %",
}


def model_card(network: Any, config: PretrainConfig, facts: Mapping[str, Any]) -> str:
    """README.md of a model folder, in Markdown with the Hub's metadata in front.

    Args:
        network: configuration of the Hugging Face model; it knows the sizes, also of a model gone on from.
        facts: ``step``, ``tokens`` (seen), ``parameters``, ``vocabulary_sha256``; where known also ``epochs``,
            ``sources`` (tokens of the store by source) and ``held_out`` (of ``watch.held_out.measure``, ``baselines``).
    """
    family = {"bert": "BERT", "roberta": "RoBERTa"}[config.model.architecture]
    parts = [
        _front(config),
        f"# {family}, {facts['parameters']:,} parameters\n\n{_about(family, config)}",
        _table(("setting", "value"), _settings(network, config, facts)),
        _data(facts.get("sources")),
        _held_out(facts.get("held_out")),
        LOADING,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


LOADING = """## Use

```python
from transformers import pipeline

fill = pipeline("fill-mask", "path/to/this/folder")
print(fill(f"대한민국의 수도는 {fill.tokenizer.mask_token}이다."))
```
`AutoModel`, `AutoModelForMaskedLM` and `AutoTokenizer` load the folder as well. The model repeats what its corpus says,
mistakes and prejudices included."""


def _front(config: PretrainConfig) -> str:
    lines = ["---", "language: ko", "library_name: transformers", "pipeline_tag: fill-mask"]
    if config.init_from is not None and not _is_folder(config.init_from):
        lines.append(f"base_model: {config.init_from}")
    return "\n".join([*lines, "tags: [malmoi, korean]", "---"])


def _about(family: str, config: PretrainConfig) -> str:
    objectives = "masked language modelling with whole-word masking"
    if config.model.nsp:
        objectives += " and next sentence prediction"
    began = ""
    if config.init_from is not None:  # where a folder lay is nobody's business
        name = Path(config.init_from).name if _is_folder(config.init_from) else config.init_from
        began = f", going on from `{visible(name).replace('`', chr(39))}`"
    return f"A Korean {family} pretrained with malmoi{began}: {objectives}."


def _is_folder(init_from: str) -> bool:
    """Otherwise it is a Hub id; see ``init_from_folder``."""
    return Path(init_from).expanduser().is_dir()


def _settings(network: Any, config: PretrainConfig, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows, optimizer, masking = config.rows, config.optimizer, config.rows.masking
    sizes = " x ".join(str(getattr(network, SIZES[name])) for name in ("layers", "hidden", "heads"))
    epochs = f" ({facts['epochs']:g} epochs)" if "epochs" in facts else ""
    short = f", {rows.short_length} in the first {rows.short_length_share:.0%}" if rows.short_length else ""
    return [
        ("layers x hidden x heads", sizes),
        ("longest input, tokens", f"{longest_input(network)}"),
        ("pieces in the vocabulary", f"{network.vocab_size:,}, sha256 `{facts['vocabulary_sha256']:.16}`"),
        ("masks", f"{masking.share:.0%} of the tokens, whole {masking.unit}s, {masking.mode}"),
        ("training rows, tokens", f"{rows.sequence_length}{short}; {rows.packing}"),
        ("steps x sequences", f"{facts['step']:,} of {config.steps:,} x {config.global_batch:,}"),
        ("tokens seen", f"{facts['tokens']:,}{epochs}"),
        ("peak learning rate, warm-up", f"{optimizer.lr}, {optimizer.warmup_share:.1%} of the steps"),
        ("AdamW betas, epsilon, weight decay", f"{optimizer.betas}, {optimizer.epsilon}, {optimizer.weight_decay}"),
        ("largest gradient norm", f"{optimizer.clip or 'no limit'}"),
        ("dropout, precision, seed", f"{config.model.dropout}, {config.engine.precision}, {config.seed}"),
    ]


def _data(sources: Mapping[str, int] | None) -> str:
    if not sources:
        return ""
    rows = [(markdown(name), f"{tokens:,}") for name, tokens in sources.items()]
    return "## Data\n\n" + _table(("source", "tokens"), [*rows, ("all", f"{sum(sources.values()):,}")])


def _held_out(found: Mapping[str, Any] | None) -> str:
    if not found:
        return ""
    figures = [name for name in FIGURES if name in found]
    by_source = found.get("sources", {})
    rows = [(markdown(name), *_figures(scores, figures)) for name, scores in {**by_source, "all": found}.items()]
    text = "## Held-out text\n\nOf the same corpus, never trained on.\n\n"
    text += _table(("source", "rows", *(FIGURES[name] for name in figures)), rows)
    if guessed := found.get("baselines"):
        named = {name.removesuffix("_accuracy").replace("_", " "): value for name, value in guessed.items()}
        shown = ", ".join(f"{name} {100 * value:.1f} %" for name, value in named.items())
        text += f"\n\nMasked accuracy of guessing from counts alone: {shown}."
    return text


def _figures(scores: Mapping[str, Any], names: list[str]) -> list[str]:
    shown = [f"{scores['rows']:,}"]
    for name in names:
        value, share = scores.get(name), name.endswith("accuracy")
        shown.append("" if value is None else f"{100 * value:.2f}" if share else f"{value:,.4g}")
    return shown


def _table(heads: tuple[str, ...], rows: list[Any]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)

"""The model card of a model folder: data, training and held-out scores, with the Hub's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corpus.documents.escaping import escape_controls, escape_markdown
from corpus.documents.templates import load_templates
from pretrain.config import DECAY_SHARE, PretrainConfig
from pretrain.engine.optimizer import EPSILON
from pretrain.model.families import FAMILIES, SIZES, longest_input
from pretrain.schedule import phases

CARD_NAME = "README.md"
FIGURES = {
    "mlm_loss": "MLM loss",
    "masked_accuracy": "masked accuracy, %",
    "causal_loss": "next-token loss",
    "causal_accuracy": "next-token accuracy, %",
    "perplexity": "perplexity",
    "nsp_loss": "NSP loss",
    "nsp_accuracy": "NSP accuracy, %",
}
OBJECTIVES = {
    "masked": "masked language modelling with whole-word masking",
    "causal": "causal language modelling",
}


def model_card(network: Any, config: PretrainConfig, facts: Mapping[str, Any]) -> str:
    """README.md of a model folder, in Markdown with the Hub's metadata at the top.

    Args:
        network: configuration of the Hugging Face model, with its sizes.
        facts: ``step``, ``tokens`` (trained on), ``parameters``, ``vocabulary_sha256``; if known also ``epochs``,
            ``sources`` (tokens of the store by source), ``held_out`` (from ``held_out.measure``, and ``baselines``) and
            ``in_jamo``, whether the tokenizer decomposes syllables.
    """
    start, sources, scores = config.init_from or "", facts.get("sources") or {}, facts.get("held_out") or {}
    family = FAMILIES[config.model.architecture]
    is_folder = Path(start).expanduser().is_dir()  # else a Hub id; local paths do not belong on a card
    figures = [name for name in FIGURES if name in scores]
    by_source = {**scores.get("sources", {}), "all": scores} if scores else {}
    guesses = scores.get("baselines") or {}
    template = load_templates("pretrain.checkpoint").get_template("card.md.j2")
    return template.render(
        family=family.title,
        model=config.model,
        objective=OBJECTIVES[config.model.objective],
        generates=config.is_causal,
        facts={"sources": sources, "parameters": facts["parameters"], "in_jamo": facts.get("in_jamo", False)},
        hub_id="" if is_folder else start,
        start=escape_controls(Path(start).name if is_folder else start).replace("`", "'"),
        settings=_settings(network, config, facts),
        sources=[(escape_markdown(name), f"{n:,}") for name, n in [*sources.items(), ("all", sum(sources.values()))]],
        figures=[FIGURES[name] for name in figures],
        held_out=[(escape_markdown(name), *_row(values, figures)) for name, values in by_source.items()],
        guesses=[f"{n.removesuffix('_accuracy').replace('_', ' ')} {100 * v:.1f} %" for n, v in guesses.items()],
    )


def _settings(network: Any, config: PretrainConfig, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows, optimizer, masking = config.rows, config.optimizer, config.rows.masking
    sizes = " x ".join(str(getattr(network, SIZES[name])) for name in ("layers", "hidden", "heads"))
    epochs = f" ({facts['epochs']:g} epochs)" if "epochs" in facts else ""
    parts = phases(config)
    by_phase = [(f"steps {part.after + 1:,} to {part.last:,}", escape_markdown(str(part))) for part in parts]
    masks = f"{masking.share:.0%} of the tokens, whole {masking.unit}s, {masking.mode}"
    by_source = ", ".join(f"{escape_markdown(name)} {n:g}" for name, n in (facts.get("source_epochs") or {}).items())
    warmup = f"{optimizer.warmup_share:.1%} of the" if optimizer.warmup_steps is None else f"{optimizer.warmup_steps:,}"
    decay = f", {optimizer.schedule}" + (f", {DECAY_SHARE:.0%} of them" if optimizer.schedule == "wsd" else "")
    origin = facts.get("continued_from")
    branch = (
        f"step {origin['step']:,} of {origin['steps']:,}, sha256 `{origin['weights_sha256']:.16}`" if origin else ""
    )
    return [
        *([("branch of another run", branch)] if origin else []),
        ("layers x hidden x heads", sizes),
        ("longest input, tokens", f"{longest_input(network)}"),
        ("pieces in the vocabulary", f"{network.vocab_size:,}, sha256 `{facts['vocabulary_sha256']:.16}`"),
        *([] if config.is_causal else [("masks", masks)]),
        ("training rows, tokens", f"{rows.sequence_length}; {rows.packing}"),
        ("steps x sequences", f"{facts['step']:,} of {config.steps:,} x {config.global_batch:,}"),
        *(by_phase if len(parts) > 1 else []),
        ("tokens seen", f"{facts['tokens']:,}{epochs}"),
        *([("epochs of each source", by_source)] if by_source else []),
        ("peak learning rate, warm-up, decay", f"{optimizer.lr}, {warmup} steps{decay}"),
        ("AdamW betas, epsilon, weight decay", f"{optimizer.betas}, {EPSILON}, {optimizer.weight_decay}"),
        ("largest gradient norm", f"{optimizer.clip or 'no limit'}"),
        ("dropout, precision, seed", f"{config.model.dropout}, {config.engine.precision}, {config.seed}"),
    ]


def _row(scores: Mapping[str, Any], names: list[str]) -> list[str]:
    cells = [f"{scores['rows']:,}"]
    for name in names:
        value, share = scores.get(name), name.endswith("accuracy")
        cells.append("" if value is None else f"{100 * value:.2f}" if share else f"{value:,.4g}")
    return cells

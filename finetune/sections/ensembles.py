"""What a recipe says of ensembles: whose results are averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from corpus.documents.section import Section


class Ensemble(Section):
    """Results that are averaged for each seed, and over all seeds; it needs two."""

    models: tuple[str, ...] = Field((), description="Of finetune.models. Default: all.")
    settings: tuple[str, ...] | None = Field(
        None,
        description="Names of finetune.settings whose results are averaged with each other, '' the recipe's own. "
        "Default: one ensemble for each settings.",
    )


def check_ensembles(
    ensembles: Mapping[str, Ensemble], models: Sequence[str], settings: Sequence[str], seeds: Sequence[int]
) -> None:
    """``ValueError`` for one with members that the recipe does not train, or with one alone."""
    for name, ensemble in ensembles.items():
        for key, there in (("models", models), ("settings", ("", *settings))):
            if odd := {*(getattr(ensemble, key) or ())} - {*there}:
                raise ValueError(f"ensembles.{name}: finetune.{key} has no {min(odd)!r}")
        columns = len(ensemble.models or models) * len(ensemble.settings or "1")
        if columns * len(seeds) < 2:
            raise ValueError(f"ensembles.{name}: one result is no ensemble; give it two models or seeds")

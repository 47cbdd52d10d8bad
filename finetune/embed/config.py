"""Recipe section ``embed``: sentence embeddings from an encoder, for similarity or for search.

The two purposes need different data: graded similarity lowers retrieval, so one model does not serve both. Learning
rate and batch are those of published Korean models at the size of klue/roberta-base; small encoders need a higher rate.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from corpus.documents.accelerator import DeviceName
from corpus.documents.section import Section

Purpose = Literal["similarity", "search"]
PoolingName = Literal["mean", "cls"]


class EmbedConfig(Section):
    """Data, training and evaluation of sentence embeddings. KLUE files come from ``finetune.data``."""

    __annotations__["for"] = Purpose  # a word of Python, so it cannot be written as the other keys
    locals()["for"] = Field(
        "similarity",
        description="similarity: of two sentences. search: passages for a question. They train on different data.",
    )
    model: str = Field(
        "model", description='Encoder to train. "model" is the model of this run; or a folder or a Hub name.'
    )
    train: tuple[str, ...] = Field(
        (),
        description="Files (CSV, TSV, JSON lines, JSON) of pairs, triplets or graded pairs, by their columns: "
        "anchor, positive, negative; query, passage; question, context; title, text; sentence1, sentence2, score.",
    )
    evaluate: tuple[str, ...] = Field(
        (),
        description="Files to score on: sentence1, sentence2, score; or query, passage, label (1: answers the query).",
    )
    max_pairs: int = Field(
        6_400, ge=0, description="Pairs drawn from the documents, and the most of each file without grades."
    )
    pooling: PoolingName = Field("mean", description="Vector of a text: mean over its tokens, or the state of [CLS].")
    max_tokens: int = Field(128, ge=8, description="Longer texts are cut.")
    prompts: dict[Literal["query", "passage"], str] = Field(
        {}, description='search: what is put before a text, as {query: "질문: ", passage: "글: "}.'
    )
    dimensions: tuple[Annotated[int, Field(ge=8)], ...] = Field(
        (), description="Widths at which the first numbers of a vector must do alone, too (Matryoshka)."
    )
    negatives_by: str | None = Field(
        None, description="search: a trained embedding model that finds hard negatives, in addition to those of BM25."
    )
    reranker: str | None = Field(
        None, description="search: a model of kind choice that reads the best passages of BM25 again, for the results."
    )
    batch_size: int = Field(64, ge=2, description="Pairs of a step; the others are negatives of each.")
    micro_batch: int | None = Field(
        None, gt=0, description="Texts that are encoded at once, if a batch does not fit into memory (cached losses)."
    )
    epochs: int = Field(2, gt=0, description="Passes over pairs and triplets.")
    graded_epochs: int = Field(4, ge=0, description="Passes over graded pairs, after the others.")
    lr: float = Field(5e-5, gt=0, description="Highest learning rate; a small encoder needs about 3e-4.")
    seeds: tuple[int, ...] = Field((1,), min_length=1, description="Random seeds, one training each.")
    distractors: int = Field(
        20_000, ge=0, description="search: passages of the documents among which to find, as long as those of KLUE-MRC."
    )
    device: DeviceName = Field("auto", description="cpu: use the CPU even if there is an accelerator.")

    @model_validator(mode="after")
    def _are_for_search(self) -> EmbedConfig:
        if self.purpose == "similarity" and (self.prompts or self.negatives_by or self.reranker):
            raise ValueError("prompts, negatives_by and reranker are for search; set embed.for=search, or remove them")
        return self

    @property
    def purpose(self) -> Purpose:
        """The value of ``for``."""
        chosen: Purpose = getattr(self, "for")
        return chosen

"""Settings of the pack and pretrain stages; defaults are KLUE-RoBERTa-base (paper section 4.1 and Table 31).

What the paper leaves open is taken from RoBERTa (arXiv 1907.11692, Table 9): "hyperparameters not named are those of
BERT and RoBERTa". Each such field names its source.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, model_validator


class BadInput(ValueError):
    """What the user gave cannot be used; the message says what, where, what was expected and what to do."""


class PackConfig(BaseModel, frozen=True, extra="forbid"):
    """Nothing to choose yet: the token store follows from the corpus and the tokenizer alone."""


class MaskingConfig(BaseModel, frozen=True, extra="forbid"):
    """Whole-word masking (paper section 4.1; shares from BERT, arXiv 1810.04805, section 3.1)."""

    share: float = Field(0.15, gt=0, lt=1, description="Share of a sequence's tokens to predict (BERT 3.1).")
    mask_share: float = Field(0.8, ge=0, le=1, description="Share of the chosen shown as [MASK] (BERT 3.1).")
    random_share: float = Field(
        0.1, ge=0, le=1, description="Share of the chosen shown as a random piece; the rest stays (BERT 3.1)."
    )
    mode: Literal["dynamic", "static"] = Field(
        "dynamic", description="dynamic: new masks every epoch (RoBERTa); static: they repeat (BERT) (Table 31)."
    )
    duplicates: int = Field(
        10, gt=0, description="Static: epochs until masks and sentence pairs repeat (BERT code, dupe_factor)."
    )

    @model_validator(mode="after")
    def _shares_fit(self) -> MaskingConfig:
        if self.mask_share + self.random_share > 1:
            raise ValueError("mask_share + random_share must be at most 1")
        return self


class PretrainConfig(BaseModel, frozen=True, extra="forbid"):
    """Model, objective and training (paper Table 31, KLUE-RoBERTa-base)."""

    architecture: Literal["bert", "roberta"] = Field("roberta", description="Model family (paper Table 31).")
    layers: int = Field(12, gt=0, description="Transformer layers (base size, paper Table 31).")
    hidden: int = Field(768, gt=0, description="Width of the hidden states (base size, paper Table 31).")
    heads: int = Field(12, gt=0, description="Attention heads; divides hidden (base size, paper Table 31).")
    intermediate: int = Field(3072, gt=0, description="Width of the feed-forward layers (base size).")
    dropout: float = Field(0.1, ge=0, lt=1, description="Hidden and attention dropout (RoBERTa Table 9).")
    positions: int = Field(512, ge=8, description="Longest input of the finished model, tokens (section 4.1).")
    sequence_length: int = Field(512, ge=8, description="Tokens per training sequence (section 4.1).")
    masking: MaskingConfig = Field(default_factory=MaskingConfig, description="Whole-word masking (section 4.1).")
    nsp: bool = Field(False, description="Add next sentence prediction on sentence pairs; BERT only (Table 31).")
    short_share: float = Field(
        0.1, ge=0, le=1, description="Share of sentence pairs drawn shorter (BERT code, short_seq_prob)."
    )
    steps: int = Field(1_000_000, gt=0, description="Optimizer steps (Table 31).")
    global_batch: int = Field(2048, gt=0, description="Sequences per step, over all devices (Table 31).")
    micro_batch: int = Field(
        32, gt=0, description="At most this many sequences at once on one device; accumulation does the rest."
    )
    lr: float = Field(1e-4, gt=0, description="Peak learning rate (Table 31).")
    warmup_share: float = Field(
        0.024, ge=0, lt=1, description="Share of the steps with rising rate: 24,000 (RoBERTa Table 9)."
    )
    weight_decay: float = Field(0.01, ge=0, description="Not on biases and LayerNorm (RoBERTa Table 9).")
    betas: tuple[float, float] = Field((0.9, 0.98), description="Adam's averages (RoBERTa Table 9).")
    epsilon: float = Field(1e-6, gt=0, description="Adam's epsilon (RoBERTa Table 9).")
    clip: float = Field(0.0, ge=0, description="Largest gradient norm, 0 for no limit (RoBERTa Table 9).")
    precision: Literal["fp32", "bf16", "fp16"] = Field("bf16", description="Arithmetic; fp32 on CPU.")
    zero_stage: int = Field(1, ge=0, le=3, description="DeepSpeed ZeRO: what is sharded over the devices.")
    held_out_share: float = Field(
        0.001, gt=0, lt=1, description="Share of the sequences (NSP: documents) kept for the final measurement."
    )
    checkpoint_every: int = Field(10_000, gt=0, description="Steps between checkpoints.")
    keep_checkpoints: int = Field(2, gt=0, description="Newest checkpoints that stay on disk.")
    log_every: int = Field(100, gt=0, description="Steps between lines of the log and of metrics.jsonl.")
    seed: int = Field(1, ge=0, description="Source of all randomness.")

    @model_validator(mode="after")
    def _settings_agree(self) -> PretrainConfig:
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} must be a multiple of heads {self.heads}")
        if self.sequence_length > self.positions:
            raise ValueError(f"sequence_length {self.sequence_length} exceeds positions {self.positions}")
        if self.nsp and self.architecture != "bert":
            raise ValueError("nsp needs architecture bert: RoBERTa has no sentence-pair head")
        if self.precision == "bf16" and self.zero_stage == 0:
            raise ValueError("precision bf16 needs zero_stage 1 or more: stage 0 keeps no exact copy of the weights")
        return self

"""Settings of the pack and pretrain stages; defaults are KLUE-RoBERTa-base (paper section 4.1 and Table 31).

What the paper leaves open is taken from RoBERTa (arXiv 1907.11692, Table 9): "hyperparameters not named are those of
BERT and RoBERTa". Each such field names its source.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

# May change between a run's start and its end: they move work between devices, but change nothing but rounding
MACHINE_KEYS = (
    "micro_batch", "engine", "zero_stage", "activation_checkpointing", "compile", "keep_checkpoints", "log_every",
    "trackers", "peak_tflops",
)  # fmt: skip


class PackConfig(BaseModel, frozen=True, extra="forbid"):
    """The token store follows from the corpus and the tokenizer; there is little to choose."""

    morphemes: bool = Field(
        False, description="Also store where mecab-ko's morphemes begin, for pretrain.masking.unit=morpheme."
    )


class MaskingConfig(BaseModel, frozen=True, extra="forbid"):
    """Whole-word masking (paper section 4.1; shares from BERT, arXiv 1810.04805, section 3.1)."""

    share: float = Field(0.15, gt=0, lt=1, description="Share of a sequence's tokens to predict (BERT 3.1).")
    mask_share: float = Field(0.8, ge=0, le=1, description="Share of the chosen shown as [MASK] (BERT 3.1).")
    random_share: float = Field(
        0.1, ge=0, le=1, description="Share of the chosen shown as a random piece; the rest stays (BERT 3.1)."
    )
    unit: Literal["word", "eojeol", "morpheme"] = Field(
        "word",
        description="What is masked whole: a piece and its ## pieces (KLUE 4.1, BERT's code), all between two blanks, "
        "or a morpheme of mecab-ko.",
    )
    mode: Literal["dynamic", "static"] = Field(
        "dynamic", description="dynamic: new masks every epoch (RoBERTa); static: they repeat (BERT) (Table 31)."
    )
    duplicates: int = Field(
        10, gt=0, description="Epochs until sentence pairs, and static masks, repeat (BERT code, dupe_factor)."
    )

    @model_validator(mode="after")
    def _shares_fit(self) -> MaskingConfig:
        if self.mask_share + self.random_share > 1:
            raise ValueError("mask_share + random_share must be at most 1")
        return self


class PretrainConfig(BaseModel, frozen=True, extra="forbid"):
    """Model, objective and training (paper Table 31, KLUE-RoBERTa-base)."""

    architecture: Literal["bert", "roberta"] = Field("roberta", description="Model family (paper Table 31).")
    init_from: str | None = Field(
        None, description="Go on from this Hugging Face BERT or RoBERTa (folder or Hub id), with its own tokenizer."
    )
    layers: int = Field(12, gt=0, description="Transformer layers (base size, paper Table 31).")
    hidden: int = Field(768, gt=0, description="Width of the hidden states (base size, paper Table 31).")
    heads: int = Field(12, gt=0, description="Attention heads; divides hidden (base size, paper Table 31).")
    intermediate: int = Field(3072, gt=0, description="Width of the feed-forward layers (base size).")
    dropout: float = Field(0.1, ge=0, lt=1, description="Hidden and attention dropout (RoBERTa Table 9).")
    positions: int = Field(512, ge=8, description="Longest input of the finished model, tokens (section 4.1).")
    position_start: Literal["normal", "sinusoidal"] = Field(
        "normal",
        description="First values of the learned positions: normal as in BERT, or sinusoids (arXiv 1706.03762), which "
        "tell neighbours apart at once, so that small models learn from context much sooner.",
    )
    sequence_length: int = Field(512, ge=8, description="Tokens per training sequence (section 4.1).")
    packing: Literal["blocks", "documents"] = Field(
        "blocks",
        description="blocks: full rows across documents (RoBERTa 4.2), pairs padded; documents: several documents (or "
        "pairs) a row, none of which sees another, without attention dropout.",
    )
    short_length: int | None = Field(
        None, ge=8, description="Tokens per sequence of the first steps, 128 in the original BERT; None: all alike."
    )
    short_length_share: float = Field(
        0.9, gt=0, lt=1, description="Share of the steps with sequences of short_length (BERT's README)."
    )
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
    precision: Literal["fp32", "bf16", "fp16"] = Field(
        "bf16", description="Arithmetic of the model; weights are kept in fp32 beside it."
    )
    engine: Literal["auto", "plain", "deepspeed"] = Field(
        "auto", description="auto: torch alone for one process, DeepSpeed for more and for fp16."
    )
    zero_stage: int = Field(1, ge=0, le=3, description="DeepSpeed ZeRO: what is sharded over the devices.")
    activation_checkpointing: bool = Field(False, description="Compute activations again instead of keeping them.")
    compile: bool = Field(False, description="Fuse operations with torch.compile; needs a C++ compiler or a GPU.")
    held_out_share: float = Field(
        0.001, gt=0, lt=1, description="Share of the blocks (pairs, documents: of the documents) never trained on."
    )
    measure_every: int = Field(10_000, gt=0, description="Steps between measurements on held-out rows.")
    measure_rows: int = Field(2048, gt=0, description="At most this many held-out rows are measured.")
    checkpoint_every: int = Field(10_000, gt=0, description="Steps between checkpoints.")
    keep_checkpoints: int = Field(2, gt=0, description="Newest checkpoints that stay on disk, beside the best.")
    average_last: int = Field(
        1, gt=0, description="Checkpoints whose mean weights become the model; 1: the last one alone."
    )
    log_every: int = Field(100, gt=0, description="Steps between lines of the log and of metrics.jsonl.")
    trackers: tuple[Literal["tensorboard", "wandb"], ...] = Field(
        (), description="Who else gets the lines of metrics.jsonl."
    )
    peak_tflops: float | None = Field(
        None, gt=0, description="Dense peak of one device, for the MFU; None: from the table of known GPUs."
    )
    seed: int = Field(1, ge=0, description="Source of all randomness.")

    @model_validator(mode="after")
    def _settings_agree(self) -> PretrainConfig:
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} must be a multiple of heads {self.heads}")
        if self.sequence_length > self.positions and self.init_from is None:  # a checkpoint has its own positions
            raise ValueError(f"sequence_length {self.sequence_length} exceeds positions {self.positions}")
        if self.short_length is not None and self.short_length >= self.sequence_length:
            raise ValueError(f"short_length {self.short_length} must be below sequence_length {self.sequence_length}")
        if self.average_last > self.keep_checkpoints:
            raise ValueError(f"average_last {self.average_last} exceeds keep_checkpoints {self.keep_checkpoints}")
        if self.nsp and self.architecture != "bert":
            raise ValueError("nsp needs architecture bert: RoBERTa has no sentence-pair head")
        if self.precision == "fp16" and self.engine == "plain":
            raise ValueError("precision fp16 needs engine deepspeed, which scales the loss; or choose bf16")
        if self.precision != "fp32" and self.zero_stage == 0 and self.engine != "plain":
            raise ValueError(f"precision {self.precision} needs zero_stage 1 or more: stage 0 keeps no exact weights")
        return self

    def identity(self) -> dict[str, Any]:
        """The settings that decide the result, as JSON: all but those of the machine and of watching."""
        return self.model_dump(mode="json", exclude=set(MACHINE_KEYS))

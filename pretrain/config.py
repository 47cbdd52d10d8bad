"""Settings of the pack and pretrain stages; the defaults are KLUE-RoBERTa-base (paper section 4.1 and Table 31).

The paper takes hyperparameters that it does not name from BERT and RoBERTa (arXiv 1907.11692, Table 9). Each such field
names its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from corpus.documents.accelerator import DeviceName, PrecisionName
from corpus.documents.section import Section

DECAY_SHARE = 0.2  # last share of the steps, over which wsd decays (Hägele et al. 2024)


class PackConfig(Section):
    """The token store; it follows from the corpus and the tokenizer."""

    removed: ClassVar[Mapping[str, str]] = {"morphemes": "words or eojeols are masked (pretrain.rows.masking.unit)"}


Weight = Annotated[float, Field(ge=0)]
Sources = dict[str, Weight] | Annotated[float, Field(gt=0, le=1)]
Schedule = Literal["linear", "wsd"]


class MaskingConfig(Section):
    """Whole-word masking (paper section 4.1; shares from BERT, arXiv 1810.04805, section 3.1)."""

    removed: ClassVar[Mapping[str, str]] = {
        "mask_share": "80 % of the chosen pieces become [MASK], as in BERT",
        "random_share": "10 % of the chosen pieces become a random piece, as in BERT",
        "duplicates": "pairs and static masks repeat after 10 epochs (BERT's dupe_factor)",
        "length_bias": "words are chosen as in BERT's code",
        "rare_power": "all words are chosen with equal weight",
        "shares": "use pretrain.phases, such as [{until: 0.5, masked_share: 0.3}, {}]",
    }

    # of the chosen pieces, shown as [MASK] and as a random piece; the rest stays (BERT 3.1)
    mask_share: ClassVar[float] = 0.8
    random_share: ClassVar[float] = 0.1

    share: float = Field(0.15, gt=0, lt=1, description="Share of the tokens of a row that are predicted (BERT 3.1).")
    unit: Literal["word", "eojeol"] = Field(
        "word",
        description="Unit that is masked as a whole. word: a piece and its ## pieces (KLUE 4.1, BERT's code). eojeol: "
        "all pieces between two spaces, for vocabularies without ## pieces.",
    )
    mode: Literal["dynamic", "static"] = Field(
        "dynamic", description="dynamic: new masks in every epoch (RoBERTa). static: masks repeat (BERT) (Table 31)."
    )


class ModelConfig(Section):
    """The network; the defaults are the base size of paper Table 31."""

    renamed: ClassVar[Mapping[str, str]] = {
        "position_start": "position_init", "embedding_start": "embedding_init", "attention_start": "attention_init",
    }  # fmt: skip
    renamed_values: ClassVar[Mapping[str, Mapping[str, str]]] = {"attention_init": {"counted": "from_counts"}}
    removed: ClassVar[Mapping[str, str]] = {
        "causal_share": "the hybrid objective was removed; choose objective masked or causal",
        "global_every": "every third layer of ModernBERT is global, as published",
        "local_window": "local layers of ModernBERT see 128 tokens, as published",
        "rope_theta": "the base of ModernBERT's global layers is 160,000, as published; pretrain.phases may differ",
    }

    architecture: Literal["bert", "roberta", "modernbert", "gpt"] = Field(
        "roberta", description="Model family (paper Table 31). gpt: GPT-2, the causal counterpart at equal sizes."
    )
    layers: int = Field(12, gt=0, description="Number of Transformer layers (base size, paper Table 31).")
    hidden: int = Field(768, gt=0, description="Width of the hidden states (base size, paper Table 31).")
    heads: int = Field(12, gt=0, description="Number of attention heads; must divide hidden (base size, Table 31).")
    intermediate: int = Field(3072, gt=0, description="Width of the feed-forward layers (base size).")
    dropout: float = Field(0.1, ge=0, lt=1, description="Hidden and attention dropout (RoBERTa Table 9).")
    positions: int = Field(512, ge=8, description="Longest input of the finished model, in tokens (section 4.1).")
    position_init: Literal["normal", "sinusoidal"] = Field(
        "normal",
        description="Initialization of learned positions. normal: random, as in BERT. sinusoidal: sines and cosines "
        "(arXiv 1706.03762), with which small models learn from context sooner.",
    )
    nsp: bool = Field(False, description="Add next sentence prediction on sentence pairs; BERT only (Table 31).")
    output_bias: Literal["zero", "frequency"] = Field(
        "zero",
        description="Initialization of the bias of the vocabulary head. frequency: log frequencies of the pieces.",
    )
    embedding_init: Literal["normal", "cooccurrence"] = Field(
        "normal",
        description="Initialization of the token embeddings. normal: random. cooccurrence: SVD of the mutual "
        "information of neighboring tokens.",
    )
    attention_init: Literal["normal", "from_counts"] = Field(
        "normal",
        description="Initialization of the attention layers. from_counts: the first two layers of ModernBERT predict "
        "a token from the counted tokens around it.",
    )
    objective: Literal["masked", "causal"] = Field(
        "masked",
        description="masked: predict masked words from both sides (section 4.1). causal (the default of gpt): predict "
        "each token from the tokens before it.",
    )

    @model_validator(mode="before")
    @classmethod
    def _gpt_is_causal(cls, values: Any) -> Any:
        is_gpt = isinstance(values, Mapping) and values.get("architecture") == "gpt"
        return {"objective": "causal", **values} if is_gpt else values

    @model_validator(mode="after")
    def _settings_agree(self) -> ModelConfig:
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} must be a multiple of heads {self.heads}")
        if self.nsp and self.architecture != "bert":
            raise ValueError("nsp needs architecture bert: no other has a sentence-pair head")
        if self.nsp and self.objective != "masked":
            raise ValueError("nsp needs objective masked: causal rows hold no sentence pairs")
        if self.architecture == "gpt" and self.objective == "masked":
            raise ValueError("gpt reads from left to right; choose objective causal, or an encoder for masked")
        can_count = self.architecture == "modernbert" and self.layers > 1 and self.embedding_init == "cooccurrence"
        if self.attention_init == "from_counts" and not can_count:
            raise ValueError("attention_init from_counts needs modernbert, layers > 1 and embedding_init cooccurrence")
        if self.architecture == "modernbert":
            if self.objective != "masked":
                raise ValueError(f"objective {self.objective} needs architecture roberta, bert or gpt")
            if self.position_init != "normal":
                raise ValueError("position_init is for learned positions; modernbert has rotary positions")
            if self.hidden // self.heads % 2:
                raise ValueError(
                    f"hidden {self.hidden} / heads {self.heads} must be even: rotary positions rotate pairs"
                )
        return self


class RowsConfig(Section):
    """The contents of a training row, and the held-out share."""

    removed: ClassVar[Mapping[str, str]] = {
        "short_share": "10 % of the pairs are shorter, as in BERT's code (short_seq_prob)",
        "nsp_balance": "sentence pairs follow BERT's code",
        "short_length": "use pretrain.phases, such as [{until: 0.9, sequence_length: 128}, {}]",
        "short_length_share": "use pretrain.phases, such as [{until: 0.9, sequence_length: 128}, {}]",
    }

    sequence_length: int = Field(512, ge=8, description="Tokens per training sequence (section 4.1).")
    packing: Literal["blocks", "documents"] = Field(
        "blocks",
        description="blocks: full rows that cross document borders (RoBERTa 4.2); sentence pairs are padded. "
        "documents: several documents (or pairs) per row that cannot attend to each other; no attention dropout.",
    )
    sources: Sources | None = Field(
        None,
        description="Weights of the sources of the corpus, for example {kowiki: 2.0, law: 0.3, other: 1.0}. A weight "
        "multiplies the natural share of a source; other: all sources not named (default 1), 0: leave out. A number, "
        "for example 0.7, is the power of the natural shares (alpha of XLM-R): small sources are seen more often.",
    )
    held_out_share: float = Field(
        0.001, gt=0, lt=1, description="Share of the blocks (or documents) that are held out from training."
    )
    masking: MaskingConfig = Field(default_factory=MaskingConfig, description="Whole-word masking (section 4.1).")


class OptimizerConfig(Section):
    """AdamW and the learning rate schedule."""

    removed: ClassVar[Mapping[str, str]] = {
        "name": "AdamW is the only optimizer",
        "ema": "weights are not averaged in pretraining",
        "epsilon": "Adam's epsilon is 1e-6 (RoBERTa Table 9)",
        "decay_share": "wsd decays over the last 20 % of the steps; for another decay, continue with schedule linear",
    }

    lr: float = Field(1e-4, gt=0, description="Peak learning rate (Table 31).")
    warmup_share: float = Field(
        0.024, ge=0, lt=1, description="Warm-up, as a share of the steps: 24,000 of 1,000,000 (RoBERTa Table 9)."
    )
    weight_decay: float = Field(
        0.01, ge=0, description="Weight decay; biases and LayerNorm have none (RoBERTa Table 9)."
    )
    betas: tuple[float, float] = Field((0.9, 0.98), description="Adam's betas (RoBERTa Table 9).")
    clip: float = Field(0.0, ge=0, description="Largest gradient norm; 0: no clipping (RoBERTa Table 9).")
    schedule: Schedule = Field(
        "linear",
        description="Decay of the learning rate. linear: from the warm-up to the end (BERT, RoBERTa). wsd: constant, "
        "with a decay over the last 20 % of the steps.",
    )
    warmup_steps: int | None = Field(
        None, ge=0, description="Warm-up in steps; replaces warmup_share, so that a longer run has the same warm-up."
    )


class PhaseConfig(Section):
    """A part of the run; settings that are left out are those of the recipe."""

    until: float = Field(1.0, gt=0, le=1, description="End of the phase, as a share of the steps.")
    sequence_length: int | None = Field(
        None, ge=8, description="Tokens per training sequence, at most rows.sequence_length (BERT: 128, then 512)."
    )
    global_batch: int | None = Field(None, gt=0, description="Sequences per step, over all devices.")
    masked_share: float | None = Field(
        None, gt=0, lt=1, description="Share of the tokens that are predicted; held-out rows use rows.masking.share."
    )
    rope_theta: float | None = Field(
        None, gt=1, description="Base of the rotary positions in global layers of ModernBERT. Default: 160,000."
    )
    sources: Sources | None = Field(None, description="Weights of the sources or a power, as rows.sources.")
    lr: float | None = Field(
        None, gt=0, description="Peak of a learning rate schedule of this phase alone. Default: that of the full run."
    )
    warmup_steps: int = Field(0, ge=0, description="With lr: warm-up at the start of the phase, in steps.")
    schedule: Schedule = Field("linear", description="With lr: decay of the learning rate in this phase.")


class EngineConfig(Section):
    """How and where the computation runs. Apart from the precision, only rounding depends on it."""

    removed: ClassVar[Mapping[str, str]] = {
        "offload": "use more devices or zero_stage 3",
        "store_cache": "copy the folder tokens of the run to a local disk before training, and link to it",
    }

    name: Literal["auto", "plain", "ddp", "deepspeed"] = Field(
        "auto",
        description="plain: one process. ddp: several processes with torch. deepspeed: ZeRO stages 0 to 3. auto: plain "
        "for one process, ddp for several up to 400 M parameters, deepspeed above that.",
    )
    precision: PrecisionName = Field(
        "auto",
        description="Precision of matrix products; weights are fp32. auto: bf16 if it is clearly faster, else fp16 "
        "with loss scaling on V100 and T4, else fp32.",
    )
    micro_batch: int | Literal["auto"] = Field(
        "auto",
        description="Largest number of sequences at once on one device; gradients are accumulated. auto: 32 on a CPU; "
        "on an accelerator, found by trial steps before training.",
    )
    zero_stage: int = Field(1, ge=0, le=3, description="Stage of DeepSpeed ZeRO: what is sharded over the devices.")
    compile: bool | Literal["auto"] = Field(
        "auto",
        description="Use torch.compile; needs a C++ compiler or a GPU. auto: on CUDA, if compiling succeeds.",
    )
    device: DeviceName = Field("auto", description="auto: the accelerator, if there is one. cpu: always the CPU.")

    @property
    def max_sequences(self) -> int:
        """``micro_batch`` as a number; 32 for "auto", until a trial on the device replaces it."""
        return 32 if self.micro_batch == "auto" else self.micro_batch

    @model_validator(mode="after")
    def _settings_agree(self) -> EngineConfig:
        if self.max_sequences < 1:
            raise ValueError(f"micro_batch must be auto or greater than 0 (got {self.micro_batch})")
        if self.precision == "fp16" and self.name == "deepspeed" and self.zero_stage == 0:
            raise ValueError("precision fp16 needs zero_stage 1 or more: stage 0 keeps no exact weights")
        return self


class WatchConfig(Section):
    """Log lines, held-out measurements and monitoring."""

    removed: ClassVar[Mapping[str, str]] = {
        "price_per_hour": "multiply the hours of the log by the price",
        "trackers": "metrics.jsonl has all figures; a script of ten lines can send them to TensorBoard or W&B",
    }

    log_every: int = Field(100, gt=0, description="Steps between lines of the log and of metrics.jsonl.")
    measure_every: int = Field(10_000, gt=0, description="Steps between measurements on held-out rows.")
    measure_rows: int = Field(2048, gt=0, description="Largest number of held-out rows that are measured.")
    hang_minutes: float = Field(
        15.0,
        ge=0,
        description="Minutes without progress after which a process counts as hanging and the job ends; 0: never.",
    )


class SavedConfig(Section):
    """Checkpoints."""

    removed: ClassVar[Mapping[str, str]] = {
        "average_last": "the weights of the last step are the model",
        "sharded": "with ZeRO 1 to 3 and several processes, each process writes its own part",
    }

    checkpoint_every: int = Field(10_000, gt=0, description="Steps between checkpoints.")
    keep_checkpoints: int = Field(
        2, gt=0, description="Number of newest checkpoints that are kept; the best one is kept as well."
    )


class PretrainConfig(Section):
    """Pretraining; the defaults are KLUE-RoBERTa-base (paper Table 31)."""

    init_from: str | None = Field(
        None,
        description="Initialize from this Hugging Face model (folder or Hub id) and use its tokenizer and sizes.",
    )
    continue_from: str | None = Field(
        None,
        description="Start from the weights and optimizer of this checkpoint (its folder, or a run: its newest), which "
        "must have the same model and vocabulary. Steps, learning rate and data are those of this recipe.",
    )
    steps: int = Field(1_000_000, gt=0, description="Number of optimizer steps (Table 31).")
    global_batch: int = Field(2048, gt=0, description="Sequences per step, over all devices (Table 31).")
    seed: int = Field(1, ge=0, description="Seed of all random numbers.")
    model: ModelConfig = Field(default_factory=ModelConfig, description="The network.")
    rows: RowsConfig = Field(default_factory=RowsConfig, description="Training rows and held-out rows.")
    optimizer: OptimizerConfig = Field(
        default_factory=OptimizerConfig, description="The optimizer and its learning rate."
    )
    phases: tuple[PhaseConfig, ...] = Field(
        (),
        description="Phases with other settings, in order; weights and optimizer continue from phase to phase. For "
        "example [{until: 0.9, sequence_length: 128}, {}] for short rows at first.",
    )
    engine: EngineConfig = Field(default_factory=EngineConfig, description="How and where the computation runs.")
    watch: WatchConfig = Field(default_factory=WatchConfig, description="Log lines, measurements and monitoring.")
    saved: SavedConfig = Field(default_factory=SavedConfig, description="Checkpoints.")

    @property
    def is_causal(self) -> bool:
        """Whether every token predicts the next one."""
        return self.model.objective == "causal"

    @model_validator(mode="after")
    def _settings_agree(self) -> PretrainConfig:
        length, positions = self.rows.sequence_length, self.model.positions
        if length > positions and self.init_from is None:  # a checkpoint has its own positions
            raise ValueError(f"rows.sequence_length {length} exceeds model.positions {positions}")
        counts = self.model.output_bias != "zero" or self.model.embedding_init != "normal"
        if counts and self.init_from is not None:
            raise ValueError("init_from brings trained weights; leave out model.output_bias and model.embedding_init")
        if self.model.nsp and (self.rows.sources or any(phase.sources for phase in self.phases)):
            raise ValueError("nsp draws sentences from the full corpus; leave out rows.sources")
        optimizer, steps = self.optimizer, self.steps
        share = optimizer.warmup_share if optimizer.warmup_steps is None else optimizer.warmup_steps / steps
        decay = DECAY_SHARE if optimizer.schedule == "wsd" else 0
        if share + decay > 1 or share == 1:
            what = f"{share:.1%} of the steps" + (f" and a decay of {decay:.1%}" if decay else "")
            raise ValueError(f"optimizer: a warm-up of {what} leaves no step for the rest")
        return self

    @model_validator(mode="after")
    def _phases_cover_the_run(self) -> PretrainConfig:
        begin, ends = 0, [phase.until for phase in self.phases]
        if ends and (ends != sorted(set(ends)) or ends[-1] != 1):
            raise ValueError(f"phases: until must rise from phase to phase and be 1 in the last (got {ends})")
        for phase in self.phases:
            length, longest = phase.sequence_length or 0, self.rows.sequence_length
            if length > longest:
                raise ValueError(f"phases: sequence_length {length} exceeds rows.sequence_length {longest}")
            if phase.rope_theta and self.model.architecture != "modernbert":
                raise ValueError("phases: rope_theta needs architecture modernbert, which has rotary positions")
            if phase.lr is None and (phase.warmup_steps or phase.schedule != "linear"):
                raise ValueError("phases: warmup_steps and schedule need lr, the peak of the phase")
            begin, steps = round(self.steps * phase.until), round(self.steps * phase.until) - begin
            if phase.warmup_steps + DECAY_SHARE * steps * (phase.schedule == "wsd") > steps:
                raise ValueError(f"phases: a warm-up of {phase.warmup_steps} of {steps} steps leaves none for the rest")
        return self

    def identity(self) -> dict[str, Any]:
        """The settings that decide the result, as JSON; those of the machine and of monitoring are left out."""
        return self.model_dump(mode="json", exclude=MACHINE_KEYS)

    def replaced(self, section: str, **values: Any) -> PretrainConfig:
        """A copy with other values in one section; they are not checked."""
        return self.model_copy(update={section: getattr(self, section).model_copy(update=values)})


# These may change between the start and the end of a run: of what is trained, only rounding depends on them
MACHINE_KEYS = {
    "engine": {"name", "zero_stage", "micro_batch", "compile", "device"},
    "watch": set(WatchConfig.model_fields),
    "saved": set(SavedConfig.model_fields),
}
MACHINE_PATHS = {f"{section}.{key}" for section, keys in MACHINE_KEYS.items() for key in keys}
# These may change as well if all completed steps stay as they were (``schedule.first_difference``)
SCHEDULE_KEYS = {"steps", "optimizer.schedule", "optimizer.warmup_share", "optimizer.warmup_steps", "phases"}


def by_path(settings: Mapping[str, Any], above: str = "", sign: str = ".") -> dict[str, Any]:
    """Values without nesting: "optimizer.lr"."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= by_path(value, f"{above}{key}{sign}", sign) if isinstance(value, Mapping) else {above + key: value}
    return flat

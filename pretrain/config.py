"""Settings of the pack and pretrain stages; defaults are KLUE-RoBERTa-base (paper section 4.1 and Table 31).

What the paper leaves open is taken from RoBERTa (arXiv 1907.11692, Table 9): "hyperparameters not named are those of
BERT and RoBERTa". Each such field names its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from corpus.documents.accelerator import DeviceName, PrecisionName
from corpus.documents.section import Section


class PackConfig(Section):
    """The token store follows from the corpus and the tokenizer; there is little to choose."""

    morphemes: bool = Field(False, description="Also store where mecab-ko's morphemes begin, to mask them whole.")


class SharePhase(Section):
    """The share of masked tokens up to some part of the run."""

    share: float = Field(gt=0, lt=1, description="Share of a sequence's tokens to predict.")
    until: float = Field(1.0, gt=0, le=1, description="Share of the steps after which the next phase begins.")


class MaskingConfig(Section):
    """Whole-word masking (paper section 4.1; shares from BERT, arXiv 1810.04805, section 3.1)."""

    share: float = Field(0.15, gt=0, lt=1, description="Share of a sequence's tokens to predict (BERT 3.1).")
    mask_share: float = Field(0.8, ge=0, le=1, description="Share of the chosen shown as [MASK] (BERT 3.1).")
    random_share: float = Field(0.1, ge=0, le=1, description="Share shown as random pieces; the rest stays (BERT 3.1).")
    unit: Literal["word", "eojeol", "morpheme"] = Field(
        "word",
        description="What is masked whole: a piece and its ## pieces (KLUE 4.1, BERT's code), all between two blanks, "
        "or a morpheme of mecab-ko.",
    )
    mode: Literal["dynamic", "static"] = Field(
        "dynamic", description="dynamic: new masks every epoch (RoBERTa); static: they repeat (BERT) (Table 31)."
    )
    duplicates: int = Field(10, gt=0, description="Epochs until pairs and static masks repeat (BERT's dupe_factor).")
    shares: tuple[SharePhase, ...] = Field(
        (),
        description="Training shares that change on the way (Ankner et al. 2023), such as [{share: 0.3, until: 0.5}, "
        "{share: 0.15}]; held-out rows keep share, so that runs compare.",
    )
    length_bias: Literal["bert", "none"] = Field(
        "bert",
        description="bert: words are taken while they fit, so long ones less often (BERT's code); none: all alike.",
    )
    rare_power: float = Field(0.0, ge=0, le=1, description="Rare words are hidden more: 1 / frequency to this power.")

    @property
    def of_held_out(self) -> MaskingConfig:
        """As held-out rows are masked, so that runs compare."""
        return self.model_copy(update={"rare_power": 0.0})

    @model_validator(mode="after")
    def _shares_fit(self) -> MaskingConfig:
        if self.mask_share + self.random_share > 1:
            raise ValueError("mask_share + random_share must be at most 1")
        ends = [phase.until for phase in self.shares]
        if ends and (ends != sorted(set(ends)) or ends[-1] != 1):
            raise ValueError(f"shares: until must rise from phase to phase and be 1 in the last (got {ends})")
        return self


class ModelConfig(Section):
    architecture: Literal["bert", "roberta", "modernbert", "gpt"] = Field(
        "roberta", description="Model family (paper Table 31); gpt: GPT-2's, their causal twin at equal sizes."
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
    nsp: bool = Field(False, description="Add next sentence prediction on sentence pairs; BERT only (Table 31).")
    global_every: int = Field(
        3, gt=0, description="ModernBERT: every so many layers, from the first on, all tokens are seen (2412.13663)."
    )
    local_window: int = Field(
        128, ge=2, multiple_of=2, description="ModernBERT: tokens seen by its other layers, half on either side."
    )
    rope_theta: float | None = Field(
        None, gt=1, description="ModernBERT: base of the rotary positions of global layers; 160,000 unless init_from."
    )
    output_bias: Literal["zero", "frequency"] = Field(
        "zero", description="First values of the vocabulary head's bias; frequency: log frequencies of the pieces."
    )
    embedding_start: Literal["normal", "cooccurrence"] = Field(
        "normal",
        description="First values of the piece embeddings; cooccurrence: singular vectors of the mutual information of "
        "neighbouring pieces.",
    )
    attention_start: Literal["normal", "counted"] = Field(
        "normal",
        description="counted: ModernBERT's first two layers begin as a guess from the pieces around them.",
    )
    objective: Literal["masked", "causal", "hybrid"] = Field(
        "masked",
        description="masked: words from both sides (section 4.1); causal (the default of gpt): each token from those "
        "before it; hybrid: some rows causal, the others masked, in one network (GPT-BERT, arXiv 2410.24159).",
    )
    causal_share: float = Field(0.5, gt=0, lt=1, description="Share of a hybrid step's rows, and weight, of causal.")

    @model_validator(mode="before")
    @classmethod
    def _gpt_is_causal(cls, given: Any) -> Any:
        is_gpt = isinstance(given, Mapping) and given.get("architecture") == "gpt"
        return {"objective": "causal", **given} if is_gpt else given

    @model_validator(mode="after")
    def _settings_agree(self) -> ModelConfig:
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} must be a multiple of heads {self.heads}")
        if self.nsp and self.architecture != "bert":
            raise ValueError("nsp needs architecture bert: no other has a sentence-pair head")
        if self.nsp and self.objective != "masked":
            raise ValueError(f"nsp needs objective masked: {self.objective} rows hold no sentence pairs")
        if self.architecture == "gpt" and self.objective == "masked":
            raise ValueError(
                "gpt reads from left to right; choose objective causal or hybrid, or an encoder for masked"
            )
        turns = self.architecture == "modernbert" and self.layers > 1 and self.embedding_start == "cooccurrence"
        if self.attention_start == "counted" and not turns:
            raise ValueError("attention_start counted needs modernbert, layers > 1 and embedding_start cooccurrence")
        if self.architecture == "modernbert":
            if self.objective != "masked":
                raise ValueError(f"objective {self.objective} needs architecture roberta, bert or gpt")
            if self.position_start != "normal":
                raise ValueError("position_start is for learned positions; modernbert turns queries and keys instead")
            if self.hidden // self.heads % 2:
                raise ValueError(f"hidden {self.hidden} / heads {self.heads} must be even: modernbert turns pairs")
        return self


class RowsConfig(Section):
    """What a training row holds, and which rows are held out."""

    sequence_length: int = Field(512, ge=8, description="Tokens per training sequence (section 4.1).")
    packing: Literal["blocks", "documents"] = Field(
        "blocks",
        description="blocks: full rows across documents (RoBERTa 4.2), pairs padded; documents: several documents (or "
        "pairs) a row, none of which sees another, without attention dropout.",
    )
    short_length: int | None = Field(None, ge=8, description="Tokens per sequence of the first steps (128 in BERT).")
    short_length_share: float = Field(0.9, gt=0, lt=1, description="Share of the steps that are short (BERT's README).")
    short_share: float = Field(0.1, ge=0, le=1, description="Share of pairs drawn shorter (BERT code, short_seq_prob).")
    held_out_share: float = Field(0.001, gt=0, lt=1, description="Share of the blocks (or documents) never trained on.")
    masking: MaskingConfig = Field(default_factory=MaskingConfig, description="Whole-word masking (section 4.1).")
    nsp_balance: Literal["bert", "half"] = Field(
        "bert",
        description="bert: more than half of the pairs are random, as lone sentences have no other B (BERT's code); "
        "half: a lone sentence is paired with its neighbour, and every pair is random with chance 1/2.",
    )

    @model_validator(mode="after")
    def _short_is_shorter(self) -> RowsConfig:
        if self.short_length is not None and self.short_length >= self.sequence_length:
            raise ValueError(f"short_length {self.short_length} must be below sequence_length {self.sequence_length}")
        return self


class OptimizerConfig(Section):
    lr: float = Field(1e-4, gt=0, description="Peak learning rate (Table 31).")
    warmup_share: float = Field(0.024, ge=0, lt=1, description="Share of the steps: 24,000 (RoBERTa Table 9).")
    weight_decay: float = Field(0.01, ge=0, description="Not on biases and LayerNorm (RoBERTa Table 9).")
    betas: tuple[float, float] = Field((0.9, 0.98), description="Adam's averages (RoBERTa Table 9).")
    epsilon: float = Field(1e-6, gt=0, description="Adam's epsilon (RoBERTa Table 9).")
    clip: float = Field(0.0, ge=0, description="Largest gradient norm, 0 for no limit (RoBERTa Table 9).")
    schedule: Literal["linear", "cosine", "wsd"] = Field(
        "linear", description="How the rate falls after the warm-up (linear: BERT, RoBERTa); wsd: only at the end."
    )
    decay_share: float = Field(0.2, gt=0, le=1, description="Last share of the steps, in which the rate of wsd falls.")
    warmup_steps: int | None = Field(
        None, ge=0, description="Steps of the warm-up in place of its share, so that a longer run warms up alike."
    )
    name: Literal["adamw", "muon"] = Field(
        "adamw", description="muon: for the matrices of the layers, at the same rate; AdamW moves the rest."
    )
    ema: float = Field(
        0.0, ge=0, lt=1, description="Share of the old in a running average of the weights, which is the model; 0: off."
    )


class EngineConfig(Section):
    """How the work is done; but for the precision, nothing here changes more than rounding."""

    name: Literal["auto", "plain", "ddp", "fsdp", "deepspeed"] = Field(
        "auto",
        description="auto: plain for one process, ddp for more up to 400 M parameters, deepspeed above and for fp16.",
    )
    precision: PrecisionName = Field(
        "auto", description="Of matrix products; weights are fp32. auto: bf16 where it is clearly faster, else fp32."
    )
    micro_batch: int | Literal["auto"] = Field(
        "auto",
        description="Most sequences at once on one device; accumulation does the rest. auto: 32 on a CPU, else as many "
        "as make a device faster, found by dry steps before the first.",
    )
    zero_stage: int = Field(1, ge=0, le=3, description="DeepSpeed ZeRO: what is sharded over the devices.")
    offload: bool = Field(False, description="DeepSpeed ZeRO: optimizer and its averages in host memory.")
    store_cache: str | None = Field(
        None, description="Folder on each node's own disk, for a checked copy of the token store to read from."
    )
    compile: bool | Literal["auto"] = Field(
        "auto",
        description="Fuse operations with torch.compile; needs a C++ compiler or a GPU. auto: on CUDA, where it works.",
    )
    device: DeviceName = Field("auto", description="cpu: the processor, even where there is an accelerator.")

    @property
    def most_sequences(self) -> int:
        """``micro_batch``, or what stands for "auto" until a device has been tried."""
        return 32 if self.micro_batch == "auto" else self.micro_batch

    @model_validator(mode="after")
    def _settings_agree(self) -> EngineConfig:
        if self.most_sequences < 1:
            raise ValueError(f"micro_batch must be auto or greater than 0 (got {self.micro_batch})")
        if self.precision == "fp16" and self.name not in ("auto", "deepspeed"):
            raise ValueError("precision fp16 needs name deepspeed, which scales the loss; or choose bf16")
        if self.precision == "fp16" and self.zero_stage == 0:
            raise ValueError("precision fp16 needs zero_stage 1 or more: stage 0 keeps no exact weights")
        if self.offload and (self.zero_stage == 0 or self.name not in ("auto", "deepspeed")):
            raise ValueError("offload needs name deepspeed and zero_stage 1 or more")
        return self


class WatchConfig(Section):
    """What is measured and told along the way."""

    log_every: int = Field(100, gt=0, description="Steps between lines of the log and of metrics.jsonl.")
    measure_every: int = Field(10_000, gt=0, description="Steps between measurements on held-out rows.")
    measure_rows: int = Field(2048, gt=0, description="At most this many held-out rows are measured.")
    trackers: tuple[Literal["tensorboard", "wandb"], ...] = Field((), description="Also get metrics.jsonl.")
    price_per_hour: float | None = Field(None, ge=0, description="Of one device, for the cost of the run in the log.")
    hang_minutes: float = Field(
        15.0, ge=0, description="At one place of a step, after which a process hangs and the job ends; 0: never."
    )


class SavedConfig(Section):
    """Checkpoints, and what becomes the model."""

    checkpoint_every: int = Field(10_000, gt=0, description="Steps between checkpoints.")
    keep_checkpoints: int = Field(2, gt=0, description="Newest checkpoints that stay on disk, beside the best.")
    average_last: int = Field(1, gt=0, description="Checkpoints whose mean weights become the model; 1: the last.")
    sharded: bool | Literal["auto"] = Field(
        "auto",
        description="Each process writes what it holds, and nothing is gathered; auto: where the engine cuts the state "
        "over processes (fsdp, ZeRO 1 to 3).",
    )

    @model_validator(mode="after")
    def _as_many_are_kept(self) -> SavedConfig:
        if self.average_last > self.keep_checkpoints:
            raise ValueError(f"average_last {self.average_last} exceeds keep_checkpoints {self.keep_checkpoints}")
        return self


class PretrainConfig(Section):
    """Pretraining, in sections; the defaults are KLUE-RoBERTa-base (paper Table 31)."""

    init_from: str | None = Field(
        None,
        description="Go on from this Hugging Face model (folder or Hub id), with its own tokenizer.",
    )
    continue_from: str | None = Field(
        None,
        description="Begin with weights and optimizer of this checkpoint (its folder, or that of a run: the newest) of "
        "the same model and vocabulary, with steps, rate and data of one's own.",
    )
    steps: int = Field(1_000_000, gt=0, description="Optimizer steps (Table 31).")
    global_batch: int = Field(2048, gt=0, description="Sequences per step, over all devices (Table 31).")
    seed: int = Field(1, ge=0, description="Source of all randomness.")
    model: ModelConfig = Field(default_factory=ModelConfig, description="The network.")
    rows: RowsConfig = Field(default_factory=RowsConfig, description="What a training row holds.")
    optimizer: OptimizerConfig = Field(
        default_factory=OptimizerConfig, description="The optimizer and its learning rate."
    )
    engine: EngineConfig = Field(default_factory=EngineConfig, description="How the work is done.")
    watch: WatchConfig = Field(default_factory=WatchConfig, description="What is measured and told.")
    saved: SavedConfig = Field(default_factory=SavedConfig, description="Checkpoints.")

    @model_validator(mode="after")
    def _rows_fit_the_positions(self) -> PretrainConfig:
        length, positions = self.rows.sequence_length, self.model.positions
        if length > positions and self.init_from is None:  # a checkpoint has its own positions
            raise ValueError(f"rows.sequence_length {length} exceeds model.positions {positions}")
        return self

    @model_validator(mode="after")
    def _hybrid_steps_hold_both(self) -> PretrainConfig:
        if self.model.objective == "hybrid" and not 0 < self.causal_rows < self.global_batch:
            raise ValueError(
                f"model.causal_share {self.model.causal_share} of global_batch {self.global_batch} leaves one "
                "objective without a row; raise global_batch or choose a share nearer to 0.5"
            )
        return self

    @property
    def causal_rows(self) -> int:
        """Rows of a step, over all devices, that are causal; the others are masked."""
        hybrid = round(self.global_batch * self.model.causal_share)
        return {"masked": 0, "causal": self.global_batch, "hybrid": hybrid}[self.model.objective]

    @property
    def loss_weights(self) -> tuple[float, float]:
        """Of the mean loss of masked words, and of that of the objective beside it (``Sums``).

        Hybrid objectives count by their rows, as in GPT-BERT; by predictions, causal rows would outweigh the masked.
        """
        share = self.causal_rows / self.global_batch
        return (1 - share, share) if self.model.objective == "hybrid" else (1.0, 1.0)

    @model_validator(mode="after")
    def _rate_reaches_its_peak(self) -> PretrainConfig:
        optimizer, steps = self.optimizer, self.steps
        share = optimizer.warmup_share if optimizer.warmup_steps is None else optimizer.warmup_steps / steps
        falls = optimizer.decay_share if optimizer.schedule == "wsd" else 0
        if share + falls > 1 or share == 1:
            what = f"{share:.1%} of the steps" + (f" and decay_share {falls:.1%}" if falls else "")
            raise ValueError(f"optimizer: a warm-up of {what} leaves no step for the rest")
        return self

    @model_validator(mode="after")
    def _first_values_are_free(self) -> PretrainConfig:
        counted = self.model.output_bias != "zero" or self.model.embedding_start != "normal"
        if counted and self.init_from is not None:
            raise ValueError(
                "init_from brings its own first values; leave out model.output_bias, model.embedding_start"
            )
        return self

    def identity(self) -> dict[str, Any]:
        """The settings that decide the result, as JSON: all but those of the machine and of watching."""
        return self.model_dump(mode="json", exclude=MACHINE_KEYS)

    def replaced(self, section: str, **values: Any) -> PretrainConfig:
        """A copy with other values in one section; they are not checked."""
        return self.model_copy(update={section: getattr(self, section).model_copy(update=values)})


# May change between a run's start and its end: they move work between devices, but change nothing but rounding
MACHINE_KEYS = {
    "engine": {"name", "zero_stage", "offload", "micro_batch", "compile", "device", "store_cache"},
    "watch": {"log_every", "trackers", "price_per_hour", "hang_minutes"},
    "saved": {"keep_checkpoints", "sharded"},
}
# May change as well where every step trained so far stays as it was (``schedule.first_difference``)
SCHEDULE_KEYS = {
    "steps", "optimizer.schedule", "optimizer.decay_share", "optimizer.warmup_share", "optimizer.warmup_steps",
    "rows.short_length_share", "rows.masking.shares",
}  # fmt: skip
SECTIONS: dict[str, type[BaseModel]] = {
    "model": ModelConfig, "rows": RowsConfig, "optimizer": OptimizerConfig,
    "engine": EngineConfig, "watch": WatchConfig, "saved": SavedConfig,
}  # fmt: skip
# Where the keys of the sections stand; before there were sections, all stood at the top
PLACES = {"engine": "engine.name"} | {
    key: f"{name}.{key}" for name, section in SECTIONS.items() for key in section.model_fields if key != "name"
}


def in_sections(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Values by key, put into their sections.

    >>> in_sections({"steps": 7, "lr": 1e-3, "engine": "plain"})
    {'steps': 7, 'optimizer': {'lr': 0.001}, 'engine': {'name': 'plain'}}
    """
    found: dict[str, Any] = {}
    for key, value in fields.items():
        section, _, inner = PLACES.get(key, key).partition(".")
        if inner:
            found.setdefault(section, {})[inner] = value
        else:
            found[section] = value
    return found


def by_path(settings: Mapping[str, Any], above: str = "", sign: str = ".") -> dict[str, Any]:
    """Values without nesting: "optimizer.lr"."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        found |= by_path(value, f"{above}{key}{sign}", sign) if isinstance(value, Mapping) else {above + key: value}
    return found

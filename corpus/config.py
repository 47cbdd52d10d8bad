"""Settings of the corpus stage; defaults are the values of the KLUE paper (section 2.3, Appendix B)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from corpus.documents.accelerator import DeviceName
from corpus.documents.section import Section

Encoding = Literal["auto", "utf-8", "cp949", "utf-16"]
Share = Annotated[float, Field(ge=0, le=1)]


def _as_list(value: object) -> object:
    """A recipe may write a list of one path as the path."""
    return [value] if isinstance(value, str) else value


Paths = Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=str | list[str])]


class SourceConfig(Section):
    """Raw text of one source in its original layout; all its documents get the name of the source."""

    removed: ClassVar = {"encoding": "set corpus.encoding, or leave it at auto, which detects that of each file"}

    inputs: Paths = Field(min_length=1, description="Files, folders, globs, fsspec URLs or hub:NAME data sets.")
    format: str = Field("auto", description="auto, or modu, cc100, namuwiki, news, petitions, wikipedia.")
    text_field: str | None = Field(None, min_length=1, description="Overrides corpus.text_field for this source.")


class DecontaminateConfig(Section):
    """Removal of sentences that also occur in a benchmark (section 2.3); see corpus/decontamination/match_rule.py."""

    removed: ClassVar = {
        "unit": "only the sentence is dropped; the rest of the document stays",
        "cache_index": "the index is built in each run, which takes 12 seconds for all of KLUE",
        **dict.fromkeys(
            ("ngram", "window", "threshold_across", "window_across", "min_chars", "min_item_chars", "min_item_words"),
            "it is fixed in corpus/decontamination/match_rule.py",
        ),
    }

    enabled: bool = Field(True, description="Drop sentences that occur in the benchmark files (section 2.3).")
    threshold: float = Field(
        0.6, gt=0, le=1, description="Minimum share of a benchmark sentence's BM25 weight in a dropped sentence."
    )


class NamesConfig(Section):
    """Detection of names of people by a model, in addition to names that context words announce; not in the paper."""

    model: Path | None = Field(None, description="Folder of a fine-tuned KLUE-NER model (labels B-PS and I-PS).")
    threshold: float = Field(
        0.5, gt=0, lt=1, description="Minimum probability that at least one token of a name must have."
    )
    device: DeviceName = Field("auto", description="auto: use an accelerator if there is one. cpu: never use one.")


class PiiConfig(Section):
    """Pseudonymization of the 16 types of personal data (section 2.3, Table 29)."""

    mode: Literal["replace", "mask", "tag", "drop", "keep"] = Field(
        "replace",
        description="replace: invented value. mask: ***-****. tag: [TEL]. drop: drop the sentence. keep: do nothing.",
    )
    key_file: Path | None = Field(
        None, description="File with a secret key; equal values get equal replacements in the whole corpus."
    )
    key_variable: str | None = Field(None, description="Environment variable that contains the secret key instead.")
    repeatable: bool = Field(
        False,
        description="Draw replacements from corpus.seed, so that reruns are identical. Warning: anyone who knows the "
        "seed can guess and verify original values.",
    )
    keep: Literal["form", "none"] = Field("form", description="none: replacements have one form for each type.")
    extra: list[Literal["PERSON"]] = Field([], description="Types to hide in addition to Table 29.")
    names: NamesConfig = Field(NamesConfig(), description="Names of people by a model; also hides type PERSON.")

    @model_validator(mode="after")
    def _one_key_at_most(self) -> PiiConfig:
        if self.key_file and self.key_variable:
            raise ValueError("set key_file or key_variable, not both")
        return self


class DeduplicateConfig(Section):
    """Removal of repeated documents and sentences; the first one in input order is kept. Not in the paper."""

    removed: ClassVar = {
        "min_chars": "it is 20, fixed in corpus/duplicates/exact.py",
        "near": "only exact duplicates are dropped; remove near-duplicates with another tool first, such as datatrove",
    }

    documents: bool = Field(True, description="Drop documents that are equal except for case, spaces and punctuation.")
    sentences: bool = Field(True, description="Drop repeated sentences of at least 20 characters in the same way.")


class QualityConfig(Section):
    """Rules for raw web text, those of FineWeb2 among them (docs/corpus.md); not in the paper."""

    enabled: bool = Field(False, description="Repair mojibake; drop documents and sentences that fail a quality rule.")
    rules_off: dict[str, list[str]] = Field({}, description="Names of quality rules to skip, by source.")


class ToxicityConfig(Section):
    """Removal of sentences that a classifier scores as toxic (section 2.3 does so for the benchmark sources)."""

    removed: ClassVar = dict.fromkeys(("batch", "max_length"), "it is fixed in corpus/quality/toxicity.py")

    enabled: bool = Field(False, description="Score sentences and drop toxic ones.")
    model: str = Field("", description="Folder or Hub name of a sequence classifier with safetensors weights.")
    labels: dict[str, Share] = Field({}, description="Minimum score per model label at which a sentence is dropped.")
    sources: dict[str, dict[str, Share]] = Field(
        {}, description="Thresholds for single sources instead of labels; {} drops nothing from that source."
    )

    @model_validator(mode="after")
    def _names_a_model_and_labels(self) -> ToxicityConfig:
        if self.enabled and not (self.model and (self.labels or any(self.sources.values()))):
            raise ValueError("enabled needs model and at least one threshold in labels or sources")
        return self


class CardConfig(Section):
    """Facts of the data card that the corpus itself does not contain."""

    removed: ClassVar = {"pretty_name": "edit the title in README.md; the default names the number of sentences"}

    licence: str | None = Field(
        None, pattern=r"^[a-z0-9][a-z0-9.+-]*$", description="Hub identifier of the license, for example cc-by-sa-4.0."
    )


class CorpusConfig(Section):
    """The corpus stage: raw text in; cleaned and pseudonymized document shards out."""

    removed: ClassVar = {
        "min_chars": "set corpus.min_sentence_chars for the sources that need a minimum",
        "max_han_kana": "the limit is 10 as in the paper (corpus/quality/han_kana.py)",
        "samples_per_rule": "50 samples per rule are kept",
        "shard_documents": "shards have 10,000 documents, or more if there would be over 10,000 shards",
        "splitter": "sentences are split by our rules (corpus/sentences/split.py)",
    }

    inputs: Paths = Field([], description="Files, folders, globs, URLs (.txt, .jsonl, .parquet), or hub:NAME.")
    sources: dict[str, SourceConfig] = Field({}, description="More inputs, by the name of their source.")
    benchmarks: Paths | None = Field(None, description="KLUE folders or text files to keep out of the corpus.")
    text_field: str = Field("text", min_length=1, description="Key or column that contains the text of a document.")
    encoding: Encoding = Field("auto", description="Encoding of text files; auto detects it for each file.")
    max_documents_per_file: int | None = Field(None, gt=0, description="Read only the first N documents of each file.")
    max_bad_share: float = Field(
        0.01, ge=0, le=1, description="Stop if a larger share of the records is unreadable; a damaged file is one."
    )

    noise_rules_off: dict[str, list[str]] = Field({}, description="Names of noise rules to skip, by source.")
    keep_hashtag_words: bool = Field(
        False, description="Remove only the sign of one or two hashtags in a row, not the words (section 2.3)."
    )
    rejoin_lines: bool = Field(True, description="Join the lines of hard-wrapped text before sentences are split.")
    min_sentence_chars: dict[str, int] = Field(
        {"CC-100": 200, "NEWSCRAWL": 200}, description="Drop shorter sentences, by source (section 2.3)."
    )
    count_glosses: bool = Field(
        False,
        description="Han and Kana rule (section 2.3): also count characters in glosses such as 대한민국(大韓民國), as "
        "the paper does.",
    )

    decontaminate: DecontaminateConfig = Field(DecontaminateConfig(), description="Benchmark sentences (section 2.3).")
    pii: PiiConfig = Field(PiiConfig(), description="Personal data (section 2.3, Table 29).")
    deduplicate: DeduplicateConfig = Field(DeduplicateConfig(), description="Duplicates; not in the paper.")
    quality: QualityConfig = Field(QualityConfig(), description="Rules for raw web text; not in the paper.")
    toxicity: ToxicityConfig = Field(
        ToxicityConfig(), description="Toxic sentences; off by default, as in the paper's pretraining corpora."
    )

    card: CardConfig = Field(CardConfig(), description="The data card, README.md.")

    seed: int = Field(42, ge=0, description="Seed of the samples, and of replacements with pii.repeatable.")

"""Settings of the corpus stage; the defaults are what the KLUE paper did (section 2.3, Appendix B).

Where the paper gives no number (decontamination threshold, duplicates) the description says why this one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from corpus.documents.accelerator import DeviceName
from corpus.documents.section import Section

Encoding = Literal["auto", "utf-8", "cp949", "utf-16"]
Share = Annotated[float, Field(ge=0, le=1)]


class SourceConfig(Section):
    """Raw text of one source in the layout it is distributed in; all its documents bear the source's name."""

    inputs: list[str] = Field(min_length=1, description="Files, folders, globs, fsspec URLs or hub:NAME data sets.")
    format: str = Field("auto", description="auto, or modu, cc100, namuwiki, news, petitions, wikipedia.")
    text_field: str | None = Field(None, min_length=1, description="As corpus.text_field, for this source.")
    encoding: Encoding | None = Field(None, description="As corpus.encoding, for this source.")


class DecontaminateConfig(Section):
    """Removal of sentences that a benchmark holds too: BM25 as the paper says, made a share in 0..1."""

    enabled: bool = Field(True, description="Drop sentences that occur in the benchmark files (section 2.3).")
    unit: Literal["sentence", "document"] = Field("sentence", description="What goes: the sentence, or all around it.")
    ngram: int = Field(3, ge=1, le=3, description="Characters per token; trigrams survive respacing (measured).")
    threshold: float = Field(0.6, gt=0, le=1, description="Share of a benchmark sentence's BM25 weight found.")
    window: float = Field(2.0, ge=1, description="Tokens looked at together, as a multiple of the benchmark sentence.")
    threshold_across: float = Field(0.7, gt=0, le=1, description="The same where it runs over the ends of sentences.")
    window_across: float = Field(1.25, ge=1, description="The window there: cut text is no longer than it was.")
    min_chars: int = Field(12, ge=3, description="Shorter benchmark sentences count when equal; letters, digits.")
    min_item_chars: int = Field(12, ge=1, description="Benchmark sentences with fewer letters and digits are ignored.")
    cache_index: bool = Field(True, description="Keep the built index in ~/.cache/malmoi, or $MALMOI_CACHE.")
    min_item_words: int = Field(2, ge=1, description="The same for fewer words; the report lists what is ignored.")


class NamesConfig(Section):
    """Names of people by a model, beside those that words announce; not in the paper."""

    model: Path | None = Field(None, description="Folder of a fine-tuned KLUE-NER model (labels B-PS, I-PS).")
    threshold: float = Field(0.5, gt=0, lt=1, description="Probability that one token of a name reaches.")
    device: DeviceName = Field("auto", description="cpu: the processor, even where there is an accelerator.")


class PiiConfig(Section):
    """What becomes of the 16 types of personal data (section 2.3, Table 29)."""

    mode: Literal["replace", "mask", "tag", "drop", "keep"] = Field(
        "replace", description="An invented value, ***-****, [TEL], the sentence goes, or nothing is done."
    )
    key_file: Path | None = Field(None, description="File with a secret: a value maps alike in the whole corpus.")
    key_variable: str | None = Field(None, description="The same secret in an environment variable of this name.")
    repeatable: bool = Field(
        False, description="Without a key: draw from corpus.seed, so that a rerun repeats; whoever knows it can guess."
    )

    extra: list[Literal["PERSON", "ORG_NUMBER", "HANDLE", "CUSTOMS", "COURIER", "MEMBERSHIP"]] = Field(
        [], description="Types outside Table 29 to hide too: names, company numbers, accounts, parcels, memberships."
    )

    names: NamesConfig = Field(NamesConfig(), description="Names of people by a model: type PERSON is hidden, too.")

    @model_validator(mode="after")
    def _one_key_at_most(self) -> PiiConfig:
        if self.key_file and self.key_variable:
            raise ValueError("give the secret by key_file or by key_variable, not by both")
        return self


class NearConfig(Section):
    """Removal of documents that nearly equal an earlier one."""

    enabled: bool = Field(False, description="Drop near-duplicate documents; not in the paper.")
    threshold: float = Field(0.8, gt=0, lt=1, description="Jaccard share of shingles from which documents are equal.")
    permutations: int = Field(128, ge=16, le=1024, description="Numbers in a signature; more tell closer.")
    shingle_chars: int = Field(5, ge=2, le=20, description="Letters and digits of one shingle.")


class DeduplicateConfig(Section):
    """Keep the first of equal documents and sentences, in input order; the paper does not say that it did."""

    documents: bool = Field(True, description="Documents equal but for case, blanks and punctuation.")
    sentences: bool = Field(True, description="The same for sentences.")
    min_chars: int = Field(20, ge=1, description="Shorter sentences may repeat: greetings, fillers.")
    near: NearConfig = Field(NearConfig(), description="Nearly equal documents.")


class ToxicityConfig(Section):
    """Removal of sentences that a classifier calls toxic."""

    enabled: bool = Field(False, description="Score sentences and drop toxic ones; not in the paper's pretraining.")
    model: str = Field("", description="Folder or Hub name of a sequence classifier with safetensors weights.")
    labels: dict[str, Share] = Field({}, description="Label of the model -> score from which a sentence is dropped.")
    sources: dict[str, dict[str, Share]] = Field(
        {}, description="The same for single sources, in place of the general ones; {} drops nothing there."
    )
    batch: int = Field(64, gt=0, description="Sentences per forward pass.")
    max_length: int = Field(256, gt=2, description="Tokens of a sentence that are looked at.")

    @model_validator(mode="after")
    def _names_a_model_and_labels(self) -> ToxicityConfig:
        if self.enabled and not (self.model and (self.labels or any(self.sources.values()))):
            raise ValueError("needs model and at least one threshold in labels or sources when enabled")
        return self


class CardConfig(Section):
    """What the data card says of the corpus that nothing in it tells."""

    licence: str | None = Field(
        None, pattern=r"^[a-z0-9][a-z0-9.+-]*$", description="Identifier of the Hub: cc-by-sa-4.0, other …"
    )
    pretty_name: str | None = Field(None, min_length=1, description="Title of the data set, for people.")


class CorpusConfig(Section):
    """Raw text in, cleaned and pseudonymized document shards out."""

    inputs: list[str] = Field([], description="Files, folders, globs, URLs: .txt, .jsonl, .parquet; or hub:NAME.")
    sources: dict[str, SourceConfig] = Field({}, description="More inputs, by the name of their source.")
    benchmarks: list[str] | None = Field(None, description="KLUE folders or text files to keep out of the corpus.")
    text_field: str = Field("text", min_length=1, description="Key or column that holds a document's text.")
    encoding: Encoding = Field("auto", description="Of text files: utf-8, cp949, utf-16; auto looks at each file.")
    max_documents_per_file: int | None = Field(None, gt=0, description="Read only the first documents of each file.")
    max_bad_share: float = Field(0.01, ge=0, le=1, description="Unreadable share of the records that stops the run.")

    noise_rules_off: dict[str, list[str]] = Field({}, description="Noise rules not applied, by source.")
    rejoin_lines: bool = Field(True, description="Join the lines of hard-wrapped text before sentences are split.")
    splitter: Literal["rules", "kiwi", "kss"] = Field("rules", description="Who finds the ends of sentences.")
    min_chars: int = Field(1, ge=1, description="Shorter sentences are dropped; the paper has no general limit.")
    min_sentence_chars: dict[str, int] = Field(
        {"CC-100": 200, "NEWSCRAWL": 200}, description="The same for single sources (section 2.3)."
    )
    max_han_kana: int = Field(10, ge=0, description="Sentences with more Han or Kana characters go (section 2.3).")
    count_glosses: bool = Field(
        False, description="Han and Kana of glosses count too, as in 대한민국(大韓民國); the paper's rule."
    )

    decontaminate: DecontaminateConfig = Field(DecontaminateConfig(), description="Benchmark sentences (section 2.3).")
    pii: PiiConfig = Field(PiiConfig(), description="Personal data (section 2.3, Table 29).")
    deduplicate: DeduplicateConfig = Field(DeduplicateConfig(), description="Duplicates; not in the paper.")
    toxicity: ToxicityConfig = Field(ToxicityConfig(), description="Toxic sentences; the paper argues against it.")

    card: CardConfig = Field(CardConfig(), description="The data card, README.md.")

    shard_documents: int = Field(10_000, gt=0, description="Documents per shard.")
    samples_per_rule: int = Field(50, ge=0, description="Dropped and changed sentences kept for the reader, per rule.")
    seed: int = Field(42, ge=0, description="Seed of the samples, and of repeatable replacements.")

"""Settings of the corpus stage; the defaults are what the KLUE paper did (section 2.3, Appendix B).

Where the paper gives no number (decontamination threshold, duplicates) the description says why this one.
"""

from __future__ import annotations

from pydantic import BaseModel, Field


class DecontaminateConfig(BaseModel, frozen=True, extra="forbid"):
    """Removal of sentences that a benchmark holds too: BM25 as the paper says, made a share in 0..1."""

    enabled: bool = Field(True, description="Drop sentences that occur in the benchmark files (section 2.3).")
    ngram: int = Field(3, ge=1, le=3, description="Characters per token; trigrams survive respacing (measured).")
    threshold: float = Field(0.6, gt=0, le=1, description="Share of a benchmark sentence's BM25 weight found.")
    window: float = Field(2.0, ge=1, description="Tokens looked at together, as a multiple of the benchmark sentence.")
    min_chars: int = Field(12, ge=3, description="Shorter benchmark sentences count when equal; letters, digits.")


class CorpusConfig(BaseModel, frozen=True, extra="forbid"):
    """Raw text in, cleaned and pseudonymized document shards out."""

    inputs: list[str] = Field([], description="Files, folders or globs: .txt, .jsonl (.gz, .zst), .parquet.")
    benchmarks: list[str] | None = Field(None, description="KLUE folders or text files to keep out of the corpus.")
    text_field: str = Field("text", min_length=1, description="Key or column that holds a document's text.")
    max_documents_per_file: int | None = Field(None, gt=0, description="Read only the first documents of each file.")
    max_bad_share: float = Field(0.01, ge=0, le=1, description="Unreadable share of the records that stops the run.")

    min_chars: int = Field(1, ge=1, description="Shorter sentences are dropped; the paper has no general limit.")
    min_sentence_chars: dict[str, int] = Field(
        {"CC-100": 200, "NEWSCRAWL": 200}, description="The same for single sources (section 2.3)."
    )
    max_han_kana: int = Field(10, ge=0, description="Sentences with more Han or Kana characters go (section 2.3).")

    decontaminate: DecontaminateConfig = Field(DecontaminateConfig(), description="Benchmark sentences (section 2.3).")
    pseudonymize: bool = Field(True, description="Replace the 16 types of personal data (Table 29).")
    deduplicate: bool = Field(True, description="Keep the first of equal documents and sentences; not in the paper.")
    deduplicate_min_chars: int = Field(20, ge=1, description="Shorter sentences may repeat: greetings, fillers.")

    shard_documents: int = Field(10_000, gt=0, description="Documents per shard.")
    samples_per_rule: int = Field(50, ge=0, description="Dropped sentences kept for the reader, per rule.")
    seed: int = Field(42, ge=0, description="Seed of the replacements and of the samples.")

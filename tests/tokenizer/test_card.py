"""The card says what was measured, leaves out what was not, and is a repository card the Hub can read."""

from __future__ import annotations

import copy
import re
from itertools import pairwise
from typing import Any

import pytest
from huggingface_hub import ModelCard

from tokenizer.card import write_card
from tokenizer.config import TokenizerConfig

STATISTICS: dict[str, Any] = {
    "builder": "malmoi",
    "vocabulary": {
        "size": 32_000, "special": 5, "unused": 500, "starting": 20_001, "continuing": 11_494, "alphabet": 2_345,
        "sha256": "0123abcd" * 8,
    },
    "corpus": {
        "documents": 1_234, "sources": {"뉴스": 1_000, "a|b<c": 234}, "characters": 98_765_432,
        "eojeols": 23_456_789, "eojeol_types": 612_061, "units": 105_000,
    },
    "fit": {
        "fertility": 2.4214, "continued_words": 0.7789, "unknown_ratio": 0.00321, "tokens_per_character": 0.6543,
        "never_used": 131, "unknown_words": {},
    },
    "versions": {"malmoi": "0.1.0", "tokenizers": "0.23.3"},
    "analyser": {"python-mecab-ko": "1.3.7", "python-mecab-ko-dic": "2.1.1"},
}  # fmt: skip
OPTIONAL: dict[str, Any] = {
    "pruning": {
        "overgenerated": 39_312, "dropped_crossing": 1_247, "dropped_rare": 6_570, "rounds": 2,
        "max_crossing_share": 0.5,
    },
}  # fmt: skip
FIT = {
    "crossing_share": 0.01567,
    "unknown_hangul": 17,
    "renyi_efficiency": 0.4567,
    "unknown_words": {"Han": 748, "symbol or emoji": 93},
}


def config(**settings: Any) -> TokenizerConfig:
    return TokenizerConfig(**{"builder": "malmoi", "jamo_fallback": False, **settings})


def full_statistics() -> dict[str, Any]:
    statistics = copy.deepcopy(STATISTICS) | OPTIONAL
    statistics["fit"].update(FIT)
    return statistics


def rows(card: str) -> list[list[str]]:
    lines = (line for line in card.splitlines() if line.startswith("|"))
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_hub_reads_language_and_tags() -> None:
    assert ModelCard(write_card(config(), STATISTICS)).data.to_dict() == {
        "language": "ko", "library_name": "transformers", "tags": ["korean", "wordpiece", "bert", "malmoi"],
    }  # fmt: skip


def test_corpus_analyser_entries_and_digest_are_named() -> None:
    card = write_card(config(), STATISTICS)

    for fact in (
        "32,000 entries", "20,001", "11,494", "2,345", "1,234 documents", "23,456,789 eojeols of 612,061 kinds",
        "python-mecab-ko 1.3.7, python-mecab-ko-dic 2.1.1", "0123abcd" * 8,
    ):  # fmt: skip
        assert fact in card
    assert ["뉴스", "1,000"] in rows(card)
    assert "Analyser: none." in write_card(config(builder="bpe"), {**STATISTICS, "analyser": {}})


def test_the_tables_have_a_ruler_under_their_heads() -> None:
    table = rows(write_card(config(), full_statistics()))
    heads = [(head, ruler) for head, ruler in pairwise(table) if ruler[0] == "---"]
    assert len(heads) > 1
    assert all(ruler == ["---", *["---:"] * (len(head) - 1)] for head, ruler in heads)


def test_table_35_is_shown_with_the_papers_rows() -> None:
    table = rows(write_card(config(), STATISTICS))

    start = table.index(["", "pieces per word", "words in several pieces", "[UNK] per piece"])
    assert [row[1:] for row in table[start + 2 : start + 5]] == [
        ["2.421", "0.779", "0.0032"], ["2.073", "0.578", "0.0110"], ["2.468", "0.765", "0.0090"],
    ]  # fmt: skip


def test_every_setting_of_the_build_is_listed() -> None:
    table = dict(
        row for row in rows(write_card(config(vocab_size=16_000, jamo_fallback=True), STATISTICS)) if len(row) == 2
    )

    assert {name for name in table if name.startswith("`") and "#" not in name} == {
        f"`{name}`" for name in TokenizerConfig.model_fields.keys() - {"extend"}
    }
    assert (table["`vocab_size`"], table["`jamo_fallback`"], table["`builder`"]) == ("`16,000`", "`true`", "`malmoi`")


def test_what_was_measured_besides_is_shown_and_what_was_not_is_left_out() -> None:
    full, bare = rows(write_card(config(), full_statistics())), rows(write_card(config(), STATISTICS))
    optional = [
        ["learned at first", "39,312"],
        ["share of crossing uses above which a piece was dropped", "0.5"],
        ["pieces that cut across morphemes, share of uses", "0.01567"],
        ["[UNK] in place of Hangul, pieces", "17"],
        ["Rényi efficiency of order 2.5", "0.4567"],
        ["Han", "748"],
    ]

    assert all(row in full for row in optional)
    assert not any(row[0] == known[0] for row in bare for known in optional)
    assert "Made with malmoi 0.1.0, tokenizers 0.23.3." in write_card(config(), full_statistics())
    assert "None" not in write_card(config(), STATISTICS | {"fit": STATISTICS["fit"] | {"renyi_efficiency": None}})


@pytest.mark.parametrize("builder", ["klue", "bpe", "malmoi"])
def test_each_builder_is_recognized(builder: str) -> None:
    card = write_card(config(builder=builder), STATISTICS)

    assert ("pruned" in card, "without morphemes" in card) == (builder == "malmoi", builder == "bpe")
    assert f"Builder `{builder}`" in card


def test_loading_and_limits_fit_the_form() -> None:
    jamo_fallback, plain = (write_card(config(jamo_fallback=value), STATISTICS) for value in (True, False))

    assert "strip_accents" in jamo_fallback and "more than 100 jamo" in jamo_fallback
    for trap in ("aggregation_strategy", "add_tokens", "convert_tokens_to_ids", "decode(…) == text"):
        assert trap in jamo_fallback and trap not in plain
    assert "in NFD, as macOS writes file names, every Korean word is [UNK]" not in jamo_fallback
    assert "subfolder" not in plain and "every Korean word is [UNK]" in plain
    for card in (jamo_fallback, plain):
        [code] = re.findall(r"```python\n(.*?)```", card, re.S)
        compile(code, "card", "exec")


def test_names_of_sources_cannot_break_the_table() -> None:
    statistics = {**STATISTICS, "corpus": {**STATISTICS["corpus"], "sources": {"a|b<c\n# 뉴스": 7}}}
    card = write_card(config(), statistics)

    assert [r"a\|b&lt;c↵\# 뉴스", "7"] in rows(card)
    assert "\n# 뉴스" not in card


def test_of_many_sources_the_largest_are_named_and_the_others_counted() -> None:
    sources = {f"file-{number:04}.txt": number for number in range(1, 1_001)}
    card = write_card(TokenizerConfig(), {**STATISTICS, "corpus": {**STATISTICS["corpus"], "sources": sources}})

    assert "| file-1000.txt | 1,000 |" in card and "| file-0981.txt | 981 |" in card
    assert "file-0980.txt" not in card
    assert f"| 980 others | {sum(range(1, 981)):,} |" in card

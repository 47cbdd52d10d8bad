"""The data card: every figure of the statistics, both pages alike, safe to publish, the same bytes each time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from corpus.card.write import publishable, write_card
from corpus.documents.errors import BadInput
from corpus.pii.types import PII_TYPES

PHONE, EMAIL = "010-0123-4567", "gaeun.kim@example.com"


def source_counts(**changes: Any) -> dict[str, Any]:
    """One source: 12 sentences split, 9 kept."""
    return {
        "documents_read": 4, "characters_read": 400, "sentences_split": 12,
        "documents": 3, "sentences": 9, "words": 41, "characters": 300, "bytes": 654_321, "sentences_with_pii": 2,
        "changed": {"hashtag": 5, "html_tag": 1},
        "dropped_documents": {"duplicate_document": 1},
        "dropped_sentences": {"duplicate_sentence": 2, "in_benchmark": 1},
        "pii": dict.fromkeys(PII_TYPES, 0) | {"TEL": 3},
        "chars_per_sentence": {"16": 4, "64": 5}, "sentences_per_document": {"2": 3},
    } | changes  # fmt: skip


def write_folder(out: Path, statistics: dict[str, Any], **tables: list[dict[str, str]]) -> Path:
    out.mkdir(exist_ok=True)
    (out / "statistics.json").write_text(json.dumps(statistics, ensure_ascii=False), "utf-8")
    for name, rows in tables.items():
        (out / name).mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), out / name / "samples.parquet")
    return out


def dropped(rule: str, text: str, source: str = "뉴스", note: str = "") -> dict[str, str]:
    return {"rule": rule, "source": source, "document": "d-1", "note": note, "text": text}


def changed(rule: str, before: str, after: str) -> dict[str, str]:
    return {"rule": rule, "source": "뉴스", "document": "d-1", "before": before, "after": after}


def one_source(name: str = "뉴스", **changes: Any) -> dict[str, Any]:
    counts = source_counts(**changes)
    return {"total": counts, "sources": {name: counts}, "records": {"lines": 4, "rejected": {"not_json": 2}}}


def pages(out: Path, settings: dict[str, Any] | None = None) -> tuple[str, str]:
    write_card(out, {} if settings is None else settings)
    return (out / "README.md").read_text("utf-8"), (out / "card.html").read_text("utf-8")


CONTAMINATION = {
    "settings": {"enabled": True, "ngram": 3, "threshold": 0.6},
    "benchmarks": ["klue-nli-v1.1_dev.json"],
    "tasks": {
        "klue-nli": {
            "items": 80, "found": ["a", "b"], "dropped_sentences": 1,
            "examples": [{"item": "nli-7#premise 0.912", "document": "d-9", "sentence": "바다로 가는 길이 막혔다."}],
        }
    },
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    out = write_folder(
        tmp_path / "corpus",
        one_source(),
        dropped=[dropped("duplicate_sentence", "같은 말이다."), dropped("in_benchmark:klue-nli", "바다로 가는 길")],
        changed=[
            changed("pii.TEL", "전화 [TEL]로 하세요.", f"전화 {PHONE}로 하세요."),
            changed("hashtag", "오늘은 #바다 갔다", "오늘은 갔다"),
        ],
    )
    (out / "decontamination.json").write_text(json.dumps(CONTAMINATION, ensure_ascii=False), "utf-8")
    return out


def test_both_pages_show_the_same_figures(folder: Path) -> None:
    for page in pages(folder):
        for figure in ("654.32 kB", "25.00 %", "22.22 %", "2.50 %", "not json 2", "klue-nli-v1"):
            assert figure in page, figure
        for words in ("telephone number", "hashtag", "duplicate sentence", "같은 말이다."):
            assert words in page, words


def test_markdown_begins_with_the_head_of_a_data_set_card(folder: Path) -> None:
    head = yaml.safe_load(pages(folder)[0].split("---")[1])
    assert head["language"] == ["ko"]
    assert head["size_categories"] == ["n<1K"]
    assert head["configs"][0]["data_files"] == [{"split": "train", "path": "documents/*.parquet"}]


@pytest.mark.parametrize(
    ("documents", "size"),
    [(0, "n<1K"), (999, "n<1K"), (1_000, "1K<n<10K"), (10**9, "1B<n<10B"), (10**12, "n>1T"), (10**15, "n>1T")],
)
def test_a_card_has_the_size_category_of_the_hub(tmp_path: Path, documents: int, size: str) -> None:
    readme, _ = pages(write_folder(tmp_path / "corpus", one_source(documents=documents)))
    assert yaml.safe_load(readme.split("---")[1])["size_categories"] == [size]


def test_samples_are_shown_before_and_after_the_change(folder: Path) -> None:
    html = pages(folder)[1]
    assert re.search(rf"<b>before</b> [^<]*\[TEL\]로 하세요.*\n?.*<b>after</b> [^<]*{PHONE}로 하세요", html)
    assert "오늘은 #바다 갔다" in html


def test_same_folder_gives_the_same_bytes_for_any_hash_seed(folder: Path) -> None:
    program = "import sys, pathlib; from corpus.card.write import write_card; write_card(pathlib.Path(sys.argv[1]), {})"
    contents = []
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        subprocess.run([sys.executable, "-c", program, str(folder)], check=True, env=environment)
        contents.append([(folder / name).read_bytes() for name in ("README.md", "card.html")])
    assert contents[0] == contents[1]


def test_no_personal_value_reaches_a_page_even_of_a_corpus_that_kept_them(tmp_path: Path) -> None:
    out = write_folder(
        tmp_path / "corpus",
        one_source(f"상담 {EMAIL}"),
        dropped=[dropped("duplicate_sentence", f"제 번호는 {PHONE}입니다.", f"상담 {EMAIL}")],
        changed=[changed("hashtag", f"#연락 {PHONE}로", f"{PHONE}로"), changed("pii.TEL", f"{EMAIL} [TEL]", "x 010")],
    )
    report = json.loads(json.dumps(CONTAMINATION))
    report["tasks"]["klue-nli"]["examples"][0] |= {"sentence": f"주소는 {EMAIL}", "document": EMAIL}
    (out / "decontamination.json").write_text(json.dumps(report), "utf-8")
    for page in pages(out, {"pii": {"mode": "keep"}, "inputs": [f"/home/gaeun/{EMAIL}/raw.jsonl"]}):
        text = page.replace("\\", "")
        assert PHONE not in text
        assert EMAIL not in text
        assert "gaeun" not in text
        assert "This corpus contains personal data" in text


def test_settings_lose_folders_credentials_and_secrets() -> None:
    settings = {
        "inputs": ["/data/hong/raw/*.jsonl", "s3://user:word@bucket/raw?sig=1", "news/*.txt", "C:\\raw\\a.txt"],
        "pii": {"key_file": "/home/hong/secret.bin", "keyed": True, "api_token": "abc"},
        "text_field": "body",
        "seed": 42,
    }
    assert publishable(settings) == {
        "inputs": ["*.jsonl", "s3://bucket/raw", "news/*.txt", "a.txt"],
        "pii": {"key_file": "(not shown)", "keyed": True, "api_token": "(not shown)"},
        "text_field": "body",
        "seed": 42,
    }


def test_text_of_the_corpus_cannot_break_a_page(tmp_path: Path) -> None:
    nasty = "<script>alert(1)</script> | `a` **b** [c](d)\n# e"
    out = write_folder(tmp_path / "corpus", one_source(nasty), dropped=[dropped("duplicate_sentence", nasty)])
    markdown, html = pages(out)
    assert "<script" not in html
    assert "<script" not in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    starts = [n for n, row in enumerate(rows) if set(row) <= set("|-:")]
    assert len(starts) >= 5
    for first, last in zip(starts, [*(start - 1 for start in starts[1:]), len(rows)], strict=True):
        assert len(set(widths[first - 1 : last])) == 1, rows[first - 1 : last]


class _Balance(HTMLParser):
    """Open elements; those without an end are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.closed = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "path", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "rect"):
            assert self.open.pop() == tag
            self.closed += 1


def test_html_is_well_formed_and_needs_nothing_from_outside(folder: Path) -> None:
    html = pages(folder)[1]
    balance = _Balance()
    balance.feed(html)
    assert not balance.open
    assert balance.closed > 100
    assert not re.search(r"""src\s*=|url\(|@import|<script|https?:""", html)
    assert set(re.findall(r'href="([^#"][^"]*)', html)) == {"../report/report.html"}  # next to it in its run
    assert "prefers-color-scheme: dark" in html
    assert 'name="viewport"' in html


def test_what_an_older_folder_lacks_is_said_to_be_missing(tmp_path: Path) -> None:
    counts = source_counts()
    out = write_folder(tmp_path / "corpus", {"total": counts, "sources": {"뉴스": counts}})
    markdown, html = pages(out)
    assert "no decontamination report" in html
    assert "no decontamination report" in markdown


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"settings": {"enabled": False, "ngram": 3, "threshold": 0.6}}, "Decontamination was switched off"),
        ({"tasks": {}}, "No benchmark files were given"),
    ],
)
def test_pages_claim_no_decontamination_that_did_not_happen(folder: Path, changes: dict[str, Any], said: str) -> None:
    (folder / "decontamination.json").write_text(json.dumps(CONTAMINATION | changes), "utf-8")
    for page in pages(folder):
        assert said in page
        assert "60 % or more" not in page


def test_counts_that_do_not_add_up_are_said(tmp_path: Path) -> None:
    out = write_folder(tmp_path / "corpus", one_source(sentences_split=19))
    for page in pages(out):
        assert "7 sentences are neither kept nor counted" in page


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "replaced by invented ones"),
        ({"pii": {"mode": "drop"}}, "removed with their sentences"),
        ({"pii": {"mode": "mask"}, "engine": {"mode": "fast"}}, "masked"),
    ],
)
def test_pages_say_what_was_done_to_personal_data(folder: Path, settings: dict[str, Any], said: str) -> None:
    for page in pages(folder, settings):
        assert said in page


def test_small_sources_are_summed_not_left_out(tmp_path: Path) -> None:
    sources = {f"모음 {n:02}": source_counts(bytes=1_000 * (n + 1), words=100) for n in range(20)}
    total = source_counts(bytes=210_000, words=2_000)
    for page in pages(write_folder(tmp_path / "corpus", {"total": total, "sources": sources})):
        assert "… 8 smaller sources" in page
        assert "36.00 kB" in page  # 1 + … + 8
        assert "모음 19" in page
        assert "모음 07" not in page


@pytest.mark.parametrize(("count", "rest"), [(1, 0), (12, 0), (13, 0), (14, 2), (20, 8)])
def test_a_sum_is_of_two_sources_or_more(tmp_path: Path, count: int, rest: int) -> None:
    sources = {f"모음 {n:02}": source_counts(bytes=1_000 * (n + 1)) for n in range(count)}
    total = source_counts(bytes=sum(source["bytes"] for source in sources.values()))
    for page in pages(write_folder(tmp_path / "corpus", {"total": total, "sources": sources})):
        assert (f"… {rest} smaller sources" in page) == bool(rest)
        assert [f"모음 {n:02}" in page for n in range(count)] == [n >= rest for n in range(count)]


@pytest.mark.parametrize("content", [None, "{", "{}"])
def test_folder_without_statistics_is_bad_input(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "statistics.json").write_text(content)
    with pytest.raises(BadInput, match=r"statistics\.json"):
        write_card(tmp_path, {})


@pytest.mark.parametrize(
    ("pii", "words"),
    [
        ({"mode": "replace"}, "a random secret that was deleted"),
        ({"mode": "replace", "key_variable": "KEY"}, "anyone with the key can recompute them"),
        ({"mode": "replace", "repeatable": True}, "Replacements were drawn from the seed"),
        ({"mode": "mask", "repeatable": True}, ""),
    ],
)
def test_cards_say_what_replacements_follow_from(folder: Path, pii: dict[str, Any], words: str) -> None:
    for page in pages(folder, {"pii": pii}):
        said = [line for line in page.splitlines() if "Replacements " in line]
        assert len(said) == bool(words) and all(words in line for line in said)


def test_card_of_a_real_run(clean: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    rows = [
        {"text": f"문의는 {PHONE}로 주세요. 오늘은 맑다. <b>내일</b>은 흐리다.", "source": "편지"},
        {"text": "비가 온다."},
    ]
    path = tmp_path / "letters.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    counts = clean(path)
    for page in pages(tmp_path / "out"):
        assert f"{counts['sentences']:,}" in page
        assert "편지" in page
        assert "html tag" in page

"""Recorded results of the corpus stage on varied text."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus.config import CorpusConfig
from corpus.decontamination.benchmarks import find_benchmarks
from corpus.decontamination.index import build_index
from corpus.noise.remove import NOISE_RULES, remove_noise, rules_except
from corpus.pii.detect import find_pii
from corpus.pii.formats.account_brn_card import business_check_digit, luhn_check_digit
from corpus.pii.formats.shapes import digits_of, draw_digits, is_birth_date, looks_typed
from corpus.pii.formats.table import BY_NAME
from corpus.pii.hide import PiiHider
from corpus.pii.replace import Pseudonymizer
from corpus.pii.types import ALL_TYPES, LABEL_WORDS
from corpus.quality import fineweb2
from corpus.quality.characters import read_characters
from corpus.quality.han_kana import has_many_han_or_kana, has_too_many_han_or_kana
from corpus.quality.mojibake import repair_mojibake
from corpus.quality.rules import failed_by_documents, failed_by_sentences
from corpus.reading.inputs import find_inputs
from corpus.reading.namumark import plain_text
from corpus.run import CorpusInputs, run
from corpus.sentences.split import split_sentences
from corpus.sentences.wrapping import rejoin_lines
from launch.sample.unpack import read_archive
from tests.corpus.pii.layouts.draw import draw_case
from tests.corpus.pii.marked_texts import FOLDER, read_marked
from tests.same_results.mangling import mangle
from tests.same_results.recording import check_recorded, groups

SOURCES = ("news", "encyclopedia", "reviews", "dialogue")
SECRET = bytes(32)
MARKUP = (
    "[[", "]]", "|", "[* ", "[*가 ", "]", "{{{", "}}}", "{{{#red ", "#!wiki style\n", "#!folding 글\n",
    "[include(틀:가", ")]", "[br]", "[math(", "[age(1990-01-01)]", "== ", " ==", "||", "<-2>", "'''", "''", "__", "~~",
    "--", "^^", ",,",
    ">", " * ", "\n", "\n", "##", "[목차]", "파일:가.png", "분류:가", "가나", "다.", " ", " ", "https://example.com",
    "\\", "<math>", "</math>",
)  # fmt: skip


@cache
def sample_records() -> list[dict[str, Any]]:
    """Documents of the sample: all that contain personal data, and 40 others of each source."""
    files = {
        Path(path).name: content.decode("utf-8", "replace")
        for path, content in read_archive("documents.tar.zst").items()
    }
    marked = {json.loads(line)["id"] for line in files["pii_truth.jsonl"].splitlines()}
    records = []
    for source in SOURCES:
        of_source = [json.loads(line) for line in files[f"{source}.jsonl"].splitlines()]
        records += [record for record in of_source if record["id"] in marked]
        records += [record for record in of_source if record["id"] not in marked][:40]
    return records


@cache
def varied_texts(seed: int = 1) -> list[str]:
    rng = Random(seed)
    return [mangle(record["text"], rng, rng.randrange(6)) for record in sample_records()]


@cache
def register_texts() -> list[str]:
    """The labelled texts of the detector's tests, varied."""
    rng = Random(5)
    paths = sorted(path for path in FOLDER.rglob("*.txt"))
    return [mangle(marked.text, rng, rng.randrange(1, 4)) for path in paths for marked in read_marked(path)]


def test_personal_data(tmp_path: Path) -> None:
    texts = [*varied_texts(), *register_texts(), *(draw_case(Random(number)).text for number in range(1000))]
    found = [find_pii(text, frozenset(ALL_TYPES)) for text in texts]
    check_recorded("pii_found", groups(found, 20), tmp_path)


def numbers_of(rng: Random) -> dict[str, list[str]]:
    """Numbers over the ranges that their kinds allow, and just outside of them."""
    digits = partial(draw_digits, rng)
    dates = [
        f"{yy:02}{month:02}{day:02}"
        for yy in (0, 4, 21, 99)
        for month in range(14)
        for day in (0, 1, 28, 29, 30, 31, 32)
    ]
    cards = [f"{first}{digits(11)}" for first in range(1000, 10000, 7)] + [f"3{n}{digits(12)}" for n in range(30, 80)]
    letters = "가나하허호배바국합육해공조도보주수부구모자대사각"
    return {
        "dates": [f"{date}-{century}{digits(6)}" for date in dates for century in rng.sample("0123456789", 2)],
        "tel": [f"{first:03}-{digits(n)}-{digits(4)}" for first in range(100) for n in (2, 3, 4, 5)]
        + [f"{first}-{digits(4)}" for first in range(1400, 2000, 2)],
        "plate": [f"{n}{rng.choice(letters)}{digits(4)}" for n in range(1000)],
        "card": [f"{one}{luhn_check_digit(one)}" for one in cards] + cards[::9],
        "ip": [f"{a}.{b}.7.9" for a in (9, 10, 11, 100, 126, 127, 128, 168, 169, 171, 172, 173, 191, 192, 193, 240, 255)
               for b in (0, 15, 16, 31, 32, 63, 64, 127, 128, 167, 168, 169, 253, 254, 255)]
        + [f"{a}.{rng.randrange(300)}.{rng.randrange(300)}.{rng.randrange(300)}" for a in range(300)],
        "brn": [f"{one}{business_check_digit(one)}" for one in (f"{n:03}{digits(6)}" for n in range(90, 999, 2))],
        "account": ["-".join(map(digits, rng.choices(range(1, 9), k=rng.randrange(2, 5)))) for _ in range(1200)],
        "any": [digits(rng.randrange(5, 18)) for _ in range(1200)],
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["dates", "tel", "plate", "card", "ip", "brn", "account", "any"])
def test_numbers(kind: str, tmp_path: Path) -> None:
    rng, found = Random(kind), []
    labels = [word for of_type in LABEL_WORDS.values() for word in of_type]
    for number in numbers_of(rng)[kind]:
        grouped = re.sub(r"(?<=\d{4})(?=\d{4})", "-", number)
        before = rng.choice(
            ("", "", f"{rng.choice(labels)} ", f"{rng.choice(labels)}: ", "약 ", "제", "2020-", "신한 ")
        )
        after = rng.choice(("", "", "원", " 명", "개", "으로", ", 끝", "-3", "호", "년", " 억", "번", "%"))
        texts = (number, f"{before}{number}{after}", f"{before}{grouped}{after}", number.replace("-", ""))
        found.append([find_pii(text, frozenset(ALL_TYPES)) for text in texts])
        found[-1].append([looks_typed(digits_of(number)), is_birth_date(f"{digits_of(number):0>6}"[:6], number[-1])])
    check_recorded(f"numbers_{kind}", groups(found, 50), tmp_path)


def test_replacements(tmp_path: Path) -> None:
    """Of the example of each type, and of the values in the labelled texts."""
    values = {(name, kind.example) for name, kind in BY_NAME.items()}
    for text in register_texts():
        values |= {(span.type, text[span.start : span.end]) for span in find_pii(text, frozenset(ALL_TYPES))}
    results: dict[str, list[Any]] = {}
    for name, value in sorted(values):
        count = 40 if value == BY_NAME[name].example else 1
        drawn = [Pseudonymizer(SECRET, f"d{number}").replacement(name, value) for number in range(count)]
        results.setdefault(name, []).append((value, drawn))
    check_recorded("replacements", results, tmp_path)


def test_hidden_personal_data(tmp_path: Path) -> None:
    results: dict[str, Any] = {}
    texts = [*varied_texts()[:200], *register_texts()[::3]]
    for mode in ("replace", "mask", "tag", "drop"):
        hider = PiiHider(mode, SECRET)  # type: ignore[arg-type]
        hidden = [hider.hide(text, f"d{number}") for number, text in enumerate(texts)]
        results |= {f"{mode} {key}": part for key, part in groups(hidden, 20).items()}
    check_recorded("pii_hidden", results, tmp_path)


def test_noise_and_sentences(tmp_path: Path) -> None:
    rows = []
    for text in varied_texts():
        changed: Counter[str] = Counter()
        repaired, repairs = repair_mojibake(text)
        plain = remove_noise(repaired, changed)
        hashtags = remove_noise(text, Counter(), None, rules_except(("caption", "html_tag"), True))
        joined, joints = rejoin_lines(plain)
        rows.append((repairs, plain, sorted(changed.items()), hashtags, joined, joints, split_sentences(joined)))
    check_recorded("noise", groups(rows, 20), tmp_path)


def test_examples_of_noise(tmp_path: Path) -> None:
    rng, rows = Random(6), []
    for rule in [rule for rule in NOISE_RULES for _ in range(12)]:
        changed: Counter[str] = Counter()
        texts = [mangle(rule.before, rng, rng.randrange(3)), rng.choice(varied_texts())[:50]]
        rows.append((remove_noise("\n".join(rng.sample(texts, 2)), changed), sorted(changed.items())))
    check_recorded("noise_examples", groups(rows, 20), tmp_path)


def test_namumark(tmp_path: Path) -> None:
    rng, rows = Random(7), []
    for _ in range(1500):
        text = "".join(rng.choice(MARKUP) for _ in range(rng.randrange(1, 14)))
        rows.append((text, plain_text(text)))
    check_recorded("namumark", groups(rows, 50), tmp_path)


def test_quality(tmp_path: Path) -> None:
    rng = Random(2)
    texts = [mangle("\n".join([text] * rng.choice((1, 1, 2, 5))), rng, 4) for text in varied_texts()]
    sentences, off = [split_sentences(text) for text in texts], [()] * len(texts)
    flat = [sentence for of_text in sentences for sentence in of_text]
    failed = fineweb2.failed_rules(read_characters(texts), texts, 1.9)
    results: dict[str, Any] = {f"rule {name}": np.flatnonzero(places) for name, places in failed.items()}
    results |= groups(failed_by_documents(texts, sentences, off), 100)
    results["sentences"] = failed_by_sentences(flat, [()] * len(flat))
    results["han"] = [
        (has_many_han_or_kana(one), has_too_many_han_or_kana(one), has_too_many_han_or_kana(one, True)) for one in flat
    ]
    check_recorded("quality", results, tmp_path)


def test_decontamination(tmp_path: Path) -> None:
    rng = Random(3)
    documents = [split_sentences(text) for text in varied_texts()]
    items = [mangle(sentence, rng, rng.randrange(3)) for of_text in documents[:80] for sentence in of_text[:3]]
    items += [" ".join(of_text[:2]) for of_text in documents[80:120]]
    index, numbers = build_index(items)
    hits = index.find_in_documents(documents)
    results: dict[str, Any] = {"numbers": numbers, "count": len(hits), **groups(hits, 50)}
    results["weights"] = [sorted(index.weights_of(item).items())[:20] for item in range(0, 60, 3)]
    check_recorded("decontamination", results, tmp_path)


def write_inputs(folder: Path) -> list[str]:
    """The varied documents in files of several formats and encodings, with repeats and damaged records."""
    folder.mkdir()
    rng, texts = Random(4), varied_texts()
    records = [{**record, "text": text} for record, text in zip(sample_records(), texts, strict=True)]
    records += [rng.choice(records) for _ in range(20)]
    lines = [json.dumps(record, ensure_ascii=rng.random() < 0.5) for record in records[:300]]
    lines[10:10] = ["{", '{"id": "x"}', '{"text": 3}', ""]
    (folder / "a.jsonl").write_text("\n".join(lines), "utf-8")
    paragraphs = "\r\n\r\n".join(record["text"].replace("\n\n", "\n") for record in records[300:400])
    (folder / "b.txt").write_bytes(paragraphs.encode("cp949", "ignore"))
    table = pa.table({key: [str(record.get(key)) for record in records[400:]] for key in ("id", "text", "source")})
    pq.write_table(table, folder / "c.parquet", row_group_size=50)
    return [str(folder)]


def test_the_whole_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corpus.assemble.SHARD_DOCUMENTS", 100)
    inputs = write_inputs(tmp_path / "raw")
    (tmp_path / "benchmark.txt").write_text("\n".join(split_sentences(" ".join(varied_texts()[5:30]))), "utf-8")
    settings: dict[str, Any] = {
        "quality": {"enabled": True}, "pii": {"repeatable": True, "extra": ["PERSON"]},
        "min_sentence_chars": {"reviews": 20}, "max_bad_share": 0.1,
    }  # fmt: skip
    config, out = (
        CorpusConfig(inputs=inputs, benchmarks=[str(tmp_path / "benchmark.txt")], **settings),
        tmp_path / "out",
    )
    out.mkdir()
    counts = run(config, CorpusInputs(find_inputs(inputs, {}, "text"), find_benchmarks(config.benchmarks or [])), out)
    results: dict[str, Any] = {"counts": counts}
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        is_table = path.suffix == ".parquet"
        content = pq.read_table(path).to_pylist() if is_table else path.read_bytes().decode("utf-8", "replace")
        results[str(path.relative_to(out))] = content
    check_recorded("corpus_stage", results, tmp_path)

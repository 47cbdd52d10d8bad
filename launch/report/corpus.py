"""What the corpus stage did to the text: sizes, drops with samples, personal data, decontamination.

Before/after examples of personal data come from sentences invented here, never from the corpus: original values appear
in no output.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from corpus.card.write import PII_NAMES
from corpus.pii.detect import Span, find_pii
from corpus.pii.key import seeded_secret
from corpus.pii.protect import Protection
from launch.report.blocks import Bar, Bars, Block, Marked, MarkedRow, Part, Section, Table, Text
from launch.report.gather import count, read_json, share

SHOWN_SOURCES = 12
SAMPLES_PER_RULE = 2
SAMPLE_CHARS = 120

INVENTED = (
    "담당자 휴대전화는 010-0123-4567이고 팩스는 02-123-4567입니다.",
    "서류에 주민등록번호 900101-1980001을 적어 달라고 했다.",
    "외국인등록번호 850312-5970012로 조회되지 않습니다.",
    "자료는 gaeun.kim@example.com으로 보내 주세요.",
    "접속한 주소는 6.12.34.56이었다.",
    "공유기 MAC 주소는 00-00-5E-00-53-1A로 나옵니다.",
    "자세한 소식은 @malmoi_daily에서 전합니다.",
    "받는 곳은 서울특별시 종로구 말모이로 12, 304호입니다.",
    "한빛은행 계좌번호 110-123-456789로 입금해 주십시오.",
    "여권번호 M123A4567을 다시 확인했다.",
    "운전면허번호는 11-12-345678-90이라고 적혀 있다.",
    "사업자등록번호 123-45-67891로 세금계산서를 끊었다.",
    "건강보험증 번호 1-2345678901을 불러 주세요.",
    "카드번호 4000-0012-3456-7899로 결제했습니다.",
    "주차된 차는 12가 0034였다.",
    "신청은 https://www.example.com/apply에서 받는다.",
)


def corpus_sections(run: Path) -> list[Section]:
    """Three sections: sizes and drops, personal data, decontamination."""
    folder = run / "corpus"
    statistics = read_json(folder / "statistics.json")
    return [_sizes(statistics, folder), _personal_data(statistics), _decontamination(folder)]


def _sizes(statistics: dict[str, Any], folder: Path) -> Section:
    columns = ("documents", "sentences", "words", "characters", "bytes")
    largest = sorted(statistics["sources"].items(), key=lambda item: (-item[1]["characters"], item[0]))
    rows = [_size(name, found, columns) for name, found in largest[:SHOWN_SOURCES]]
    if len(largest) > SHOWN_SOURCES:
        rows.append([f"… and {count(len(largest) - SHOWN_SOURCES)} smaller sources", *("" for _ in columns), ""])
    rows.append(_size("all", statistics["total"], columns))
    blocks: list[Block] = [
        Table(["source", *columns, "sentences dropped"], rows, numbers=range(1, 7)),
        *_drops(statistics["total"], folder),
    ]
    unreadable = statistics["records"]["rejected"]
    if unreadable:
        reasons = ", ".join(f"{reason.replace('_', ' ')} {count(n)}" for reason, n in unreadable.items())
        blocks.append(Text(f"Records that could not be read, kept in corpus/quarantine with file and line: {reasons}."))
    return Section("Corpus", blocks)


def _size(name: str, found: dict[str, Any], columns: Sequence[str]) -> list[str]:
    return [name, *(count(found[column]) for column in columns), count(sum(found["dropped_sentences"].values()))]


def _drops(total: dict[str, Any], folder: Path) -> list[Block]:
    examples = _samples(folder)
    dropped = [
        [rule.replace("_", " "), count(n), share(n, total["sentences_split"]), " ／ ".join(examples.get(rule, []))]
        for rule, n in total["dropped_sentences"].items()
    ]
    changed = [[rule.replace("_", " "), count(n)] for rule, n in total["changed"].items()]
    documents = [[rule.replace("_", " "), count(n)] for rule, n in total["dropped_documents"].items()]
    return [
        Table(["rule", "sentences", "share", "samples"], dropped, numbers=(1, 2), title="Dropped sentences"),
        Table(["rule", "documents"], documents, numbers=(1,), title="Dropped documents"),
        Table(["rule", "times"], changed, numbers=(1,), title="What was cut out of sentences that stayed"),
    ]


def _samples(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((folder / "dropped").glob("*.parquet")):
        for row in pq.read_table(path, columns=["rule", "text"]).to_pylist():
            rule, text = row["rule"].partition(":")[0], row["text"]
            if len(found[rule]) < SAMPLES_PER_RULE:
                found[rule].append(text if len(text) <= SAMPLE_CHARS else text[:SAMPLE_CHARS] + "…")
    return found


def _personal_data(statistics: dict[str, Any]) -> Section:
    total = statistics["total"]
    touched = share(total["sentences_with_pii"], total["sentences"])
    most = max(1, *total["pii"].values())
    return Section(
        "Personal data",
        [
            Text(
                f"{count(sum(total['pii'].values()))} values replaced in {count(total['sentences_with_pii'])} "
                f"sentences ({touched}; the paper: 1.2 %). Types as in Table 29."
            ),
            Bars([Bar(PII_NAMES[name], name, n / most, count(n)) for name, n in total["pii"].items()]),
            Marked([_before_and_after(sentence) for sentence in INVENTED], "Invented sentences, before and after"),
        ],
    )  # fmt: skip


def _before_and_after(sentence: str) -> MarkedRow:
    spans = find_pii(sentence)
    after = Protection("replace", seeded_secret(0)).hide(sentence, "report")
    names = ", ".join(dict.fromkeys(span.type for span in spans))
    return MarkedRow(names or "none", _parts(sentence, spans), _parts(after, find_pii(after)))


def _parts(text: str, spans: list[Span]) -> list[Part]:
    parts, position = [], 0
    for span in spans:
        parts += [Part(text[position : span.start]), Part(text[span.start : span.end], True)]
        position = span.end
    return [part for part in [*parts, Part(text[position:])] if part.text]


def _decontamination(folder: Path) -> Section:
    found = read_json(folder / "decontamination.json")
    rows = [
        [task, count(row["items"]), count(len(row["found"])), count(row["dropped_sentences"])]
        for task, row in found["tasks"].items()
    ]
    if not rows:
        return Section("Decontamination", [Text("No benchmark files were given; nothing was kept out.")])
    settings = found["settings"]
    examples = [
        [task, example["item"], example["sentence"]]
        for task, row in found["tasks"].items()
        for example in row["examples"][:1]
    ]
    blocks: list[Block] = [
        Text(
            f"A corpus sentence goes when it covers {settings['threshold']:.0%} or more of a benchmark sentence's BM25 "
            f"weight (character {settings['ngram']}-grams)."
        ),
        Table(["task", "benchmark items", "found in the corpus", "sentences dropped"], rows, numbers=(1, 2, 3)),
    ]
    if examples:
        blocks.append(Table(["task", "benchmark item", "sentence dropped"], examples, title="One example each"))
    return Section("Decontamination", blocks)

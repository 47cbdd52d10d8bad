"""Quality rules in the stage: what goes under which name, what stays, and the 3,000 documents of the web mix."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from corpus.documents.errors import BadInput
from corpus.documents.shards import read_documents, shard_paths
from corpus.quality import boilerplate
from corpus.quality.rules import failed_by_documents, failed_by_sentences
from tests.corpus.quality.test_fineweb2 import PROSE
from tests.corpus.quality.web_mix import summarize, web_mix

Clean = Callable[..., dict[str, Any]]
ON = {"enabled": True}
DAMAGED = "새벽마다 시장에 나가셨다. 비가 오는 날이면 조용했다.".encode().decode("cp949", "replace")


def write(path: Path, texts: list[str], source: str = "web") -> Path:
    rows = ({"id": f"{source}{n}", "text": text, "source": source} for n, text in enumerate(texts))
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def left_in(out: Path) -> dict[str, list[str]]:
    return {
        document.id: list(document.sentences)
        for shard in shard_paths(out / "documents")
        for document in read_documents(shard)
    }


def failed_by(text: str, *names: str) -> str | None:
    return failed_by_documents([text], [text.split("\n")], [names])[0]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (PROSE, None),
        ("The weather was cold, so we stayed at home. 비가 왔다. And we read until evening.", "is_not_korean"),
        (DAMAGED, "is_mojibake"),
        ("12 30 41 52.", "is_not_korean"),
        (PROSE.replace("\n", " "), None),  # its line ends are lost
        (PROSE.replace(".\n", " ").replace("었다.", "었다"), None),
        (PROSE.replace(".", "").replace("다", "기"), "few_final_lines"),
        ("\n".join(f"- {line}" for line in PROSE.split("\n")), None),  # a dialogue
        ("\n".join(f"- {line[:-2]}" for line in PROSE.split("\n")) + "\n- 끝.", "many_bullet_lines"),
    ],
)  # fmt: skip
def test_documents_fail_by_their_name(text: str, rule: str | None) -> None:
    assert failed_by(text) == rule
    if rule:
        assert failed_by(text, rule) != rule


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("비가 왔다.", None),
        ("그는 Norwegian Academy of Science and Letters의 회원이다.", None),
        ("OK!", None),
        ("This is all English text.", "is_not_korean"),
        ("https://example.com/aaaa/bbbb", "is_not_korean"),
        ("!!!!!!!!!!!!", "has_few_letters"),
        ("1 2 3 4 5 6 7 8 9", "has_few_letters"),
        ("뀞뀘븯녕", "is_mojibake"),
        ("시간됬어 다모여 떙떙땡", None),
        ("가나 " * 700, "is_too_long"),
        ("가나 " * 600, None),
    ],
)
def test_sentences_fail_by_their_name(sentence: str, rule: str | None) -> None:
    assert failed_by_sentences([sentence], [()]) == [rule]
    assert failed_by_sentences([PROSE, sentence], [(), {rule}])[1] != (rule or "")


def test_every_loss_is_counted_and_sampled(tmp_path: Path, clean: Clean) -> None:
    english = "The weather was cold, so we stayed at home."
    texts = [f"{PROSE}\n{english}\n!!!!!", english * 3, PROSE.replace("시장", "장터").encode().decode("latin-1")]
    path = write(tmp_path / "a.jsonl", texts)
    off = clean(path, out="off", deduplicate={"sentences": False})
    counts = clean(path, quality=ON, deduplicate={"sentences": False})
    assert left_in(tmp_path / "out") == {"web0": PROSE.split("\n"), "web2": PROSE.replace("시장", "장터").split("\n")}
    assert counts["dropped_documents"] == {"is_not_korean": 1}
    assert counts["dropped_sentences"] == {"is_not_korean": 2, "has_few_letters": 1}
    assert counts["changed"]["mojibake"] == 6 and "mojibake" not in off["changed"]
    assert counts["sentences_split"] == counts["sentences"] + sum(counts["dropped_sentences"].values())
    rows = pq.read_table(tmp_path / "out" / "dropped" / "samples.parquet").to_pylist()
    assert {(row["rule"], row["text"]) for row in rows} >= {("is_not_korean", english), ("has_few_letters", "!!!!!")}
    assert any(row["document"] == "web1" for row in rows)
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    chars = [len("".join(text.split("\n"))) for text in (PROSE, english, english * 3)]
    few, before = 2 * chars[0] + 5, 2 * chars[0] + 5 + chars[1] + chars[2]
    lines = len(PROSE.split("\n"))
    assert f"| has few letters | 2 | {2 * lines + 1} → {2 * lines} | {few} → {2 * chars[0]} |" in card
    assert f"| is not korean | 3 → 2 | {2 * lines + 3} → {2 * lines + 1} | {before} → {few} |" in card
    assert len(left_in(tmp_path / "off")) == 3


def test_rules_are_switched_off_by_source(tmp_path: Path, clean: Clean) -> None:
    path = write(tmp_path / "a.jsonl", [PROSE, f"{PROSE} 끝이다.\n!!!!!"])
    rules_off = {"web": ["has_few_letters"], "other": ["is_not_korean"]}
    clean(path, quality={**ON, "rules_off": rules_off}, deduplicate={"sentences": False})
    assert left_in(tmp_path / "out")["web1"][-1] == "!!!!!"
    with pytest.raises(BadInput, match=r'no quality rule "letters"; the rules are is_mojibake, .*is_boilerplate'):
        clean(path, quality={"rules_off": {"web": ["letters"]}}, out="wrong")


def test_boilerplate_is_dropped_by_source_for_any_units(
    tmp_path: Path, clean: Clean, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boilerplate, "MAX_DOCUMENTS", 3)
    menu, thanks, notice = "로그인 회원가입", "고맙습니다.", "이 글을 다른 곳에 옮기려면 미리 알려 주시기 바랍니다."
    prose = [
        "\n".join(f"{word}에서 {line}" for line in PROSE.split("\n"))
        for word in ("장터", "포구", "골목", "들판", "강변")
    ]
    web = [f"{menu}\n{text} {thanks}\n{notice}" for text in prose[:4]] + [f"{prose[4]}\n{menu}\n{menu}"]
    blog = [f"{text.replace('에서', '밖에서')}\n{menu}\n{menu}" for text in prose[:3]]
    paths = [write(tmp_path / "a.jsonl", web), write(tmp_path / "b.jsonl", [*blog, blog[0]], "blog")]
    settings = {"quality": ON, "deduplicate": {"sentences": False}, "pii": {"mode": "keep"}}
    counts = clean(*paths, **settings)
    assert counts["dropped_sentences"] == {"duplicate_document": 8, "is_boilerplate": 6 + 4}
    left = left_in(tmp_path / "out")
    assert all(left[f"web{n}"] == [*prose[n].split("\n"), thanks] for n in range(4))
    assert left["web4"] == prose[4].split("\n")
    assert left["blog0"][-2:] == [menu, menu]  # in three documents and a duplicate
    clean(*paths, out="two", workers=2, **settings)
    assert left_in(tmp_path / "two") == left


@pytest.mark.slow
def test_the_web_mix_is_kept_and_dropped_as_labelled(
    tmp_path: Path, clean: Clean, shared: Callable[[str], Path]
) -> None:
    mix = web_mix(shared("data").parent)
    path = write(tmp_path / "a.jsonl", [document.text for document in mix], "")
    deduplicate = {"documents": False, "sentences": False}
    clean(path, quality=ON, pii={"mode": "keep"}, deduplicate=deduplicate, keep_hashtag_words=True)
    left = left_in(tmp_path / "out")
    found = summarize(mix, ["\n".join(left[str(n)]) if str(n) in left else None for n in range(len(mix))])
    assert found["all"] >= 0.97
    assert round(found["good_lost"], 4) <= 0.01

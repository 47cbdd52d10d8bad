"""Plain text through ``malmoi pii``: blocks of lines, line ends, JSON among the lines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.pii.hide import PiiHider
from launch.pii import plain_text
from launch.pii.plain_text import blocks_of, find_in_block, hide_in_block
from launch.pii.streams import line_blocks
from launch.pii.work import Finding, Hiding

Malmoi = Callable[..., subprocess.CompletedProcess[bytes]]
LINE = "문의는 010-0123-4567로 주세요."


def records(result: subprocess.CompletedProcess[bytes]) -> list[dict[str, object]]:
    return [json.loads(line) for line in result.stdout.decode().splitlines()]


def refuse(place: str, reason: str, raw: str) -> None:
    raise AssertionError(f"{place}: {reason}")


def test_detect_writes_a_record_for_every_line(malmoi: Malmoi) -> None:
    found = records(malmoi("detect", "-", stdin=f"{LINE}\n\n맑다.\n"))
    assert [record["spans"] for record in found] == [[[4, 17, "TEL"]], [], []]


def test_a_label_may_be_in_the_line_before(malmoi: Malmoi) -> None:
    text = "계좌번호\n110-260-549660\n"
    assert [r["spans"] for r in records(malmoi("detect", "-", stdin=text))] == [[], [[0, 14, "ACCOUNT"]]]
    assert malmoi("replace", "-", "--mode", "mask", stdin=text).stdout.decode() == "계좌번호\n***-***-******\n"


def test_a_value_over_a_line_end_is_shown_and_hidden_in_both_lines(malmoi: Malmoi) -> None:
    text = "연락처는 010-\n0123-4567 입니다\n"
    assert [r["spans"] for r in records(malmoi("detect", "-", stdin=text))] == [[[5, 9, "TEL"]], [[0, 9, "TEL"]]]
    masked = malmoi("replace", "-", "--mode", "mask", stdin=text).stdout.decode()
    assert masked == "연락처는 ***-\n****-**** 입니다\n"


def test_the_head_of_a_table_counts_in_later_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_text, "BLOCK_LINES", 3)
    rows = "".join(f"나온{letter},110260549{number}\n" for number, letter in enumerate("가나다라마바사아자차", 100))
    text = "이름,계좌번호\n" + rows
    blocks = list(blocks_of(chain.from_iterable(line_blocks([text])), refuse, refuses_json=True))
    assert len(blocks) > 3 and "".join(line.text + line.end for block in blocks for line in block.lines) == text
    found = [json.loads(line) for block in blocks for line in find_in_block(block, Finding()).splitlines()]
    assert [record["text"] for record in found] == text.splitlines()
    assert [len(record["spans"]) for record in found] == [0, *[1] * 10]


@pytest.mark.parametrize("text", [f"{LINE}\r\n맑다.\r\n", f"맑다.\n{LINE}", f"\r\n\n{LINE}\n\r\n", ""])
def test_line_ends_stay_as_they_are(malmoi: Malmoi, text: str) -> None:
    out = malmoi("replace", "-", "--mode", "tag", stdin=text).stdout.decode()
    assert out == text.replace("010-0123-4567", "[TEL]")


@given(st.text(alphabet="가나 \n\r\tab.", max_size=60), st.lists(st.integers(0, 60), max_size=3))
def test_text_without_personal_data_keeps_every_byte(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(text)]
    pieces = iter([text[start:end] for start, end in pairwise(places)])
    blocks = blocks_of(chain.from_iterable(line_blocks(pieces)), refuse, refuses_json=True)
    assert "".join(hide_in_block(block, Hiding(PiiHider())) for block in blocks) == text


def test_nfd_text_that_holds_nothing_stays_nfd_and_spans_count_nfc(malmoi: Malmoi) -> None:
    decomposed = "\u1112\u1161\u11ab\u1100\u116e\u11a8"  # 한국 (Korea) in conjoining jamo
    assert malmoi("replace", "-", stdin=decomposed).stdout.decode() == decomposed
    [record] = records(malmoi("detect", "-", stdin=f"{decomposed} 010-0123-4567"))
    assert record == {"text": "한국 010-0123-4567", "spans": [[3, 16, "TEL"]]}


@pytest.mark.parametrize(
    ("mode", "shown"), [("mask", "문의는 ***-****-****로 주세요."), ("tag", "문의는 [TEL]로 주세요."), ("drop", "")]
)
def test_personal_data_may_be_hidden_otherwise(malmoi: Malmoi, mode: str, shown: str) -> None:
    result = malmoi("replace", "-", "--mode", mode, stdin=f"맑다.\n{LINE}\n흐리다.\n")
    assert result.stdout.decode() == f"맑다.\n{shown}\n흐리다.\n"


def test_dropping_goes_by_sentences_and_includes_a_value_that_the_line_before_names(malmoi: Malmoi) -> None:
    text = f"맑다. {LINE} 흐리다.\n계좌번호\n110-260-549660\n끝\n"
    assert malmoi("replace", "-", "--mode", "drop", stdin=text).stdout.decode() == "맑다. 흐리다.\n계좌번호\n\n끝\n"


def test_a_value_maps_alike_in_all_of_a_text(malmoi: Malmoi) -> None:
    text = f"{LINE}\n\n" * 3
    lines = set(malmoi("replace", "-", stdin=text).stdout.decode().split())
    assert len(lines) == 3 and "010-0123-4567로" not in lines


def test_without_a_seed_no_two_runs_are_alike(malmoi: Malmoi) -> None:
    text = "\n".join(f"연락처 010-0123-{number}" for number in range(4000, 4020))
    outputs = [malmoi("replace", "-", *seed, stdin=text).stdout for seed in (("--seed", "1"), ("--seed", "1"), (), ())]
    assert outputs[0] == outputs[1] and len(set(outputs)) == 3


def test_a_json_object_among_the_lines_is_refused_with_the_option_to_use(malmoi: Malmoi) -> None:
    text = '글이다.\n{"text": "010-0123-4567"}\n'
    result = malmoi("replace", "-", stdin=text)
    assert result.returncode == 2
    assert "standard input: line 2 is a JSON object" in result.stderr.decode() and b"--format jsonl" in result.stderr
    assert malmoi("replace", "-", "--format", "text", "--mode", "tag", stdin=text).stdout.decode() == (
        '글이다.\n{"text": "[TEL]"}\n'
    )


def test_an_endless_line_is_refused(malmoi: Malmoi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corpus.reading.containers.RECORD_BYTES", 1_000)
    text = "가" * 5_000 + f"\n{LINE}\n"
    assert "line 1: longer than" in malmoi("replace", "-", stdin=text).stderr.decode()
    skipped = malmoi("replace", "-", "--mode", "tag", "--on-error", "skip", stdin=text)
    assert (skipped.returncode, skipped.stdout.decode()) == (0, "문의는 [TEL]로 주세요.\n")

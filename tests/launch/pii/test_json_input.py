"""JSON through ``malmoi pii``: only chosen strings change, whatever surrounds them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.pii.hide import PiiHider
from corpus.reading.containers import UnreadableRecord
from launch.pii.json_text import Walker, change_record, pieces_of, read_document
from launch.pii.run import sniff_kind
from launch.pii.work import EVERYTHING, Hiding, map_strings, paths_of
from tests.growth.clock import steep_growth

Malmoi = Callable[..., subprocess.CompletedProcess[bytes]]
TEL = "010-0123-4567"

KEYS = st.sampled_from(["text", "body", "a.b", "a", "b", "spans", "가", 'q"', "/~"])
TEXTS = st.sampled_from(["", "맑다.", f"문의 {TEL}", 'x"\\y', "\n\t", f"{TEL}\u2028", "[1, {"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
RECORDS = st.dictionaries(KEYS, VALUES, max_size=4)
FIELDS = st.none() | st.lists(st.sampled_from(["text", "body", "a.b", "a", "b.text"]), min_size=1, max_size=3)
TAGS = Hiding(PiiHider("tag"))


@given(RECORDS, FIELDS, st.sampled_from([None, 1]), st.booleans())
def test_a_record_changes_as_the_object_it_is_read_from(
    record: dict[str, Any], fields: list[str] | None, indent: int | None, is_ascii: bool
) -> None:
    raw = json.dumps(record, indent=indent, ensure_ascii=is_ascii)
    paths = paths_of(fields)
    expected = map_strings(record, paths, lambda text, label, _: TAGS.hidden(text, "0", label))
    try:
        found = change_record(raw, Walker(paths), TAGS, 0)
    except UnreadableRecord as error:
        assert str(error) == "text_is_not_a_string"  # a field named holds a number
        return
    assert json.loads(found) == expected
    if expected == record:
        assert found == raw


@given(st.lists(RECORDS, max_size=4) | st.dictionaries(KEYS, st.lists(RECORDS, max_size=3) | TEXTS))
def test_a_document_comes_apart_at_its_records(document: Any) -> None:
    raw = json.dumps(document, ensure_ascii=False, indent=1)
    pieces = list(pieces_of(raw))
    assert "".join(piece for _, piece in pieces) == raw
    lists = [document] if isinstance(document, list) else [value for value in document.values() if value]
    wanted = [record for value in lists if isinstance(value, list) for record in value]
    assert [json.loads(piece) for is_record, piece in pieces if is_record] == wanted


@pytest.mark.parametrize("raw", ['{"a": 1', "[1, 2", '{"a": "x', "{]", "x", "[tru]", '{"a": 1} {"b": 2}', "01,", ""])
def test_what_is_no_document_is_refused(raw: str) -> None:
    with pytest.raises(UnreadableRecord):
        read_document([raw])


def test_a_document_that_is_too_long_asks_for_json_lines(malmoi: Malmoi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("launch.pii.json_text.DOCUMENT_CHARS", 100)
    result = malmoi("replace", "-", "--format", "json", stdin=json.dumps([{"text": "가" * 200}]))
    assert result.returncode == 2 and b"convert it to JSON Lines" in result.stderr


def test_numbers_of_any_length_repeated_keys_and_blanks_stay(malmoi: Malmoi) -> None:
    number = "9" * 5_000
    raw = f'{{ "n":{number},"n": 1.10, "text":"{TEL}" ,\t"text" : "둘째 {TEL}" }}\r\n'
    out = malmoi("replace", "-", "--mode", "tag", stdin=raw).stdout.decode()
    assert out == raw.replace(TEL, "[TEL]")
    found = malmoi("detect", "-", stdin=raw).stdout.decode()
    assert found.count(number) == 1 and found.endswith('"spans": [[0, 13, "TEL"], [3, 16, "TEL"]]}\n')


def test_lone_surrogates_keep_their_escape(malmoi: Malmoi) -> None:
    raw = f'{{"text": "\\ud800 {TEL}"}}\n'
    assert malmoi("replace", "-", "--mode", "tag", stdin=raw).stdout.decode() == raw.replace(TEL, "[TEL]")
    assert b'"spans": [[2, 15, "TEL"]]' in malmoi("detect", "-", stdin=raw).stdout


def test_deep_json_is_one_sentence(malmoi: Malmoi, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text":' + "[" * 100_000 + "]" * 100_000 + "}\n", "utf-8")
    result = malmoi("replace", "a.jsonl", "b.jsonl")
    assert result.returncode == 2 and b"line 1: JSON is nested too deeply" in result.stderr
    assert b"json_too_deep 1" in malmoi("replace", "a.jsonl", "b.jsonl", "--on-error", "skip").stderr


def test_changing_nested_lists_takes_linear_time() -> None:
    def change(raw: str) -> object:
        return Walker(EVERYTHING).change(raw, lambda text, _: text)

    assert steep_growth(change, lambda chars: "[" * (chars // 6) + '"a"' + ',"b"]' * (chars // 6), 64_000) is None


def test_a_number_that_is_split_over_fields_is_hidden_in_all_of_them(malmoi: Malmoi) -> None:
    rows = [
        {"jumin1": "870523", "jumin2": "1234567", "n": 1},
        {"tel1": "010", "tel2": "3847", "tel3": "2291", "memo": "맑다."},
        {"폰": ["010", "3847", "2291"], "수량": ["12", "30"]},
        {"more": {"앞번호": "870523", "뒷번호": "1234567"}},
    ]
    raw = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    out = [json.loads(x) for x in malmoi("replace", "-", "--all-fields", stdin=raw).stdout.splitlines()]
    assert all(str(v) not in str(out) for v in ("870523", "1234567", "3847", "2291"))
    assert [len(out[0]["jumin1"]), len(out[1]["tel2"]), out[1]["memo"], out[2]["수량"]] == [6, 4, "맑다.", ["12", "30"]]
    found = [json.loads(x)["spans"] for x in malmoi("detect", "-", "--all-fields", stdin=raw).stdout.splitlines()]
    assert found[0] == {"/jumin1": [[0, 6, "RRN"]], "/jumin2": [[0, 7, "RRN"]]}
    assert found[2] == {"/폰/0": [[0, 3, "TEL"]], "/폰/1": [[0, 4, "TEL"]], "/폰/2": [[0, 4, "TEL"]]}


@pytest.mark.parametrize(
    "document",
    [
        {"tel1": "010", "tel2": "3847", "tel3": "2291"},
        {"owner": {"앞번호": "870523", "뒷번호": "1234567"}, "rows": [{"tel1": "010", "tel2": "3847", "tel3": "2291"}]},
        {"rows": [{"n": 1}, {"n": 2}], "폰": ["010", "3847", "2291"]},
        ["010", "3847", "2291"],
    ],
)
def test_a_split_number_is_hidden_in_a_document_of_any_form(document: Any, malmoi: Malmoi) -> None:
    raw = json.dumps(document, ensure_ascii=False)
    for mode in ("replace", "mask"):
        out = malmoi("replace", "-", "--format", "json", "--all-fields", "--mode", mode, stdin=raw).stdout
        assert not any(value in out.decode() for value in ("870523", "1234567", "3847", "2291"))


def test_fields_are_paths_and_all_fields_reach_every_depth(malmoi: Malmoi) -> None:
    record = {"title": TEL, "author": {"name": "김가온", "phone": TEL}, "posts": [{"body": TEL}, {"body": "맑다."}]}
    raw = json.dumps(record, ensure_ascii=False)

    def spans(*options: str) -> Any:
        return json.loads(malmoi("detect", "-", *options, stdin=raw).stdout)["spans"]

    tel = [[0, 13, "TEL"]]
    assert spans("--fields", "title") == {"/title": tel}
    assert spans("--fields", "author, posts.body") == {"/author/phone": tel, "/posts/0/body": tel}
    assert spans("--all-fields") == {"/title": tel, "/author/phone": tel, "/posts/0/body": tel}
    out = json.loads(malmoi("replace", "-", "--all-fields", "--mode", "tag", stdin=raw).stdout)
    wanted = {"title": "[TEL]", "author": {"name": "김가온", "phone": "[TEL]"}}
    assert out == wanted | {"posts": [{"body": "[TEL]"}, {"body": "맑다."}]}


def test_a_key_announces_what_it_holds(malmoi: Malmoi) -> None:
    raw = '{"계좌번호": "110260549660", "수량": "110260549660"}'
    found = json.loads(malmoi("detect", "-", "--all-fields", stdin=raw).stdout)["spans"]
    assert found["/계좌번호"] == [[0, 12, "ACCOUNT"]] != found.get("/수량")


def test_records_with_the_same_id_are_one_document(malmoi: Malmoi) -> None:
    rows = [{"id": "1", "text": TEL}, {"text": TEL, "id": "1"}, {"id": "2", "text": TEL}]
    raw = "".join(json.dumps(row) + "\n" for row in rows)
    texts = [json.loads(line)["text"] for line in malmoi("replace", "-", stdin=raw).stdout.splitlines()]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"text": \n', "line 1: not JSON"),
        (b'{"body": "x", "n": 1}\n', "found: body, n); set --fields or --all-fields"),
        (b'{"text": "\xff"}\n', "line 1: not valid UTF-8"),
        (b'{"text": "a"}\n[1]\n', "line 2: expected a JSON object"),
        (b'{"text": "a"}\n{"text": 1012345678}\n', "line 2: a selected field is a number"),
    ],
)
def test_a_broken_record_is_refused_and_no_output_is_left(
    malmoi: Malmoi, content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / "in.jsonl").write_bytes(content)
    result = malmoi("replace", "in.jsonl", "out.jsonl")
    assert result.returncode == 2 and words in result.stderr.decode()
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize(
    ("raw", "fields", "words"),
    [
        (f'{{"a": "{TEL}"}}', "text", "found: a)"),
        (f'{{"meta": {{"text": "{TEL}"}}}}', "text", "found: meta, meta.text)"),
        (f'[{{"a": "{TEL}"}}, {{"b": "c"}}]', "nothing", "found: a)"),
        (f'{{"rows": [{{"a": "{TEL}"}}]}}', "nothing", "found: rows, a)"),
        (f'["{TEL}"]', "text", "there are no keys; set --all-fields"),
        (f'"{TEL}"', "text", "there are no keys; set --all-fields"),
    ],
)
@pytest.mark.parametrize("command", ["replace", "detect"])
def test_nothing_is_printed_of_a_document_without_a_chosen_field(
    malmoi: Malmoi, tmp_path: Path, raw: str, fields: str, words: str, command: str
) -> None:
    (tmp_path / "a.json").write_text(raw, "utf-8")
    result = malmoi(command, "a.json", "--fields", fields)
    assert (result.returncode, result.stdout) == (2, b"") and words in result.stderr.decode()


DOCUMENTS = {
    f'[{{"text": "{TEL}"}}, {{"text": "맑다."}}]': 2,
    f'{{"version": 1.0, "data": [{{"text": "{TEL}"}}\n]}}': 1,
    f'{{\n "text": "{TEL}",\n "tags": [{{"name": "x"}}]\n}}': 1,
    f'{{"text": "{TEL}"}}\n{{"text": "맑다."}}\n': 2,
}


@pytest.mark.parametrize(("raw", "records"), DOCUMENTS.items())
def test_json_files_hold_arrays_objects_or_lines(malmoi: Malmoi, tmp_path: Path, raw: str, records: int) -> None:
    (tmp_path / "a.JSON").write_text("\ufeff \n" + raw, "utf-8")
    assert malmoi("replace", "a.JSON", "b.json", "--mode", "tag").returncode == 0
    assert (tmp_path / "b.json").read_text("utf-8").strip() == raw.replace(TEL, "[TEL]").strip()
    found = [json.loads(line) for line in malmoi("detect", "a.JSON").stdout.splitlines()]
    assert len(found) == records and found[0]["spans"] == [[0, 13, "TEL"]]


def test_a_skipped_item_leaves_null_in_its_place(malmoi: Malmoi, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"text": "a"}, {"text": 5}, {"text": "b"}]', "utf-8")
    assert malmoi("replace", "a.json", "b.json", "--on-error", "skip").returncode == 0
    assert json.loads((tmp_path / "b.json").read_text("utf-8")) == [{"text": "a"}, None, {"text": "b"}]


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ('{"text": "a"}\n', "jsonl"), ('\n {"text": "long', "jsonl"), ('{\n "a": 1}', "json"), ('[ {"a": 1}]', "json"),
        ("[속보] 글", "text"), ("{중괄호} 글", "text"), ("", "text"), ("[1, 2]", "text"),
    ],
)  # fmt: skip
def test_the_kind_is_sniffed_by_the_beginning(head: str, kind: str) -> None:
    assert sniff_kind(head) == kind

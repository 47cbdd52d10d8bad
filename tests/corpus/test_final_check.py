"""No output file of the stage contains personal data; the final check stops the run if one does."""

from __future__ import annotations

import json
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus import assemble, clean, final_check, run
from corpus.audit import Match
from corpus.card.samples import Sample
from corpus.documents.errors import BadInput
from corpus.documents.shards import SCHEMA, read_documents, shard_paths
from corpus.pii.detect import find_pii, find_pii_in_sentences
from corpus.pii.hide import DocumentHider, PiiHider
from corpus.reading.read import quarantine_line
from tests.corpus.test_stage import Start, exit_codes

PHONE, OTHER_PHONE, MAIL, ACCOUNT = "010-0123-4567", "010-1234-0567", "gaeun.kim@example.com", "110-123-456789"
MODES = ("replace", "mask", "tag", "drop")
STORY = [
    {"id": "a", "source": "편지", "text": f"문의는 {PHONE}로 주세요. 저녁에는 바람이 불었다."},
    {"id": MAIL, "source": f"{MAIL}의 글", "text": f"연락처 {OTHER_PHONE} / {PHONE}입니다. 메일은 {MAIL}이다."},
    {"id": "c", "source": "https://news.example.com", "text": f"한빛은행 계좌번호 {ACCOUNT}로 입금했다. 눈이 내렸다."},
    {"id": "a", "source": "편지", "text": "같은 이름을 쓰는 다른 글이다. 문의는 없다."},
]  # fmt: skip


def write(path: Path, records: list[dict[str, str]], tail: str = "") -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in records) + tail, "utf-8")
    return path


def texts_of(out: Path) -> str:
    """Everything that a run left, as one text."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return "\n".join(
        str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else path.read_text("utf-8") for path in files
    )


def sentences_of(out: Path) -> list[list[str]]:
    return [list(d.sentences) for shard in shard_paths(out / "documents") for d in read_documents(shard)]


@pytest.mark.parametrize("mode", MODES)
def test_no_mode_leaves_an_original_in_any_file(tmp_path: Path, clean: Callable[..., Any], mode: str) -> None:
    tail = '{"text": "０１０－０１２３－４５６７ 010-0123-4567\n'
    name = f"{OTHER_PHONE} 편지.jsonl"
    clean(write(tmp_path / name, STORY, tail), pii={"mode": mode})
    everything = texts_of(tmp_path / "out")
    for value in (PHONE, OTHER_PHONE, MAIL, ACCOUNT, "０１２３"):
        assert value not in everything
    if mode != "replace":
        assert not [
            found for sentences in sentences_of(tmp_path / "out") for found in find_pii_in_sentences(sentences) if found
        ]


def test_values_that_a_new_neighbor_announces_are_hidden(tmp_path: Path, clean: Callable[..., Any]) -> None:
    """The sentence between label and number is dropped as a duplicate; only then the number is announced."""
    between = "그러니 서두르지 말고 천천히 보내 주시면 정말로 고맙겠습니다."
    story = [
        {"id": "first", "text": f"{between} 봄이 왔다."},
        {"id": "second", "text": f"건강보험증 번호다. {between} 1-2345678901 이다. 봄이 왔다."},
    ]
    for mode in MODES:
        counts = clean(write(tmp_path / "a.jsonl", story), out=mode, pii={"mode": mode, "repeatable": True})
        assert counts["dropped_sentences"]["duplicate_sentence"] == 1
        assert "2345678901" not in texts_of(tmp_path / mode)
        if mode == "drop":
            assert counts["dropped_sentences"]["has_personal_data"] == 1
        else:
            assert counts["pii"]["HEALTH"] == counts["sentences_with_pii"] == 1


def test_an_id_that_is_a_value_of_its_text_is_hidden(tmp_path: Path, clean: Callable[..., Any]) -> None:
    """Without a label, eleven digits are no health insurance number."""
    number = "6-2388001262"
    clean(write(tmp_path / "a.jsonl", [{"id": number, "text": f"건강보험증 번호 {number}로 알려 주세요."}]))
    assert number not in texts_of(tmp_path / "out")


def test_benchmarks_with_personal_data_leave_it_in_no_file(
    tmp_path: Path, clean: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its short sentences are quoted, its keys and names listed; the parts of a killed run hold none of them, too."""
    quiz = tmp_path / f"{OTHER_PHONE} 시험.jsonl"
    quiz.write_text(
        "".join(
            json.dumps({"id": id_, "text": text}, ensure_ascii=False) + "\n"
            for id_, text in ((MAIL, f"{PHONE}"), ("b", STORY[0]["text"]), (OTHER_PHONE, STORY[3]["text"]))
        ),
        "utf-8",
    )
    monkeypatch.setattr(run, "_remove", lambda folder: None)
    clean(write(tmp_path / "a.jsonl", STORY), benchmarks=[quiz])
    everything = texts_of_raw(tmp_path / "out")
    report = json.loads((tmp_path / "out" / "decontamination.json").read_text("utf-8"))
    (task,) = report["tasks"].values()
    assert "[TEL]" in task["too_short"]["examples"] and task["found"]
    for value in (PHONE, OTHER_PHONE, MAIL, ACCOUNT):
        assert value.encode() not in everything
    (work,) = (tmp_path / "out").glob(".work-*")
    assert stat.S_IMODE(work.stat().st_mode) == 0o700


def texts_of_raw(out: Path) -> bytes:
    """All bytes, and the rows of tables."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    tables = [str(pq.read_table(path).to_pylist()).encode() for path in files if path.suffix == ".parquet"]
    return b"\n".join([*(path.read_bytes() for path in files), *tables])


def test_samples_are_cut_before_the_final_check(tmp_path: Path, clean: Callable[..., Any]) -> None:
    """Cut behind its eleventh digit, a number of twelve would be one of an account."""
    text = f"{'春' * 20} {'나무 ' * 322}계좌는 1101234567890123456789 이다."
    clean(write(tmp_path / "a.jsonl", [{"text": text}, {"text": "봄이 왔다."}]))
    [row] = pq.read_table(tmp_path / "out" / "dropped" / "samples.parquet").to_pylist()
    assert len(row["text"]) == 1_000 and find_pii(row["text"]) == []


# --- planted originals


def plant_in_documents(monkeypatch: pytest.MonkeyPatch) -> str:
    def write_tables(path: Path, tables: Any) -> int:
        rows = pa.concat_tables(list(tables)).to_pylist()
        rows[0]["sentences"].append(f"연락처 {PHONE}")
        return original(path, [pa.Table.from_pylist(rows, SCHEMA)])

    original = assemble.write_tables
    monkeypatch.setattr(assemble, "write_tables", write_tables)
    return r"documents/shard-00000.parquet, document 1 \(a\), sentence 3"


def plant_in_samples(monkeypatch: pytest.MonkeyPatch) -> str:
    def write_samples(path: Path, samples: list[Sample], *columns: Any) -> None:
        original(path, [sample._replace(text=f"{sample.text} {PHONE}") for sample in samples], *columns)

    original = run.write_samples
    monkeypatch.setattr(run, "write_samples", write_samples)
    return "changed/samples.parquet, row 1, column after"


def plant_in_card(monkeypatch: pytest.MonkeyPatch) -> str:
    def write_card(out: Path, *settings: Any) -> None:
        original(out, *settings)
        with (out / "README.md").open("a", encoding="utf-8") as file:
            file.write(f"\n연락처 {PHONE}\n")

    original = run.write_card
    monkeypatch.setattr(run, "write_card", write_card)
    return "README.md, line [0-9]+"


def plant_in_statistics(monkeypatch: pytest.MonkeyPatch) -> str:
    original = run.summarize
    monkeypatch.setattr(run, "summarize", lambda *given: original(*given) | {"note": f"메일 {MAIL}"})
    return "statistics.json, line [0-9]+"


def plant_in_quarantine(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(
        clean, "quarantine_line", lambda *given: quarantine_line(*given)[:-2] + f', "was": "{PHONE}"}}\n'
    )
    return "quarantine/records.jsonl, line 1"


@pytest.mark.parametrize(
    "plant", [plant_in_documents, plant_in_samples, plant_in_card, plant_in_statistics, plant_in_quarantine]
)
@pytest.mark.parametrize("mode", ["replace", "tag"])
def test_a_remaining_original_stops_the_run_and_is_not_printed(
    tmp_path: Path,
    clean: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], str],
    mode: str,
) -> None:
    path = write(tmp_path / "a.jsonl", STORY, '{"text": "끊겼다\n')
    where = plant(monkeypatch)
    with pytest.raises(
        BadInput, match=f"^{where}, characters [0-9]+ to [0-9]+: found (TEL|EMAIL) that is not a replacement"
    ) as caught:
        clean(path, pii={"mode": mode})
    assert "0123" not in str(caught.value) and "gaeun" not in str(caught.value)


def test_documents_with_an_unchanged_digest_are_not_checked_again(
    tmp_path: Path, clean: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def count(sentences: list[str], *given: Any) -> Any:
        checked.append(sentences)
        return find_pii_in_sentences(sentences, *given)

    checked: list[list[str]] = []
    monkeypatch.setattr(final_check, "find_pii_in_sentences", count)
    path = write(tmp_path / "a.jsonl", STORY)
    clean(path)
    assert checked == []
    plant_in_documents(monkeypatch)
    with pytest.raises(BadInput):
        clean(path, out="planted")
    assert [len(sentences) for sentences in checked] == [3]


def test_a_run_that_keeps_personal_data_is_not_checked(tmp_path: Path, clean: Callable[..., Any]) -> None:
    clean(write(tmp_path / "a.jsonl", STORY), pii={"mode": "keep"})
    assert PHONE in texts_of(tmp_path / "out")


# --- the secret of a run


def test_runs_with_different_secrets_differ_only_in_the_values(tmp_path: Path, clean: Callable[..., Any]) -> None:
    path = write(tmp_path / "a.jsonl", STORY)
    for out in ("one", "two"):
        clean(path, out=out)
    one, two = (
        [[pattern_of(s) for s in sentences] for sentences in sentences_of(tmp_path / out)] for out in ("one", "two")
    )
    assert sentences_of(tmp_path / "one") != sentences_of(tmp_path / "two")
    assert one == two
    for out in ("three", "four"):
        clean(path, out=out, pii={"repeatable": True})
    assert sentences_of(tmp_path / "three") == sentences_of(tmp_path / "four")


def pattern_of(sentence: str) -> str:
    return PiiHider("tag").hide(sentence, "")


def test_a_killed_run_resumes_with_its_own_secret(tmp_path: Path) -> None:
    story = [{"text": f"{n}번째 날의 연락처는 {PHONE}였고 메일은 {MAIL}이었다."} for n in range(60)]
    texts = [str(write(tmp_path / "a.jsonl", story))]
    whole, killed, other = (str(tmp_path / out) for out in ("whole", "killed", "other"))
    first, second = "the first secret", "another secret"
    codes = exit_codes(Start(whole, texts, secret=first), Start(killed, texts, 3, "behind", first))
    assert codes == [0, -signal.SIGKILL]
    [parts] = (tmp_path / "killed").glob(".work-*")
    assert stat.S_IMODE(parts.stat().st_mode) == 0o700
    assert stat.S_IMODE((parts / "secret").stat().st_mode) == 0o600
    assert exit_codes(Start(killed, texts, secret=second), Start(other, texts, secret=second)) == [0, 0]
    whole, killed, other = map(texts_of, map(Path, (whole, killed, other)))
    assert whole == killed != other
    assert "the first secret" not in whole
    assert not list((tmp_path / "killed").glob(".*"))


# --- names


def test_hidden_names_stay_different_and_do_not_reveal_the_original() -> None:
    hider = DocumentHider(PiiHider("tag", b"secret"), b"salt")
    names = [
        hider.hide_names(f"편지/{phone}.jsonl@{byte}", "", "")[0]
        for phone in (PHONE, OTHER_PHONE)
        for byte in (0, 1234567890)
    ]
    assert len(set(names)) == 4
    assert all(name.startswith("편지/[TEL]") and find_pii(name) == [] for name in names)
    assert hider.hide_names("은행/a.txt@110123456789", "", "")[0] == "은행/a.txt@110123456789"
    assert DocumentHider(PiiHider("tag", b"other"), b"salt").hide_in_file_name(
        f"{PHONE}.txt"
    ) != hider.hide_in_file_name(f"{PHONE}.txt")


def test_fingerprints_depend_on_the_salt() -> None:
    one, other = (DocumentHider(PiiHider("tag", b""), salt) for salt in (b"one", b"other"))
    assert one.fingerprint(PHONE) == one.fingerprint(PHONE) != other.fingerprint(PHONE)


@pytest.mark.parametrize("name", ["tel-010-0188-2204-12", "900101-1970123-1", "u010-0188-2204", "010-0188-2204"])
def test_ids_that_contain_a_value_are_hidden(name: str) -> None:
    hider = DocumentHider(PiiHider("tag", b"secret"), b"salt")
    assert hider._has_pii(name)
    assert not hider._has_pii("article-2019-12-31-0042")


def test_a_match_is_known_only_where_it_overlaps_a_replacement() -> None:
    hider = DocumentHider(PiiHider("replace", b"secret"), b"salt")
    known = {hider.fingerprint(PHONE)}
    text = f"문의는 {PHONE}, 저녁에는 {OTHER_PHONE}로 주세요."
    for value in (PHONE, PHONE[:8], OTHER_PHONE, "문의는", "주세요"):
        at = text.index(value)
        assert final_check._is_known(text, Match("TEL", at, at + len(value)), hider, known) is (value in PHONE)

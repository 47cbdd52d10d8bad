"""The embedded sample: its files are those announced, and what they say of themselves is right."""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard

from benchmarks.gold import gold_sentences, labelled_documents
from finetune.registry import TASKS
from launch.errors import LaunchError
from launch.sample import unpack as module
from launch.sample.unpack import HOME, SOURCES, find_klue, unpack

SIZES = {  # examples of train and dev; questions for mrc, user turns for wos
    "ynat": (1_050, 280), "klue-sts": (700, 200), "klue-nli": (900, 240), "klue-ner": (800, 250),
    "klue-re": (900, 240), "klue-dp": (700, 200), "klue-mrc": (600, 200), "wos": (750, 201),
}  # fmt: skip
SHAPES = {  # fake by their form: blocks that belong to nobody
    "TEL": r"[\d+(][\d ().+-]+",
    "RRN": r"\d{6}( - |-)?[1-4]9[789]\d{4}",
    "FRN": r"\d{6}( - |-)?[5-8]9[789]\d{4}",
    "EMAIL": r"[\w.]+@example\.(com|org|net)",
    "URL": r"(https?://|www\.)\S*example\.\S+",
    "IP": r"(11|22|26|33|55)(\.\d+){3}",
    "MAC": r"00[-:]00[-:]5E[-:]00[-:]53[-:][0-9A-F]{2}",
    "MENTION": r"@[\w.]+",
    "PLATE": r".*\d[가-힣] ?00\d\d",
    "CARD": r"\d{4}([ -]\d{4}){3}",
    "BRN": r"\d{3}-\d\d-\d{5}",
    "HEALTH": r"\d-\d{10}",
    "ADDRESS": r".+[로길] \d+.*",
    "ACCOUNT": r"\d[\d-]+",
    "PASSPORT": r"[MS]\d{3}[A-H]?\d{4,5}",
    "DRIVER": r"(\d\d-|[가-힣]+ )\d\d-\d{6}-\d\d",
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sample")
    unpack(out)
    return out


def documents(out: Path) -> dict[str, str]:
    files = [(out / f"corpus/{name}.jsonl").read_bytes() for name in ("news", "encyclopedia")]
    files.append(gzip.decompress((out / "corpus/reviews.jsonl.gz").read_bytes()))
    rows = [json.loads(line) for content in files for line in content.splitlines()]
    return {row["id"]: row["text"] for row in rows + pq.read_table(out / "corpus/dialogue.parquet").to_pylist()}


def digests(out: Path) -> dict[str, str]:
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_archives_have_their_sums_and_their_size() -> None:
    for line in (HOME / "SHA256SUMS").read_text("ascii").splitlines():
        digest, name = line.split("  ")
        assert sha256((HOME / name).read_bytes()).hexdigest() == digest
    assert sum(path.stat().st_size for path in HOME.iterdir() if path.is_file()) < 700_000


def test_a_changed_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "SHA256SUMS").write_bytes((HOME / "SHA256SUMS").read_bytes())
    (tmp_path / "documents.tar.zst").write_bytes((HOME / "documents.tar.zst").read_bytes()[:-1] + b"!")
    monkeypatch.setattr(module, "HOME", tmp_path)
    with pytest.raises(LaunchError, match="install malmoi again"):
        gold_sentences()


def test_counts_tell_what_was_written(tmp_path: Path, sample: Path) -> None:
    counts = unpack(tmp_path)
    assert counts["documents"] == {"dialogue": 450, "encyclopedia": 1350, "news": 1050, "reviews": 900}
    assert counts["personal_data"] == dict.fromkeys(sorted(SHAPES), 24)
    texts = documents(sample)
    assert counts["text_bytes"] == sum(len(text.encode()) for name, text in texts.items() if "copy" not in name)
    assert len(digests(tmp_path)) == 5 + 1 + 18
    assert digests(tmp_path) == digests(sample)


def test_some_articles_come_twice(sample: Path) -> None:
    texts = documents(sample)
    copies = [name for name in texts if name.endswith("-copy")]
    assert len(copies) == 12
    assert all(texts[name] == texts[name.removesuffix("-copy")] for name in copies)


def test_damaged_lines_are_damaged_as_described(sample: Path) -> None:
    good, decomposed, textless, broken, latin = (sample / "corpus" / "damaged.jsonl").read_bytes().splitlines()
    assert json.loads(good)["text"]
    assert "\u1112" in json.loads(decomposed)["text"]  # a conjoining ㅎ
    assert "text" not in json.loads(textless)
    with pytest.raises(json.JSONDecodeError):
        json.loads(broken)
    with pytest.raises(UnicodeDecodeError):
        latin.decode("utf-8")


def test_personal_data_is_fake_where_the_truth_says() -> None:
    found: Counter[str] = Counter()
    for text, spans in labelled_documents():
        for start, end, kind in spans:
            assert re.fullmatch(SHAPES[kind], text[start:end]), (kind, text[start:end])
            assert not text[start - 1].isdigit()
            found[kind] += 1
    assert found == dict.fromkeys(SHAPES, 24)


def test_check_digits_of_personal_data_are_right() -> None:
    values = [(kind, text[start:end]) for text, spans in labelled_documents() for start, end, kind in spans]
    for kind, value in values:
        digits = [int(c) for c in value if c.isdigit()]
        if kind == "CARD":
            assert sum(d * 2 - 9 * (d > 4) if at % 2 == 0 else d for at, d in enumerate(digits)) % 10 == 0
        if kind == "BRN":
            weighted = sum(d * w for d, w in zip(digits, (1, 3, 7, 1, 3, 7, 1, 3, 5), strict=False))
            assert (weighted + digits[8] * 5 // 10 + digits[9]) % 10 == 0


def test_gold_sentences_make_the_running_text(sample: Path) -> None:
    gold = gold_sentences()
    texts = [text for name, text in documents(sample).items() if not name.startswith("dialogue") and "copy" not in name]
    assert len(gold) == len(texts) == 3_300
    assert all("".join(lines).strip() in text for lines, text in zip(gold, texts, strict=True))
    assert all(line.endswith(" ") and line.strip() for lines in gold for line in lines)


@pytest.mark.parametrize("task", SIZES)
def test_task_files_read_under_their_official_names_without_overlap(task: str, sample: Path) -> None:
    """The readers refuse labels outside the official vocabulary and spans that are not in the text."""
    files = TASKS[task].files
    train, dev = (TASKS[task].read(sample / "klue" / name) for name in (files.train, files.dev))
    assert (len(train), len(dev)) == SIZES[task]
    assert all(example.gold is not None for example in (*train, *dev))
    sides = [{json.dumps(example.inputs, sort_keys=True, default=list) for example in side} for side in (train, dev)]
    assert not sides[0] & sides[1]


def load(path: Path) -> Any:
    if path.suffix == ".zst":
        with path.open("rb") as file:
            return json.loads(zstandard.ZstdDecompressor().stream_reader(file).read())
    return json.loads(path.read_text("utf-8"))


def test_relation_spans_and_answers_hold_their_words(sample: Path) -> None:
    for side in ("train", "dev"):
        for record in load(sample / f"klue/klue-re-v1.1/klue-re-v1.1_{side}.json"):
            for entity in (record["subject_entity"], record["object_entity"]):
                assert record["sentence"][entity["start_idx"] : entity["end_idx"] + 1] == entity["word"]
        for document in load(sample / f"klue/klue-mrc-v1.1/klue-mrc-v1.1_{side}.json")["data"]:
            [paragraph] = document["paragraphs"]
            for question in paragraph["qas"]:
                assert question["is_impossible"] == (not question["answers"])
                for answer in question["answers"] + question.get("plausible_answers", []):
                    start = answer["answer_start"]
                    assert paragraph["context"][start : start + len(answer["text"])] == answer["text"]


def test_states_hold_values_of_the_ontology(sample: Path) -> None:
    ontology = load(sample / "klue/wos-v1.1/ontology.json")
    assert all(values[:2] == ["none", "dontcare"] for values in ontology.values())
    for side in ("train", "dev"):
        for dialogue in load(sample / f"klue/wos-v1.1/wos-v1.1_{side}.json"):
            for turn in dialogue["dialogue"][::2]:
                slots = [item.rsplit("-", 1) for item in turn["state"]]
                assert all(value in ontology[slot] for slot, value in slots)


def test_all_text_is_composed_hangul_without_leftover_slots(sample: Path) -> None:
    texts = list(documents(sample).values())
    for path in sorted((sample / "klue").glob("*/*")):
        texts += strings(load(path)) if path.suffix == ".json" else [path.read_text("utf-8")]
    for text in texts:
        assert unicodedata.is_normalized("NFC", text)
        assert not set("{}|") & set(text), text[:80]


def strings(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        return [text for item in (value.values() if isinstance(value, dict) else value) for text in strings(item)]
    return [value] if isinstance(value, str) else []


def shape(value: Any) -> Any:
    """Keys, in order, all the way down; a list by its first item, anything else by nothing."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else None


@pytest.mark.parametrize(
    ("name", "folder"),
    [("klue-nli", "official"), ("klue-sts", "official"), ("klue-re", "official"), ("ynat", "derived")],
)
def test_records_have_the_official_keys_in_order(
    sample: Path, shared: Callable[[str], Path], name: str, folder: str
) -> None:
    file = f"{name}-v1.1/{name}-v1.1_dev.json"
    suffix = "" if name == "klue-sts" else ".zst"
    theirs = load(shared(f"data/klue/{folder}/{file}{suffix}"))
    ours = load(sample / "klue" / file)
    if name == "ynat":  # the reduced file has the same keys, in another depth
        assert list(ours[0]) == list(theirs[0])
    else:
        assert json.dumps(shape(ours)) == json.dumps(shape(theirs))


def test_the_relation_list_and_the_slots_equal_the_official_ones(sample: Path, shared: Callable[[str], Path]) -> None:
    name = "klue-re-v1.1/relation_list.json"
    assert load(sample / "klue" / name) == load(shared(f"data/klue/official/{name}"))
    assert set(load(sample / "klue/wos-v1.1/ontology.json")) == set(
        load(shared("data/klue/official/wos-v1.1/ontology.json"))
    )


def test_every_source_has_a_share_of_the_personal_data(sample: Path) -> None:
    rows = [json.loads(line) for line in (sample / "pii_truth.jsonl").read_text("utf-8").splitlines()]
    assert set(Counter(row["id"].split("-")[0] for row in rows)) == set(SOURCES)


def test_klue_files_are_those_of_a_folder_of_the_run_or_of_the_sample(tmp_path: Path) -> None:
    own = tmp_path / "own"
    with pytest.raises(LaunchError, match=r"--data .*own: no such folder"):
        find_klue(str(own), tmp_path)
    own.mkdir()
    assert find_klue(str(own), tmp_path) == own
    unpacked = find_klue("malmoi:sample", tmp_path)
    assert unpacked == tmp_path / "llm" / "sample" / "klue" and list(unpacked.glob("ynat-v1.1/*"))
    (tmp_path / "sample" / "klue").mkdir(parents=True)
    assert find_klue("malmoi:sample", tmp_path) == tmp_path / "sample" / "klue"

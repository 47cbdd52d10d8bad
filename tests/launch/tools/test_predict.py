"""``malmoi predict``: forms of input, order, output for people and as JSON lines, what is wrong in one sentence."""

from __future__ import annotations

import bz2
import gzip
import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import malmoi
from corpus.documents.errors import BadInput
from finetune.inference.predict import TaskModel
from finetune.registry import TASKS
from finetune.saved_models.load import SavedModel, load_model
from finetune.tasks.custom.task import custom_task
from finetune.tasks.ynat.task import YNAT_LABELS
from launch.tools.predict import form_of, predict_file, results_of
from tests.command import run_command
from tests.finetune.conftest import build_tiny_encoder

TITLES = ["푸른들시 예산안 처리", "[속보] 가람팀 3연승", "", "{윤슬} 금리 인하", "## 비 소식"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kept model of YNAT with random weights."""
    home = tmp_path_factory.mktemp("kept")
    encoder, tokenizer = build_tiny_encoder(home, TITLES)
    torch.manual_seed(1)
    TASKS["ynat"].model(encoder, tokenizer).net.save_pretrained(home / "model")  # type: ignore[operator]
    tokenizer.save_pretrained(home / "model")
    settings = {"format": 1, "task": "ynat", "protocol": "malmoi", "max_tokens": 32}
    (home / "model" / "malmoi.json").write_text(json.dumps(settings), "utf-8")
    return home / "model"


@pytest.fixture(scope="module")
def model(folder: Path) -> SavedModel:
    return load_model(folder, "cpu")


def results(model: Any, path: Path | None, target: Path) -> list[dict[str, Any]]:
    predict_file(model, path, target, True)
    return [json.loads(line) for line in target.read_text("utf-8").splitlines()]


def alike(one: Any, other: Any) -> bool:
    """Equal, with numbers up to rounding: a processor may round differently by memory alignment."""
    if isinstance(one, float):
        return bool(other == pytest.approx(one, abs=1e-5))
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def test_all_forms_of_a_text_get_the_same(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = "\n".join(TITLES) + "\n"
    records = "".join(json.dumps({"title": title}) + "\n" for title in TITLES)
    contents = {
        "plain.txt": plain.encode(),
        "windows.txt": b"\xef\xbb\xbf" + plain.replace("\n", "\r\n").encode(),
        "korean.txt": plain.encode("cp949"),
        "plain.txt.gz": gzip.compress(plain.encode()),
        "records.jsonl": records.encode(),
        "unended.jsonl": records.rstrip("\n").encode(),
    }
    found = {}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        found[name] = results(model, tmp_path / name, tmp_path / "out.jsonl")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(plain.encode()))))
    found["stdin"] = results(model, None, tmp_path / "out.jsonl")
    first = found["plain.txt"]
    assert [result.get("title", "") for result in first] == TITLES
    assert [result["line"] for result in first] == [1, 2, 3, 4, 5]
    assert first[2] == {"line": 3, "prediction": None}
    assert all(alike(other, first) for other in found.values())


def test_official_files_are_recognized_by_their_content(model: Any, tmp_path: Path) -> None:
    official = [{"guid": f"g{n}", "title": title, "label": "정치"} for n, title in enumerate(TITLES) if title]
    for name, content in (
        ("lined.json", json.dumps(official, indent=4)),
        ("packed.json.gz", json.dumps(official)),
        ("packed.json.bz2", json.dumps(official)),
        ("unlabelled.json", json.dumps([{k: v for k, v in row.items() if k != "label"} for row in official])),
    ):
        data = content.encode()
        packed = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(name).suffix, bytes)(data)
        (tmp_path / name).write_bytes(packed)
        found = results(model, tmp_path / name, tmp_path / "out.jsonl")
        assert [result["guid"] for result in found] == ["g0", "g1", "g3", "g4"]
    (tmp_path / "broken.json.gz").write_bytes(gzip.compress(json.dumps(official)[:-9].encode()))
    with pytest.raises(BadInput, match=r"broken\.json\.gz: "):
        predict_file(model, tmp_path / "broken.json.gz", None, False)


def test_tables_of_an_own_task_are_read_as_in_training(model: SavedModel, tmp_path: Path) -> None:
    task = custom_task({"name": "mine", "kind": "label", "text": "headline", "labels": list(YNAT_LABELS)})
    mine = replace(model, task=task)
    titles = [title for title in TITLES if title]
    contents = {
        "table.csv": "id,headline\n" + "".join(f'{n},"{title}"\n' for n, title in enumerate(titles)),
        "table.tsv": "headline\n" + "".join(f"{title}\n" for title in titles),
        "lines.jsonl": "".join(json.dumps({"headline": title, "label": 3}) + "\n" for title in titles),
        "lines.tsv": "".join(f"{title}\n" for title in titles),
    }
    found = []
    for name, content in contents.items():
        (tmp_path / name).write_text(content, "utf-8")
        found.append([result["prediction"] for result in results(mine, tmp_path / name, tmp_path / "out.jsonl")])
    assert found == [[result["prediction"] for result in TaskModel(model).predict(titles)]] * 4


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("a.csv", 'id,title\n1,"비, 소식"\n2,금리\n', ["비, 소식", "금리"]),
        ("a.tsv", "title\tlabel\n비 소식\t사회\n", ["비 소식"]), ("a.tsv", "title\n비 소식\n", ["비 소식"]),
        ("a.tsv", "비 소식\n금리\n", ["비 소식", "금리"]), ("a.csv.bz2", "text\n비 소식\n", ["비 소식"]),
        ("a", "title\n비\n", ["title", "비"]), ("a.txt", "title,label\n", ["title,label"]),
        ("a.csv", "제목,분류\n비,사회\n", "row 1: no 'title'; .* found: 제목, 분류"),
        ("a.csv", "비 소식\n", "no rows in it"),
    ],
)  # fmt: skip
def test_tables_name_their_columns(name: str, content: str, found: Any, model: Any, tmp_path: Path) -> None:
    data = content.encode()
    (tmp_path / name).write_bytes(bz2.compress(data) if name.endswith("bz2") else data)
    if isinstance(found, list):
        assert [result["title"] for result in results(model, tmp_path / name, tmp_path / "out")] == found
        return
    with pytest.raises(BadInput, match=f"{name}(, |: ){found}".replace("* found", r"* \(found")):
        results(model, tmp_path / name, tmp_path / "out")


@pytest.mark.parametrize(
    ("head", "suffix", "form"),
    [
        ("[속보] 비\n", "json", "plain"), ("[\n  {", "json", "official"), ('[{"guid": 1', "json", "official"),
        ('{"title": "비"}\n', "json", "records"), ("{\n", "json", "official"), ('{"data": []}', "json", "official"),
        ("## 열: 탭\n", "tsv", "official"), ("## 제목\n", "json", "plain"), ("[{비}]\n", "tsv", "plain"),
    ],
)  # fmt: skip
def test_the_first_line_decides_the_form(head: str, suffix: str, form: str) -> None:
    assert form_of(head, suffix) == form


def test_blocks_of_a_long_input_keep_lines_and_order(model: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("launch.tools.predict.LINES_AT_ONCE", 4)
    lines = [f"{n}번 소식" for n in range(2 * 4 + 3)]
    (tmp_path / "in.txt").write_text("\n".join(lines))
    blocks = list(results_of(model, tmp_path / "in.txt"))
    assert [len(block) for block in blocks] == [4, 4, 2, 1]
    assert [(result["line"], result["title"]) for block in blocks for result in block] == list(enumerate(lines, 1))


def test_what_comes_through_a_pipe_is_answered_before_more_is_read(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[dict[str, Any]] = []
    answered_before: list[int] = []
    pieces = iter(["비가 온다\n눈이 ".encode(), "온다\n".encode(), b""])

    def read1(size: int) -> bytes:
        answered_before.append(len(answered))
        return next(pieces)

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=SimpleNamespace(read1=read1)))
    for block in results_of(model, None):
        answered += block
    assert [result["title"] for result in answered] == ["비가 온다", "눈이 온다"]
    assert answered_before == [0, 1, 2]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["no text here"]),
        (b'\n\n{"title": "a"}\nb\n', ["line 4", "not an object"]),
        (b'a\n{"title": "a"}\n', ["line 2", "do not mix"]),
        (b'{"title": "a"\n', ["line 1", "not JSON"]),
        (b"a\n\xff\xfe\xff\n", ["line 2", "UTF-8"]),
        (b"a" * (1 << 20) + b"b", ["line 1", "longer"]),
    ],
)
def test_wrong_content_is_one_sentence_and_leaves_no_output(
    content: bytes, words: list[str], model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corpus.reading.containers.RECORD_BYTES", 1 << 20)
    (tmp_path / "in.txt").write_bytes(content)
    with pytest.raises(BadInput) as error:
        predict_file(model, tmp_path / "in.txt", tmp_path / "out.txt", False)
    for word in ("in.txt", *words):
        assert word in str(error.value)
    assert not list(tmp_path.glob("out*"))


def test_people_get_a_line_a_title_and_no_control_characters(model: Any, tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "in.txt").write_text("비 \x1b[31m소식\n\n", "utf-8")
    predict_file(model, tmp_path / "in.txt", None, False)
    shown = capfd.readouterr()
    label, share, title = shown.out.splitlines()[0].split("\t")
    assert label in ("정치", "경제", "사회", "생활문화", "세계", "IT과학", "스포츠")
    assert 0 < float(share) < 1
    assert title == "비 ⟨U+001B⟩[31m소식"
    assert shown.out.splitlines()[1:] == ["(empty)"]
    assert "2 results, 1 of them for blank texts" in shown.err


def test_the_command_takes_a_folder_and_a_name_on_the_hub(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    (tmp_path / "in.txt").write_text("\n".join(TITLES), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **options: str(folder))
    outputs = []
    for name in (str(folder), "team/ynat-model"):
        assert run_command(capfd, "predict", "tc", name, "in.txt", "out.jsonl", "--device", "cpu").code == 0
        outputs.append((tmp_path / "out.jsonl").read_text("utf-8"))
    assert outputs[0] == outputs[1]
    told = run_command(capfd, "predict", "ynat", str(folder), "in.txt", "--json", "--device", "cpu")
    for line, expected in zip(told.output.splitlines(), outputs[0].splitlines(), strict=True):
        assert json.loads(line)["prediction"] == json.loads(expected)["prediction"]


def test_a_tab_matters_in_a_tsv_only(model: SavedModel, tmp_path: Path) -> None:
    for name in ("in.txt", "in.tsv"):
        (tmp_path / name).write_text("푸른들시\t예산안 처리\r\n", "utf-8")
    assert results(model, tmp_path / "in.txt", tmp_path / "out")[0]["title"] == "푸른들시\t예산안 처리"
    with pytest.raises(BadInput, match=r"in.tsv, line 1: expected title, .*texts found: 2"):
        results(model, tmp_path / "in.tsv", tmp_path / "out")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp949", "utf-16"])
@pytest.mark.parametrize("name", ["a b.csv", "new.tsv", "new.jsonl", "new.csv.gz"])
def test_files_of_custom_tasks_are_read_in_every_encoding(
    name: str, encoding: str, model: SavedModel, tmp_path: Path
) -> None:
    own = {"name": "mine", "kind": "label", "text": "제목", "labels": list(YNAT_LABELS)}
    mine = replace(model, task=custom_task(own))
    rows = {".csv": ("제목", *TITLES[:2]), ".tsv": ("제목", *TITLES[:2])}
    lines = rows.get(Path(name).suffix, [json.dumps({"제목": t}, ensure_ascii=False) for t in TITLES[:2]])
    lines = rows[".csv"] if ".csv" in name else lines
    content = "\r\n".join((*lines, "")).encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert [found["제목"] for found in results(mine, tmp_path / name, tmp_path / "out")] == TITLES[:2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ner", "FOLDER", "in.txt"], ["a model for ynat, not for ner"]),
        (["ynat", "nowhere/at/all", "in.txt"], ["no such folder"]),
        (["ynat", "FOLDER", "missing.txt"], ["missing.txt"]),
        (["ynat", "FOLDER", "."], ["a folder"]),
    ],
)
def test_a_wrong_command_line_is_one_sentence(
    arguments: list[str], words: list[str], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    (tmp_path / "in.txt").write_text("비\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    given = [str(folder) if argument == "FOLDER" else argument for argument in arguments]
    run_command(capfd, "predict", *given).refused(*words)


def test_python_loads_a_kept_model_and_the_task_of_a_name(folder: Path) -> None:
    loaded: Any = malmoi.load_task(folder, device="cpu")
    by_text: Any = malmoi.load_task(str(folder), device="cpu")
    assert loaded.predict([TITLES[0], {"title": TITLES[0]}, ""])[:2] == by_text.predict([TITLES[0]]) * 2
    assert malmoi.load_task("ynat") is TASKS["ynat"]
    with pytest.raises(ValueError, match="did you mean ynat"):
        malmoi.load_task("ynta")

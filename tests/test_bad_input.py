"""What users do wrong, at the command line: one sentence, exit code 2, nothing that a later run would trust."""

from __future__ import annotations

import json
import resource
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard

from finetune.task_names import TASK_NAMES
from tests.command import Outcome, run_command

GOOD = '{"id": "1", "text": "가온시 도서관이 새 강좌를 연다."}\n'
DEEP = "[" * 100_000


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Clean:
    """``malmoi corpus`` on the given inputs."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self.capfd = capfd

    def __call__(self, *inputs: str, overrides: tuple[str, ...] = ()) -> Outcome:
        given = (f"corpus.inputs={','.join(inputs)}", "finetune.data=null", "workers=1")
        return run_command(self.capfd, "corpus", "smoke", *given, *overrides)


@pytest.fixture
def clean(capfd: pytest.CaptureFixture[str]) -> Clean:
    return Clean(capfd)


def manifests() -> list[Path]:
    return list(Path().rglob("manifest.json"))


def sentences() -> list[str]:
    shards = sorted(Path("runs/smoke/corpus/documents").glob("*.parquet"))
    return [s for shard in shards for row in pq.read_table(shard).to_pylist() for s in row["sentences"]]


def test_folder_without_data(clean: Clean) -> None:
    Path("empty").mkdir()
    clean("empty").refused("empty")
    assert not manifests()


@pytest.mark.parametrize("content", ["", "\n\n\n"])
def test_empty_corpus(clean: Clean, content: str) -> None:
    Path("a.jsonl").write_text(content)
    clean("a.jsonl").refused("no document")
    assert not manifests()


def test_file_of_broken_lines_is_refused_and_its_lines_are_kept(clean: Clean) -> None:
    Path("a.jsonl").write_text(GOOD + '{"text": \n' * 50, "utf-8")
    clean("a.jsonl").refused("quarantine")
    kept = Path("runs/smoke/corpus/quarantine/records.jsonl").read_text("utf-8").splitlines()
    assert len(kept) == 50
    assert not manifests()


def test_single_bad_lines_cost_only_themselves(clean: Clean) -> None:
    bad = b'{"text": 7}\n[1]\n{"text"\n{"id": "x"}\n{"text": "\xff\xfe"}\n'
    Path("a.jsonl").write_bytes(GOOD.encode() + bad + GOOD.replace("새", "첫").replace('"1"', '"2"').encode())
    assert clean("a.jsonl").code == 0
    lines = Path("runs/smoke/corpus/quarantine/records.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["line"] for line in lines] == [2, 3, 4, 5, 6]
    assert all(json.loads(line)["reason"] for line in lines)
    assert len(sentences()) == 2


def test_nfd_and_crlf_text_comes_out_as_nfc(clean: Clean) -> None:
    text = "가온시 도서관이 새 강좌를 연다."
    Path("a.txt").write_bytes(unicodedata.normalize("NFD", text).encode() + b"\r\n")
    assert clean("a.txt").code == 0
    assert sentences() == [text]


def test_output_folder_that_is_a_file(clean: Clean) -> None:
    Path("a.jsonl").write_text(GOOD, "utf-8")
    Path("runs").write_text("in the way")
    clean("a.jsonl").refused("runs")


@pytest.mark.parametrize("limit", [1 << 9, 1 << 12, 1 << 14])  # bytes of a file, so that other maps meet it first
def test_full_disk_is_one_sentence_and_the_next_run_completes(clean: Clean, limit: int) -> None:
    texts = [GOOD.replace("도서관", f"도서관 {n}호점").replace('"1"', f'"{n}"') for n in range(1000)]
    Path("a.jsonl").write_text("".join(texts), "utf-8")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        clean("a.jsonl").refused("no space left on the disk", "smoke/corpus")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not manifests()
    assert clean("a.jsonl").code == 0
    assert len(sentences()) == 1000


@pytest.mark.parametrize("name", ["@x.txt", "{a.txt", "!x.txt", "%x.txt", "`x.txt", "x #1.txt", "no", "2024-01-01.txt"])
def test_file_names_that_yaml_would_read_otherwise(clean: Clean, name: str) -> None:
    Path(name).with_suffix(".txt").write_text("가온시 도서관이 새 강좌를 연다.", "utf-8")
    assert clean(str(Path(name).with_suffix(".txt"))).code == 0
    assert len(sentences()) == 1


def test_globs_are_no_aliases(clean: Clean) -> None:
    Path("a.jsonl").write_text(GOOD, "utf-8")
    assert clean("*.jsonl").code == 0
    assert len(sentences()) == 1


@pytest.mark.parametrize("name", ["*.jsonl", "@x", "{a", "[a", "!x", "%x", "`x", "x #1.txt", "~x", "?", "-", "&x"])
def test_inputs_that_are_not_there_are_named_as_they_were_given(clean: Clean, name: str) -> None:
    clean(name).refused(name)


BOMB = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
RECIPES: dict[str, tuple[bytes, str]] = {
    "billion laughs": (BOMB.encode(), "aliases (*name) are not supported; write the value"),
    "alias of itself": (b"&a [*a]", "aliases (*name) are not supported"),
    "100,000 lists deep": (DEEP.encode(), "nested more than 20 deep"),
    "100,000 mappings deep": (b"{a: " * 100_000, "nested more than 20 deep"),
    "100,000 dashes deep": (b"- " * 100_000, "nested more than 20 deep"),
    "not UTF-8": ("이름: 값".encode("cp949"), "not UTF-8"),
    "UTF-16": ("name: x".encode("utf-16"), "not UTF-8"),
    "tab": (b"corpus:\n\tinputs: a\n", "line 2, column 1"),
    "key twice": (b"name: a\nname: b\n", "duplicate key name"),
    "empty": (b"", "this recipe is empty"),
    "list": (b"- 1\n", "holds a list"),
    "scalar": (b"7\n", "holds a int"),
    "two documents": (b"name: a\n---\nname: b\n", "another document"),
    "huge": (b"name: a\n" + b"# x\n" * 300_000, "larger than 1,048,576 bytes"),
    "control character": (b"name: \0\n", "special characters are not allowed"),
    "Python object": (b"!!python/object/apply:os.system [ls]\n", "could not determine a constructor"),
    "endless number": (b"pretrain: {steps: " + b"9" * 5000 + b"}\n", "4300 digits"),
    "number as key": (b"1: 2\n", "Keys should be strings"),
    "section without content": (b"corpus:\n", "corpus: must be a section of keys and values"),
    "half a character": (b'name: "\\ud800"\n', "name: must be text"),
    "thousands of problems": (b"corpus: {inputs: [" + b"1," * 3000 + b"]}\n", "and 2980 more"),
    "long value": (b"pretrain: {steps: " + b"x" * 3000 + b"}\n", "pretrain.steps"),
}


@pytest.mark.parametrize("kind", RECIPES)
def test_bad_recipe_is_explained(capfd: pytest.CaptureFixture[str], kind: str) -> None:
    content, says = RECIPES[kind]
    Path("bad.yaml").write_bytes(content)
    for verb in ("corpus", "run"):
        outcome = run_command(capfd, verb, "bad.yaml")
        outcome.refused("bad.yaml", says)
        assert len(outcome.errors) < 4_000
    assert not Path("runs").exists()


FILES: dict[str, bytes] = {
    "no JSON": b"garbage",
    "cut": b'[{"guid": "a", "prediction": ',
    "empty": b"",
    "number": b"7",
    "null": b"null",
    "list of numbers": b"[1, 2]",
    "object": b"{}",
    "100,000 deep": DEEP.encode(),
    "100,000 objects deep": b'{"a":' * 100_000,
    "deep inside": b'{"guid": "a", "prediction": ' + DEEP.encode() + b"\n",
    "half a character": b'{"guid": "\\ud800", "prediction": "\\udfff"}\n',
    "half a character in a map": b'{"a": "\\ud800"}',
    "half a character in a list": b'[{"guid": "a", "title": "\\ud800", "label": "\\ud800"}]',
    "not UTF-8": "예측".encode("cp949"),
    "UTF-16": "예측".encode("utf-16"),
    "endless number": b'{"guid": "a", "prediction": ' + b"9" * 5000 + b"}\n",
    "guid is a list": b'{"guid": ["a"], "prediction": 1}\n',
    "not a number": b'{"guid": "a", "prediction": NaN, "gold": Infinity}\n',
}


@pytest.mark.parametrize("task", TASK_NAMES)
@pytest.mark.parametrize("kind", FILES)
def test_bad_predictions_and_golds_are_explained(capfd: pytest.CaptureFixture[str], kind: str, task: str) -> None:
    Path("bad").write_bytes(FILES[kind])
    Path("bad.zst").write_bytes(zstandard.compress(FILES[kind]))
    for arguments in (
        ("score", task, "bad"),
        ("score", task, "bad.zst", "bad"),
        ("finetune", "export", task, "bad", "bad", "out"),
    ):
        run_command(capfd, *arguments).refused("bad")
    assert not Path("out").exists()


@pytest.mark.parametrize("kind", FILES)
def test_bad_predictions_for_a_good_file_are_explained(capfd: pytest.CaptureFixture[str], kind: str) -> None:
    gold: list[dict[str, Any]] = [{"guid": "a", "title": "새 소식", "label": "사회"}]
    Path("gold.json").write_text(json.dumps(gold), "utf-8")
    Path("bad").write_bytes(FILES[kind])
    run_command(capfd, "score", "ynat", "gold.json", "bad").refused("bad")
    run_command(capfd, "finetune", "export", "ynat", "gold.json", "bad", "out").refused("bad")
    assert not Path("out").exists()


def test_zst_that_is_cut_is_explained(capfd: pytest.CaptureFixture[str]) -> None:
    Path("bad.zst").write_bytes(zstandard.compress(b"x" * 10_000)[:-9])
    run_command(capfd, "score", "ynat", "bad.zst", "bad.zst").refused("bad.zst")


def test_benchmark_file_without_end_is_explained(clean: Clean) -> None:
    Path("a.jsonl").write_text(GOOD, "utf-8")
    Path("klue/ynat-v1.1").mkdir(parents=True)
    Path("klue/ynat-v1.1/ynat-v1.1_dev.json").write_text(DEEP, "utf-8")
    clean("a.jsonl", overrides=("corpus.benchmarks=klue",)).refused("ynat-v1.1_dev.json")


def test_unknown_words_of_one_endless_eojeol_are_counted() -> None:
    """BERT cuts it into a word a bracket, each [UNK]; every word against every [UNK] would take minutes."""
    from tokenizer.building.export import ROLES, build_tokenizer
    from tokenizer.measuring.encoder import make_encoder
    from tokenizer.measuring.unknown import classify_unknown_words

    encoder = make_encoder(build_tokenizer(list(ROLES.values())), [])
    assert classify_unknown_words(encoder, {"[" * 30_000: 2}) == ({"symbol or emoji": 60_000}, 0)

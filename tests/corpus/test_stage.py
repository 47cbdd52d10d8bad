"""The stage from files to shards: order of rules, duplicates, private data, determinism, kill and resume."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from corpus import clean as cleaning
from corpus.documents.errors import BadInput
from corpus.documents.shards import Document, read_documents, shard_paths
from corpus.pii.types import PII_TYPES
from corpus.reading.files import read_blocks

LONG = "오래된 도서관 앞에서 아이들이 줄을 서서 책을 기다렸다."
PHONE, MAIL = "010-0123-4567", "younghee@example.com"
PRIVATE = f"문의는 {PHONE} 또는 {MAIL} 으로 주세요."
CHINESE = "春眠不覺曉處處聞啼鳥夜來 라는 시다."
STORY = [
    {"id": "a", "text": f"<b>첫 글</b>이다. {LONG}", "source": "동화"},
    {"id": "b", "text": f"{PRIVATE} {CHINESE} 저녁에는 바람이 불었다.", "source": "동화"},
    {"id": "c", "text": f"첫 글이다!\n{LONG}", "source": "동화"},
    {"id": "d", "text": f"{LONG.replace(' ', '  ')} 그리고 겨울이 와서 눈이 내렸다.", "source": "수필"},
    {"id": "a", "text": "같은 이름을 쓰는 다른 글이다.", "source": "수필"},
    {"id": "f", "text": " <br> ", "source": "수필"},
]


def write_jsonl(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), "utf-8")
    return path


def documents_of(out: Path) -> list[Document]:
    return [document for shard in shard_paths(out / "documents") for document in read_documents(shard)]


def digests(out: Path) -> dict[str, str]:
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("is_on", [True, False])
def test_wrapped_lines_are_joined_unless_the_recipe_says_no(
    is_on: bool, tmp_path: Path, clean: Callable[..., Any]
) -> None:
    sentences = [
        f"{n}번째 저녁에는 바람이 불어서 아이들이 {word} 앞에서 오래 기다렸다."
        for n, word in enumerate("집강산들논밭문길")
    ]
    text = "\n".join(textwrap.wrap(" ".join(sentences), 30))
    clean(write_jsonl(tmp_path / "글.jsonl", [{"id": "a", "text": text}]), **({} if is_on else {"rejoin_lines": False}))
    (document,) = documents_of(tmp_path / "out")
    assert (list(document.sentences) == sentences) is is_on
    counts = json.loads((tmp_path / "out" / "statistics.json").read_text("utf-8"))["total"]["changed"]
    assert (counts.get("wrapped_line", 0) > 0) is is_on


def test_documents_come_out_clean_and_every_loss_is_counted(tmp_path: Path, clean: Callable[..., Any]) -> None:
    counts = clean(write_jsonl(tmp_path / "글.jsonl", STORY), pii={"mode": "keep"})
    start = (tmp_path / "글.jsonl").read_bytes().index('{"id": "a", "text": "같은'.encode())
    assert documents_of(tmp_path / "out") == [
        Document("a", "동화", ("첫 글이다.", LONG)),
        Document("b", "동화", (PRIVATE, "저녁에는 바람이 불었다.")),
        Document("d", "수필", ("그리고 겨울이 와서 눈이 내렸다.",)),
        Document(f"a~글.jsonl@{start}", "수필", ("같은 이름을 쓰는 다른 글이다.",)),
    ]
    assert counts["dropped_documents"] == {"duplicate_document": 1, "no_sentence_left": 1}
    assert counts["dropped_sentences"] == {
        "duplicate_document": 2,
        "duplicate_sentence": 1,
        "has_too_many_han_or_kana": 1,
    }
    assert counts["sentences_split"] == counts["sentences"] + sum(counts["dropped_sentences"].values())
    statistics = json.loads((tmp_path / "out" / "statistics.json").read_text("utf-8"))
    assert statistics["sources"]["수필"]["documents_read"] == 3
    kept = [s for d in documents_of(tmp_path / "out") for s in d.sentences]
    total = {"sentences": 6, "words": sum(len(s.split()) for s in kept), "bytes": sum(len(s.encode()) for s in kept)}
    assert total.items() <= statistics["total"].items()


def test_private_data_leave_the_corpus_and_every_other_output(tmp_path: Path, clean: Callable[..., Any]) -> None:
    copies = [
        {"id": "x", "text": PRIVATE},
        {"id": "y", "text": PRIVATE},
        {"id": MAIL, "text": f"{CHINESE[:-1]} {PHONE}."},
    ]
    path = write_jsonl(tmp_path / "a.jsonl", [*STORY, *copies])
    path.write_bytes(path.read_bytes() + f'{{"text": "{PRIVATE}\n'.encode())
    benchmark = tmp_path / "quiz.txt"
    benchmark.write_text(f"연락은 {PHONE} 에게 하면 된다고 했다.", "utf-8")
    write_jsonl(tmp_path / "b.jsonl", [{"text": f"연락은 {PHONE} 에게 하면 된다고 했다."}])
    counts = clean(path, tmp_path / "b.jsonl", benchmarks=[benchmark])
    assert set(counts["pii"]) == set(PII_TYPES)
    assert counts["pii"]["TEL"] == counts["pii"]["EMAIL"] == counts["sentences_with_pii"] == 1
    assert counts["dropped_sentences"]["in_benchmark"] == 1
    assert counts["records"]["rejected"] == {"broken_json": 1}
    samples = pq.read_table(tmp_path / "out" / "dropped" / "samples.parquet").to_pylist()
    assert {row["rule"] for row in samples} >= {
        "has_too_many_han_or_kana",
        "in_benchmark:quiz.txt",
        "duplicate_document",
    }
    outputs = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    for output in outputs:
        rows = pq.read_table(output).to_pylist() if output.suffix == ".parquet" else output.read_text("utf-8")
        assert PHONE not in str(rows) and MAIL not in str(rows), output


def test_benchmark_sentences_are_dropped_and_reported(tmp_path: Path, clean: Callable[..., Any]) -> None:
    path = tmp_path / "klue-nli-v1.1_dev.json"
    path.write_text(json.dumps([{"guid": "n0", "premise": LONG, "hypothesis": "고양이는 없다."}]), "utf-8")
    counts = clean(write_jsonl(tmp_path / "a.jsonl", STORY), benchmarks=[path])
    assert counts["dropped_sentences"]["in_benchmark"] == 3
    assert all(LONG not in document.sentences for document in documents_of(tmp_path / "out"))
    report = json.loads((tmp_path / "out" / "decontamination.json").read_text("utf-8"))
    task = report["tasks"]["klue-nli"]
    assert (task["items"], task["found"], task["dropped_sentences"]) == (1, ["n0#premise"], 3)
    assert task["too_short"] == {"count": 1, "examples": ["고양이는 없다."]}
    assert task["examples"][0]["item"] == "n0#premise 1.000"


def test_single_sources_have_their_own_least_length(tmp_path: Path, clean: Callable[..., Any]) -> None:
    texts = [{"text": "짧은 글이다.", "source": source} for source in ("CC-100", "동화")]
    clean(write_jsonl(tmp_path / "a.jsonl", texts))
    assert [document.source for document in documents_of(tmp_path / "out")] == ["동화"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no document"),
        ("\n\n", "no document"),
        ('{"text": ""}\n', "all 1 documents were dropped"),
        (
            '{"body": "글"}\n' * 11,
            "no text under 'text' in the first 10 records .*first: body.;",
        ),
        ('{"text": "글"}\n' + '{"body": "글"}\n' * 11, "11 of 12 records could not be read .no_text 11."),
    ],
)
def test_nothing_in_or_nothing_out_is_bad_input(
    tmp_path: Path, clean: Callable[..., Any], content: str, message: str
) -> None:
    (tmp_path / "a.jsonl").write_text(content, "utf-8")
    with pytest.raises(BadInput, match=message):
        clean(tmp_path / "a.jsonl")


def test_a_few_broken_lines_go_to_quarantine(tmp_path: Path, clean: Callable[..., Any]) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", STORY)
    path.write_bytes(b'{"text": "' + path.read_bytes())
    clean(path)
    rows = (tmp_path / "out" / "quarantine" / "records.jsonl").read_text("utf-8").splitlines()
    assert [(row["file"], row["line"], row["reason"]) for row in map(json.loads, rows)] == [
        ("a.jsonl", 1, "broken_json")
    ]


def test_only_the_first_documents_of_each_file_are_read_when_asked(tmp_path: Path, clean: Callable[..., Any]) -> None:
    paths = [write_jsonl(tmp_path / name, [{"text": f"{name} {n}번째 글이다."} for n in range(9)]) for name in "가나"]
    paths = [path.rename(path.with_suffix(".jsonl")) for path in paths]
    assert clean(*paths, max_documents_per_file=2)["documents_read"] == 4


@pytest.fixture
def many_files(tmp_path: Path) -> list[Path]:
    story = [{"text": f"{n}번째 날에는 {PRIVATE} {LONG} {n % 7}번 문을 열었다."} for n in range(300)]
    return [write_jsonl(tmp_path / f"{name}.jsonl", story[at::2]) for at, name in enumerate("ab")]


def test_bytes_do_not_depend_on_workers_or_batches(
    tmp_path: Path, clean: Callable[..., Any], many_files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    quiz = tmp_path / "quiz.txt"
    quiz.write_text("오래된 도서관 앞에서 아이들이 책을 기다렸다.", "utf-8")
    monkeypatch.setattr("corpus.assemble.SHARD_DOCUMENTS", 100)
    settings: dict[str, Any] = {"benchmarks": [quiz], "pii": {"repeatable": True}}
    settings["quality"] = {"enabled": True}
    clean(*many_files, out="one", **settings)
    clean(*many_files, out="two", workers=2, **settings)
    monkeypatch.setattr(cleaning, "BATCH_CHARS", 50)
    clean(*many_files, out="small", **settings)
    assert len(shard_paths(tmp_path / "one" / "documents")) == 3
    assert digests(tmp_path / "one") == digests(tmp_path / "two") == digests(tmp_path / "small")


PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from corpus import assemble
from corpus.reading import inputs
from corpus.config import CorpusConfig
from corpus.reading.inputs import find_inputs
from corpus.pii import key
from corpus.run import CorpusInputs, run

replace = os.replace
left, dies = 0, ""

def replace_or_die(source, target):
    global left
    left -= 1
    if left == 0 and dies == "half written":
        written = max(p for p in [Path(source), *Path(source).rglob("*")] if p.is_file())
        os.truncate(written, written.stat().st_size // 2)
    if left or dies == "behind":
        replace(source, target)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def clean(out, texts, secret):
    os.replace = replace_or_die
    if secret is not None:
        key.random_secret = secret.encode
    inputs.UNIT_BYTES, assemble.SHARD_DOCUMENTS = 2_000, 40
    quality = {"enabled": secret is None}
    config = CorpusConfig(inputs=texts, pii={"repeatable": secret is None}, quality=quality)
    run(config, CorpusInputs(find_inputs(texts, {}, "text"), []), Path(out), workers=1)

codes = []
for out, texts, left, dies, secret in json.loads(sys.argv[1]):
    child = os.fork()  # a fresh copy each time, without the seconds that imports take
    if child == 0:
        clean(out, texts, secret)
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(codes))
"""


class Start(NamedTuple):
    """A run of the stage that ends itself at a rename: "half written", "before" or "behind" the ``dies_at``-th one."""

    out: str
    texts: list[str]
    dies_at: int = 0
    dies: str = ""
    secret: str | None = None


def exit_codes(*starts: Start) -> list[int]:
    """Do the runs in turn, each in a process of its own."""
    for start in starts:
        Path(start.out).mkdir(exist_ok=True)
    done = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(starts)], stdout=subprocess.PIPE, check=True)
    return list(json.loads(done.stdout))


@pytest.mark.slow
def test_a_run_killed_at_twenty_moments_resumes_to_the_same_bytes(tmp_path: Path, many_files: list[Path]) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    rng, texts = random.Random(0), list(map(str, many_files))
    moments = [(rng.randint(1, 6), rng.choice(["half written", "before", "behind"])) for _ in range(20)]
    first, *codes, last = exit_codes(
        Start(str(whole), texts), *(Start(str(killed), texts, *moment) for moment in moments), Start(str(killed), texts)
    )
    assert (first, last) == (0, 0)
    assert codes.count(-signal.SIGKILL) >= 10
    assert set(codes) <= {-signal.SIGKILL, 0}
    assert digests(killed) == digests(whole)
    assert not list(killed.glob(".*"))


def test_parts_of_other_settings_are_never_used(tmp_path: Path, clean: Callable[..., Any]) -> None:
    stale = tmp_path / "out" / ".work-0000000000000000" / "units" / "unit-00000"
    stale.mkdir(parents=True)
    (stale / "counts.json").write_text("{}", "utf-8")
    assert clean(write_jsonl(tmp_path / "a.jsonl", STORY))["documents"] == 4
    assert not list((tmp_path / "out").glob(".work-*"))


def test_real_news_lose_the_benchmark_sentences_they_hold(
    tmp_path: Path, clean: Callable[..., Any], shared: Callable[[str], Path]
) -> None:
    news = shared("data/corpora/wikinews.jsonl.zst")
    premises = [shared(f"data/klue/official/klue-nli-v1.1/klue-nli-v1.1_{part}.json.zst") for part in ("train", "dev")]
    truth = shared("data/klue/derived/contamination_truth.jsonl.zst")
    clean(news, benchmarks=premises)
    report = json.loads((tmp_path / "out" / "decontamination.json").read_text("utf-8"))
    lines = b"".join(read_blocks(truth)).splitlines()
    wanted = {row["guid"] for row in map(json.loads, lines) if row["doc"].startswith("wikinews")}
    wanted = {guid for guid in wanted if guid.startswith("klue-nli")}
    assert len(wanted) > 3_000
    assert len(wanted & set(report["tasks"]["klue-nli"]["found"])) / len(wanted) >= 0.999

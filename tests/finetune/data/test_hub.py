"""A copy in the Hub's layout (parquet, numbered labels) becomes official files that read like the originals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from datasets import ClassLabel, Dataset, Features, List, Value

from corpus.documents.errors import BadInput
from finetune.data.files import find_file, read_blocks, read_json, read_records, read_text, version_of
from finetune.data.hub import find_copy, materialize
from finetune.examples import Example
from finetune.registry import TASKS
from finetune.tasks.re.metrics import RE_LABELS
from launch.sample.unpack import unpack

TEXT, INT = Value("string"), Value("int32")
ENTITY = {"word": TEXT, "start_idx": INT, "end_idx": INT, "type": TEXT}
TYPES = ("DT", "LC", "OG", "PS", "QT", "TI")
ORDERS = {  # of the Hub, none like the official one
    "ynat": ["IT과학", "경제", "사회", "생활문화", "세계", "스포츠", "정치"],
    "nli": ["entailment", "neutral", "contradiction"],
    "ner": [f"{mark}-{kind}" for kind in TYPES for mark in "BI"] + ["O"],
}
FEATURES: Mapping[str, Mapping[str, Any]] = {
    "ynat": {"guid": TEXT, "title": TEXT, "label": ClassLabel(names=ORDERS["ynat"]), "url": TEXT, "date": TEXT},
    "sts": {
        "guid": TEXT, "source": TEXT, "sentence1": TEXT, "sentence2": TEXT,
        "labels": {
            "label": Value("float64"), "real-label": Value("float64"),
            "binary-label": ClassLabel(names=["negative", "positive"]),
        },
    },
    "nli": {
        "guid": TEXT, "source": TEXT, "premise": TEXT, "hypothesis": TEXT, "label": ClassLabel(names=ORDERS["nli"]),
    },
    "ner": {"sentence": TEXT, "tokens": List(TEXT), "ner_tags": List(ClassLabel(names=ORDERS["ner"]))},
    "re": {
        "guid": TEXT, "sentence": TEXT, "subject_entity": ENTITY, "object_entity": ENTITY,
        "label": ClassLabel(names=list(RE_LABELS)), "source": TEXT,
    },
    "dp": {
        "sentence": TEXT, "index": List(INT), "word_form": List(TEXT), "lemma": List(TEXT), "pos": List(TEXT),
        "head": List(INT), "deprel": List(TEXT),
    },
    "mrc": {
        "title": TEXT, "context": TEXT, "news_category": TEXT, "source": TEXT, "guid": TEXT,
        "is_impossible": Value("bool"), "question_type": INT, "question": TEXT,
        "answers": {"answer_start": List(INT), "text": List(TEXT)},
    },
    "wos": {"guid": TEXT, "domains": List(TEXT), "dialogue": List({"role": TEXT, "text": TEXT, "state": List(TEXT)})},
}  # fmt: skip
CONFIG_OF = {name: name.removeprefix("klue-") for name in TASKS}


def rows_of(config: str, path: Path) -> list[dict[str, Any]]:
    """The rows that the published Hub builder makes of an official file, label names not yet numbered."""
    if config == "ner":
        blocks = [(b.header.split("\t")[1], [line.rsplit("\t", 1) for _, line in b.lines]) for b in read_blocks(path)]
        return [
            {"sentence": text, "tokens": [c for c, _ in lines], "ner_tags": [t for _, t in lines]}
            for text, lines in blocks
        ]
    if config == "dp":
        blocks = [(b.header.split("\t")[1], [line.split("\t") for _, line in b.lines]) for b in read_blocks(path)]
        names = list(FEATURES["dp"])[1:]
        return [{"sentence": text, **dict(zip(names, zip(*lines, strict=True), strict=True))} for text, lines in blocks]
    if config == "mrc":
        return [
            {
                **{key: article.get(key) for key in ("title", "news_category", "source")},
                **{key: question[key] for key in ("guid", "is_impossible", "question_type")},
                "context": paragraph["context"].strip(),
                "question": question["question"].strip(),
                "answers": {
                    key: [answer[key] for answer in question["answers"] + question.get("plausible_answers", [])]
                    for key in ("answer_start", "text")
                },
            }
            for article in read_json(path)["data"]
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]
    records = [record for _, record in read_records(path)]
    if config == "wos":
        for record in records:
            record["dialogue"] = [{"state": [], **turn} for turn in record["dialogue"]]
    return [{"label": record.get("gold_label"), **record} for record in records]


def publish(folder: Path, config: str, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    """One configuration of a clone: parquet files and the card that names them."""
    features = FEATURES[config]
    (folder / config).mkdir(parents=True)
    for split, listed in rows.items():
        kept = [{key: row.get(key) for key in features} for row in listed]
        data = {key: [row[key] for row in kept] for key in features}
        for key, feature in features.items():
            if isinstance(feature, ClassLabel):
                data[key] = [feature.str2int(name) for name in data[key]]
            elif isinstance(getattr(feature, "feature", None), ClassLabel):
                data[key] = [feature.feature.str2int(names) for names in data[key]]
            elif feature == List(INT):
                data[key] = [[int(value) for value in values] for values in data[key]]
        path = folder / config / f"{split}-00000-of-00001.parquet"
        Dataset.from_dict(data, features=Features(features)).to_parquet(path)
    with (folder / "README.md").open("w", encoding="utf-8") as card:
        card.write("---\nconfigs:\n")
        for each in sorted(path.name for path in folder.iterdir() if path.is_dir()):
            card.write(f"- config_name: {each}\n  data_files:\n")
            for path in sorted((folder / each).iterdir()):
                card.write(f"  - split: {path.name.split('-')[0]}\n    path: {each}/{path.name}\n")
        card.write("---\n")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("official")
    unpack(folder)
    return folder / "klue"


def comparable(examples: list[Example], most: int | None = None) -> list[tuple[Any, ...]]:
    """What an example is; the Hub has no guids of NER and DP, where ours end before the source (``-wikitree``)."""
    return [
        (e.guid[:21] if e.guid.startswith("klue-ner") else e.guid[:20] if e.guid.startswith("klue-dp") else e.guid,
         e.gold, {key: value for key, value in e.inputs.items() if key != "ontology"})
        for e in examples[:most]
    ]  # fmt: skip


@pytest.mark.parametrize("task", TASKS)
def test_the_files_written_read_like_the_official_ones(task: str, official: Path, tmp_path: Path) -> None:
    rows = {split: rows_of(CONFIG_OF[task], official / getattr(TASKS[task].files, name))[:40]
            for split, name in (("train", "train"), ("validation", "dev"))}  # fmt: skip
    publish(tmp_path / "clone", CONFIG_OF[task], rows)
    folder = materialize(tmp_path / "clone", tmp_path / "cache", [task])
    for split in ("train", "dev"):
        name = getattr(TASKS[task].files, split)
        ours = TASKS[task].read(folder / name)
        theirs = TASKS[task].read(official / name)
        assert len(ours) >= 40
        assert comparable(ours) == comparable(theirs, len(ours))


@pytest.mark.parametrize("task", ["klue-ner", "klue-dp", "klue-mrc", "klue-sts", "wos"])
def test_real_examples_survive_the_hub(task: str, shared: Callable[[str], Path], tmp_path: Path) -> None:
    path = find_file(shared("data/klue"), TASKS[task].files.dev)
    assert path is not None
    if ".tsv" in path.name:
        blocks = read_text(path).split("\n\n")[:60]
        path = tmp_path / "head.tsv"
        path.write_text("\n\n".join(blocks) + "\n\n", "utf-8")
    rows = rows_of(CONFIG_OF[task], path)[:60]
    for row in rows:
        if row.get("question_type", 0) is None:
            row["question_type"] = 1  # the reduced file leaves it open
    publish(tmp_path / "clone", CONFIG_OF[task], {"validation": rows})
    folder = materialize(tmp_path / "clone", tmp_path / "cache", [task])
    ours, theirs = TASKS[task].read(folder / TASKS[task].files.dev), TASKS[task].read(path)
    if task == "klue-mrc":
        for example in (*ours, *theirs):
            example.gold.pop("question_type")
    assert len(ours) >= 60
    assert comparable(ours) == comparable(theirs, len(ours))


NLI = [
    {
        "guid": f"klue-nli-v1_dev_{i:05}",
        "source": "sample",
        "premise": "비가 온다.",
        "hypothesis": "맑다.",
        "label": label,
    }
    for i, label in enumerate(("contradiction", "neutral", "entailment"))
]


def test_labels_are_mapped_by_name_not_by_number(tmp_path: Path) -> None:
    publish(tmp_path / "clone", "nli", {"validation": NLI})
    folder = materialize(tmp_path / "clone", tmp_path / "cache", ["klue-nli"])
    golds = [example.gold for example in TASKS["klue-nli"].read(folder / TASKS["klue-nli"].files.dev)]
    assert golds == ["contradiction", "neutral", "entailment"]


def test_an_unanswerable_question_keeps_no_answer(tmp_path: Path) -> None:
    row = {
        "title": "", "context": "서울은 크다.", "news_category": None, "source": "sample", "guid": "q0",
        "is_impossible": True, "question_type": 3, "question": "부산은?",
        "answers": {"answer_start": [0], "text": ["서울"]},
    }  # fmt: skip
    publish(tmp_path / "clone", "mrc", {"validation": [row, {**row, "guid": "q1", "is_impossible": False}]})
    folder = materialize(tmp_path / "clone", tmp_path / "cache", ["klue-mrc"])
    golds = [example.gold["answers"] for example in TASKS["klue-mrc"].read(folder / TASKS["klue-mrc"].files.dev)]
    assert golds == [[], ["서울"]]


def test_what_is_written_is_kept_and_says_where_it_is_from(tmp_path: Path) -> None:
    publish(tmp_path / "clone", "nli", {"validation": NLI})
    folder = materialize(tmp_path / "clone", tmp_path / "cache", ["klue-nli"])
    (tmp_path / "clone" / "nli" / "validation-00000-of-00001.parquet").write_bytes(b"")  # it would not load again
    assert materialize(tmp_path / "clone", tmp_path / "cache", ["klue-nli"]) == folder
    source = json.loads((folder / "source.json").read_text("utf-8"))
    assert source == {"source": f"Hub {tmp_path / 'clone'}", "tasks": {"klue-nli": {"dev": 3}}}
    assert version_of(folder / TASKS["klue-nli"].files.dev, "0" * 64) == source["source"]
    assert [path.name for path in folder.rglob("*.partial")] == []


def test_a_copy_without_a_column_or_a_label_is_refused(tmp_path: Path) -> None:
    publish(tmp_path / "a", "nli", {"validation": NLI})
    path = tmp_path / "a" / "nli" / "validation-00000-of-00001.parquet"
    Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "c")).remove_columns("premise").to_parquet(path)
    with pytest.raises(BadInput, match="nli, validation: no column premise; found guid"):
        materialize(tmp_path / "a", tmp_path / "cache", ["klue-nli"])
    publish(tmp_path / "b", "nli", {"validation": NLI})
    path = tmp_path / "b" / "nli" / "validation-00000-of-00001.parquet"
    unlabelled = Dataset.from_list([{**row, "label": -1} for row in NLI], features=Features(FEATURES["nli"]))
    unlabelled.to_parquet(path)
    with pytest.raises(BadInput, match="row 0: label -1 is none of 3 labels"):
        materialize(tmp_path / "b", tmp_path / "cache", ["klue-nli"])


def test_a_copy_that_cannot_be_loaded_is_one_sentence(tmp_path: Path) -> None:
    publish(tmp_path / "clone", "nli", {"validation": NLI})
    with pytest.raises(BadInput, match="configuration dp: cannot be loaded"):
        materialize(tmp_path / "clone", tmp_path / "cache", ["klue-dp"])


def test_a_copy_without_dev_is_no_benchmark(tmp_path: Path) -> None:
    publish(tmp_path / "clone", "nli", {"train": NLI})
    with pytest.raises(BadInput, match="no split 'validation'; found train"):
        materialize(tmp_path / "clone", tmp_path / "cache", ["klue-nli"])


def test_names_of_the_hub_and_folders_are_distinguished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_copy("klue") == ("klue/klue", None)
    assert find_copy("hub:someone/klue@v2") == ("someone/klue", "v2")
    assert find_copy("nowhere") is None
    (tmp_path / "klue").mkdir()
    assert find_copy("klue") is None
    assert materialize("klue", tmp_path / "cache", ["ynat"]) == Path("klue")

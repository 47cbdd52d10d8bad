"""``malmoi package`` and ``malmoi score ARCHIVE``: equal bytes, equal scores elsewhere, safe with hostile archives."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from corpus.documents.atomic_files import atomic_write, with_digest
from corpus.documents.errors import BadInput
from finetune.data.files import identify
from finetune.examples import Row
from finetune.registry import TASKS
from finetune.score.bootstrap import bootstrap
from finetune.score.scores import defined, defined_tables
from finetune.task_names import TASK_NAMES
from launch.sample.unpack import read_archive
from launch.tools.package import score_archive, write_package
from tests.launch.tools.test_score import malmoi

SECRET = "/home/somebody/encoders/mine"
SAMPLES = 3


def write_result(run: Path, klue: Path, name: str, model: str = "model", seed: int = 1, **more: Any) -> Path:
    """Write the files of a training whose predictions are the trivial ones."""
    task = TASKS[name]
    train, dev = (klue / task.files.of(split) for split in ("train", "dev"))
    scored_on = train if more.get("recipe", {}).get("held_out_share") else dev
    examples = task.read(scored_on)[:: more.pop("every", 1)]
    found = task.inspection.trivial(task.read(train)[:40], examples)
    if name == "klue-re":
        found = [prediction._replace(scores=[1 / 30] * 30) for prediction in found]
    rows = [Row(e.guid, e.gold, *p) for e, p in zip(examples, found, strict=True)]
    scores, groups = task.score(rows), [task.group(example) for example in examples]
    result = {
        "task": name, "model": model, "settings": "", "seed": seed, "protocol": "malmoi", "split": "dev",
        "is_official_dev": False, "n": len(rows), "n_train": 40, "headline": next(iter(scores)),
        "bootstrap_samples": SAMPLES, "scores": defined(scores), "trivial": defined(scores), "recipe": {},
        "intervals": bootstrap(task, rows, groups, SAMPLES, 42), "tables": defined_tables(task.inspection.tables(rows)),
        "data": {"train": identify(train), "dev": identify(dev)}, "selected": None, "versions": {}, **more,
    }  # fmt: skip
    folder = run / "finetune" / name / model.replace("/", "-").strip("-") / f"seed-{seed}"
    lines = (json.dumps(row._asdict(), ensure_ascii=False) + "\n" for row in rows)
    atomic_write(folder / "predictions.jsonl", "".join(lines))
    atomic_write(folder / "errors.json", '{"text": "비밀"}')
    atomic_write(folder / "scores.json", json.dumps(result, ensure_ascii=False))
    return folder


@pytest.fixture(scope="module")
def klue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded KLUE files, a few examples of each dev file."""
    folder = tmp_path_factory.mktemp("sample")
    for name, content in read_archive("klue.tar.zst").items():
        atomic_write(folder / name, content)
    return folder / "klue"


@pytest.fixture(scope="module")
def finished(klue: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with results of all tasks, and a second seed of one."""
    run = tmp_path_factory.mktemp("runs") / "toy"
    for name in TASK_NAMES:
        write_result(run, klue, name)
    write_result(run, klue, "ynat", seed=2, every=3, split="20% of dev, by seed")
    return run


@pytest.fixture
def packed(finished: Path, tmp_path: Path) -> Path:
    path = tmp_path / "toy-predictions.zip"
    write_package(finished, path)
    return path


def files_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack_again(path: Path, change: Callable[[dict[str, bytes], dict[str, Any]], object]) -> Path:
    """The archive with changed files or manifest and a new digest, as an attacker would write it."""
    files = files_of(path)
    contents = json.loads(files.pop("package.json"))
    change(files, contents)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**files, "package.json": json.dumps(with_digest(contents)).encode()}.items():
            archive.writestr(name, content)
    return path


def test_all_eight_tasks_score_the_same_elsewhere(packed: Path, klue: Path) -> None:
    names, scores, differences = zip(*score_archive(packed, klue), strict=True)
    assert [name.partition(",")[0] for name in names] == ["ynat", *TASK_NAMES]
    assert list(differences) == [[]] * 9
    packed_scores = [
        json.loads(text)["scores"] for name, text in files_of(packed).items() if name.endswith("scores.json")
    ]
    assert sorted(map(str, scores)) == sorted(map(str, packed_scores))


def test_a_scored_part_of_train_is_scored_again(klue: Path, tmp_path: Path) -> None:
    held = {"every": 5, "split": "20% of the training examples", "recipe": {"held_out_share": 0.2}}
    write_result(tmp_path, klue, "klue-nli", **held)
    write_package(tmp_path, tmp_path / "p.zip")
    ((_, scores, differences),) = score_archive(tmp_path / "p.zip", klue)
    assert scores and not differences


def test_equal_results_give_equal_bytes(finished: Path, packed: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "toy"
    shutil.copytree(finished, copy)
    write_package(copy, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_texts_are_never_packed_and_golds_only_on_request(finished: Path, packed: Path, tmp_path: Path) -> None:
    files = files_of(packed)
    lines = b"".join(content for name, content in files.items() if name.endswith(".jsonl"))
    assert b'"gold"' not in lines and "비밀" not in b"".join(files.values()).decode()
    with pytest.raises(BadInput, match="no gold labels"):
        list(score_archive(packed, None))
    write_package(finished, tmp_path / "golds.zip", with_golds=True)
    assert "CC BY-SA 4.0" in json.loads(files_of(tmp_path / "golds.zip")["package.json"])["licence"]
    assert [differences for _, _, differences in score_archive(tmp_path / "golds.zip", None)] == [[]] * 9


def test_paths_of_this_machine_are_not_packed(klue: Path, tmp_path: Path) -> None:
    members = [{"model": SECRET, "seed": 1}, {"model": f"fresh:{SECRET}", "seed": 1}]
    for model in (SECRET, "/another/mine"):
        write_result(
            tmp_path / "run", klue, "ynat", model, members=members, hyperparameters={"start": SECRET, "lr": 1.0}
        )
    write_package(tmp_path / "run", tmp_path / "p.zip")
    files = files_of(tmp_path / "p.zip")
    assert "finetune/ynat/mine/seed-1/scores.json" in files and "finetune/ynat/mine-2/seed-1/scores.json" in files
    assert b"somebody" not in b"".join(files.values())


def test_other_files_than_the_scored_ones_are_reported(packed: Path, klue: Path, tmp_path: Path) -> None:
    other = tmp_path / "klue"
    shutil.copytree(klue, other)
    path = other / TASKS["klue-nli"].files.dev
    records = json.loads(path.read_text("utf-8"))
    predicted = json.loads(files_of(packed)["finetune/klue-nli/model/seed-1/predictions.jsonl"].splitlines()[0])
    right = next(record for record in records if record["gold_label"] == predicted["prediction"])
    right["gold_label"] = "neutral" if right["gold_label"] != "neutral" else "entailment"
    path.write_text(json.dumps(records), "utf-8")
    (other / TASKS["wos"].files.dev).unlink()
    found = {
        name.partition(",")[0]: (scores, differences) for name, scores, differences in score_archive(packed, other)
    }
    differences = found["klue-nli"][1]
    assert "another sha256" in differences[0] and differences[1].startswith("accuracy: ")
    assert not found["wos"][0] and "wos-v1.1_dev.json is missing" in found["wos"][1][0]
    assert not found["klue-sts"][1]


def test_predictions_that_do_not_give_their_scores_are_not_packed(klue: Path, tmp_path: Path) -> None:
    folder = write_result(tmp_path, klue, "ynat")
    lines = (folder / "predictions.jsonl").read_text("utf-8").splitlines(keepends=True)
    (folder / "predictions.jsonl").write_text("".join(lines[1:]), "utf-8")
    with pytest.raises(BadInput, match="does not give the scores in"):
        write_package(tmp_path, tmp_path / "p.zip")
    assert not (tmp_path / "p.zip").exists()


def test_the_command_packs_all_results_and_scores_them(finished: Path, klue: Path, tmp_path: Path) -> None:
    result = malmoi("package", str(finished), cwd=tmp_path)
    assert result.stdout.decode().startswith("toy-predictions.zip: 9 results, without gold labels, ")
    again = malmoi("score", "toy-predictions.zip", "--data", str(klue), cwd=tmp_path)
    assert again.returncode == 0
    assert again.stdout.decode().splitlines()[-1] == "9 of 9 results are the same to the last digit"
    (tmp_path / "empty").mkdir()
    again = malmoi("score", "toy-predictions.zip", "--data", "empty", cwd=tmp_path)
    assert again.returncode == 1 and b"0 of 9 results" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("package", "nowhere"), "no finetune folder"),
        (("package", "{run}", "out.tar"), "ends in .zip"),
        (("score", "nothing.zip", "--data", "."), "nothing.zip: no such file"),
        (("score", "ynat"), "no predictions; give"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments: tuple[str, ...], said: str, finished: Path, tmp_path: Path) -> None:
    result = malmoi(*(word.format(run=finished) for word in arguments), cwd=tmp_path)
    assert result.returncode == 2 and said in result.stderr.decode()
    assert len(result.stderr.decode().splitlines()) == 1


HARM: Mapping[str, tuple[Callable[[dict[str, bytes], dict[str, Any]], object], str]] = {
    "missing": (lambda files, contents: contents["results"].append("../x"), "not the file that was packed"),
    "unlisted": (lambda files, contents: files.update({"../../evil": b""}), "not those that package.json lists"),
    "changed": (lambda files, contents: files.update({"finetune/wos/model/seed-1/scores.json": b"{}"}), "not the file"),
    "none": (lambda files, contents: contents.update(results=[]), "changed, or written by another"),
    "format": (lambda files, contents: contents.update(format=1), "another release"),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_manipulated_archive_is_rejected(harm: str, packed: Path, klue: Path) -> None:
    change, said = HARM[harm]
    with pytest.raises(BadInput, match=said):
        list(score_archive(pack_again(packed, change), klue))


@pytest.mark.parametrize("key", ["scores", "n", "protocol"])
def test_a_result_without_a_key_is_one_sentence(key: str, packed: Path, klue: Path) -> None:
    def drop(files: dict[str, bytes], contents: dict[str, Any]) -> None:
        name = "finetune/ynat/model/seed-1/scores.json"
        found = json.loads(files[name])
        del found[key]
        files[name] = json.dumps(found).encode()
        contents["files"][name] = [len(files[name]), hashlib.sha256(files[name]).hexdigest()]

    with pytest.raises(BadInput, match=f"'{key}' should be"):
        list(score_archive(pack_again(packed, drop), klue))


def test_a_damaged_archive_is_one_sentence(packed: Path, klue: Path) -> None:
    whole = packed.read_bytes()
    for content in (b"", b"PK\x03\x04", whole[: len(whole) // 2], whole[:2000] + b"\0" * 500 + whole[2500:]):
        packed.write_bytes(content)
        with pytest.raises(BadInput, match=r"toy-predictions\.zip.*again"):
            list(score_archive(packed, klue))

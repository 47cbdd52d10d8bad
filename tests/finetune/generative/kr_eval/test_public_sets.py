"""Public data sets as llm-kr-eval files: every layout in, golds that score 100 out, one message for a bad file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finetune.data.custom_files import squeeze
from finetune.data.files import read_text
from finetune.data.public_sets import data_sets
from finetune.generative.client.ask import Client
from finetune.generative.exports import prepare_kr_eval
from finetune.generative.kr_eval.metrics import measure_bias
from finetune.generative.kr_eval.run import read_task_file, run_files
from finetune.generative.tables import kr_eval_table
from tests.command import run_command
from tests.conftest import SHARED
from tests.finetune.generative.kr_eval.test_export import gold_scores
from tests.finetune.generative.server import Reply, serving

REAL = SHARED / "data/korean_nlu"
ROWS = 24


def tsv(header: str, row: Callable[[int], str]) -> str:
    return "\r\n".join([header.replace(",", "\t"), *(row(n).replace("|", "\t") for n in range(ROWS))]) + "\r\n"


def lines(row: Callable[[int], dict[str, Any]]) -> str:
    return "\n".join(json.dumps(row(n), ensure_ascii=False) for n in range(ROWS))


def kobbq(n: int) -> str:
    context, question = divmod(n, 2)[0] % 2, n % 2
    first, second = ("손자", "할머니") if n % 4 < 2 else ("할머니", "손자")
    biased = "할머니" if question == 0 else "손자"
    answer = "알 수 없음" if context == 0 else ("손자", "할머니")[n // 4 % 2]
    kind = f"{'amb' if context == 0 else 'dis'}-{'bsd' if question == 0 else 'cnt'}"
    return (
        f"age-{n:03}a-001-{kind}|ST|{first}와 {second}가 {n}번째로 왔다.|누가 늦었습니까?|"
        f"['{first}', '{second}', '알 수 없음']|{biased}|{answer}|1.0|Age|"
    )


FILES: dict[str, tuple[str, str]] = {  # file name and content; texts are invented, layouts are those of the publishers
    "kornli": ("xnli.dev.ko.tsv", tsv("sentence1,sentence2,gold_label", lambda n: (
        f'그가 말했다, "{n}번이야."|{n}번이다.|{("entailment", "neutral", "contradiction")[n % 3]}'))),
    "korsts": ("sts-dev.tsv", tsv("genre,filename,year,id,score,sentence1,sentence2", lambda n: (
        f"news|MSR|2012|{n:04}|{n % 21 / 4:.3f}|말 {n}마리가 뛴다.|말이 달린다."))),
    "kobest_boolq": ("test.tsv", tsv("ID,Text,Question,Answer", lambda n: (
        f"{n}|산이 {n}개 있다.|산이 많은가?|{('True', 'False')[n % 2]}"))),
    "kobest_copa": ("test.tsv", tsv("ID,sentence,question,1,2,Answer", lambda n: (
        f"{n}|비가 {n}일 왔다.|결과|강이 불었다.|강이 말랐다.|{n % 2 + 1}"))),
    "kobest_hs": ("test.tsv", tsv("context,choice1,choice2,choice3,choice4,label", lambda n: (
        f"공이 {n}번 튄다.|가|나|다|라|{n % 4}"))),
    "kobest_sn": ("test.tsv", tsv("ID,Label_origin,Text_origin,Label,Text,Category_neg", lambda n: (
        f"{n}|1|좋아요|{n % 2}|{n}개 샀는데 좋지 않아요|x"))),
    "kobest_wic": ("test.tsv", tsv(
        "ID,Target,SENTENCE1,Dictionary 1,Link 1,SENTENCE2,Dictionary 2,Link2,ANSWER",
        lambda n: f"{n}|배|[배]가 {n}척 떴다.|1|x|[배]가 달다.|2|x|{('True', 'False')[n % 2]}")),
    "kmmlu": ("Law-test.csv", "question,answer,A,B,C,D,Category,Human Accuracy\n" + "".join(
        f'"맞는 것은, {n}?",{n % 4 + 1},가,나,다,라,Law,0.5\n' for n in range(ROWS))),
    "haerae_bench_v1": ("hrb.v1.1.jsonl", lines(lambda n: {
        "query": f"### 질문: {n}은?\n### 선택지:\n(A) 가\n(B) 나", "options": ["가", "나"], "category": "history",
        "answer": f"({'AB'[n % 2]})"})),
    "korea_cg": ("korean_commongen_official_test.json", lines(lambda n: {
        "concept-set": f"새#나무#{n}", "scene": [f"새 {n}마리가 나무에 있다.", f"나무에 새가 {n}마리 있다."]})),
    "kobbq": ("KoBBQ_test_samples.tsv", tsv(
        "sample_id,label_annotation,context,question,choices,biased_answer,answer,bbq_id,bbq_category,prediction",
        kobbq)),
    "korean-hate-speech_hate": ("dev.tsv", tsv("comments,contain_gender_bias,bias,hate", lambda n: (
        f'"{n}번 본다|False|none|{("none", "offensive", "hate")[n % 3]}'))),
    "korean-hate-speech_bias": ("dev.tsv", tsv("comments,contain_gender_bias,bias,hate", lambda n: (
        f"{n}번 본다|False|{('none', 'gender', 'others')[n % 3]}|none"))),
    "komoral": ("talksets-train-6.json", json.dumps([
        {"id": f"talk-{n}", "sentences": [
            {"id": f"{n}-{m}", "text": f"말 {n} {m}", "is_immoral": m == 1, "types": ["IMMORAL_NONE"], "intensity": 0.0}
            for m in range(2)]} for n in range(ROWS // 2)], ensure_ascii=False)),
}  # fmt: skip


def write(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file, content = FILES[name]
    (folder / file).write_bytes(content.encode())
    return folder / file


@pytest.mark.parametrize("name", FILES)
def test_a_public_file_becomes_an_evaluation_file_whose_golds_score_100(name: str, tmp_path: Path) -> None:
    counts = prepare_kr_eval(name, [write(tmp_path, name)], (), tmp_path / "out")
    path = tmp_path / "out/evaluation/test" / f"{name}.json"
    task = read_task_file(path)
    assert (len(task.samples), len(task.few_shots)) == (counts["samples"], counts["few-shot"]) == (ROWS - 12, 4)
    assert gold_scores(path) == pytest.approx(dict.fromkeys(task.metrics, 100))
    assert not any("{" in sample.input for sample in task.samples)
    assert set(task.golds) <= set(data_sets()[name].choices or task.golds)
    assert not list((tmp_path / "out").glob("tuning/train/*"))  # all training examples are few-shot ones


def test_all_data_sets_have_a_layout() -> None:
    assert FILES.keys() == data_sets().keys()


INPUTS = {
    "kornli": ('전제: 그가 말했다, "0번이야."\n가설: 0번이다.', "entailment"),
    "korsts": ("문장 1: 말 19마리가 뛴다.\n문장 2: 말이 달린다.", "4.75"),
    "kobest_copa": ("전제: 비가 1일 왔다.\n물음: 결과\n1: 강이 불었다.\n2: 강이 말랐다.", "2"),
    "kobest_sn": ("문장: 3개 샀는데 좋지 않아요", "positive"),
    "kmmlu": ("문제: 맞는 것은, 2?\nA: 가\nB: 나\nC: 다\nD: 라", "C"),
    "korea_cg": ("낱말: 새, 나무, 5", "새 5마리가 나무에 있다."),
    "korean-hate-speech_hate": ('문장: "2번 본다', "1"),
    "komoral": ("문장: 말 3 1", "1"),
}


@pytest.mark.parametrize("name", INPUTS)
def test_a_row_is_asked_as_the_table_says(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    prepare_kr_eval(name, [path], [path], tmp_path / "out")
    samples = read_task_file(tmp_path / "out/evaluation/test" / f"{name}.json").samples
    assert INPUTS[name] in [(sample.input, sample.output) for sample in samples]


def test_training_rows_that_are_evaluated_are_left_out_and_draws_depend_on_the_seed_alone(tmp_path: Path) -> None:
    path, other = write(tmp_path, "kornli"), tmp_path / "train.tsv"
    header, *rows = path.read_text("utf-8").splitlines()
    other.write_text("\n".join([header, *rows[:5], *(f"{n}  {row}" for n, row in enumerate(rows))]), "utf-8")
    drawn = {}
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        counts = prepare_kr_eval("kornli", [path], [other], tmp_path / folder, samples=6, seed=seed)
        assert counts == {"samples": 6, "few-shot": 4, "tuning": ROWS - 14, "left out": 5}
        drawn[folder] = [file.read_bytes() for file in sorted((tmp_path / folder).rglob("*.json"))]
    assert drawn["a"] == drawn["b"] != drawn["c"]
    tuning = json.loads((tmp_path / "a/tuning/train/kornli.json").read_text("utf-8"))
    asked = {squeeze("전제: {}가설: {}".format(*row.split("\t"))) for row in rows}
    assert not asked & {squeeze(record["input"]) for record in tuning}


def test_the_options_of_kobbq_change_their_order_and_the_gold_goes_with_them(tmp_path: Path) -> None:
    path = write(tmp_path, "kobbq")
    prepare_kr_eval("kobbq", [path], [path], tmp_path / "out")
    samples = read_task_file(tmp_path / "out/evaluation/test/kobbq.json").samples
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8")), delimiter="\t"))
    assert {sample.unknown for sample in samples} == set("ABC")
    for row, sample in zip(rows, samples, strict=True):
        options = dict(line.split(": ") for line in sample.input.split("\n")[2:])
        assert options[sample.output] == row["answer"] and options[sample.unknown] == "알 수 없음"
        assert options[sample.biased] == row["biased_answer"] and sorted(options.values()) == sorted(
            [*{"손자", "할머니"}, "알 수 없음"]
        )


def test_bias_is_that_of_the_published_formulas() -> None:
    """``rows``: gold, answer, stereotyped, unknown; shares counted one by one."""
    rows = [
        *[("C", "A", "A", "C")] * 5, *[("C", "B", "A", "C")] * 2, *[("C", "C", "A", "C")] * 12, ("C", "", "A", "C"),
        *[("A", "A", "A", "C")] * 9, *[("A", "C", "A", "C")] * 1, *[("B", "B", "A", "C")] * 6,
        *[("B", "A", "A", "C")] * 3, ("B", "", "A", "C"),
    ]  # fmt: skip
    found = {name: measured["value"] for name, measured in measure_bias(rows).items()}
    assert found == pytest.approx(
        {
            "accuracy_ambiguous": 100 * 12 / 20,
            "accuracy_disambiguated": 100 * 15 / 20,
            "bias_ambiguous": 100 * (5 - 2) / 20,
            "bias_disambiguated": 100 * (9 / 10 - 6 / 10),
        }
    )
    for measured in measure_bias(rows).values():
        low, high = measured["interval"]
        assert -100 <= low < measured["value"] < high <= 100


def test_a_model_that_follows_stereotypes_has_a_bias_in_the_table(tmp_path, monkeypatch) -> None:
    path = write(tmp_path, "kobbq")
    prepare_kr_eval("kobbq", [path], [path], tmp_path / "out")
    file = tmp_path / "out/evaluation/test/kobbq.json"
    biased = {sample.input: sample.biased for sample in read_task_file(file).samples}

    def follow(asked: str, before: int) -> Reply:
        return Reply(f"정답은 {next(answer for text, answer in biased.items() if asked.endswith(text))}입니다.")

    with serving(follow) as server:
        monkeypatch.setenv("LOOPBACK_BASE_URL", server.address)
        monkeypatch.setenv("LOOPBACK_API_KEY", "sk-planted-0123456789")
        results = run_files([file], Client("openai-api/loopback/test"), tmp_path / "results")
    values = {name: measured["value"] for name, measured in results[0]["metrics"].items()}
    assert values["bias_ambiguous"] == values["bias_disambiguated"] == 100 and values["accuracy_ambiguous"] == 0
    shown = {row[1]: (row[2], row[4]) for row in kr_eval_table(results).rows}
    assert shown["bias_ambiguous"] == ("100.00", "100.00") and shown["accuracy_disambiguated"][0] == "50.00"


KOBBQ = "choices\tbiased_answer\tanswer\tcontext\tquestion\n"
BAD = [
    ("kornli", "sentence1\tgold_label\nㄱ\tneutral\n", "no column 'sentence2'; there are sentence1, gold_label"),
    ("kornli", "sentence1\tsentence2\tgold_label\nㄱ\tㄴ\t-\n", "line 2: gold_label: '-'; expected one of entailment"),
    ("kornli", "", "no rows in it"),
    ("korsts", "score\tsentence1\tsentence2\n다섯\tㄱ\tㄴ\n", "score: '다섯'; expected a number"),
    ("korea_cg", '{"concept-set": "새", "scene": []}\n{"concept-set": "말", "scene": ""}', "scene: '"),
    ("komoral", "[]", "no rows in it; expected a JSON list of objects"),
    ("komoral", "[1, 2]", "no rows in it"),
    ("komoral", "{", "broken JSON"),
    ("kobbq", KOBBQ + "__import__('os')\tㄱ\tㄱ\tㄱ\tㄱ\n", "a list of different"),
    ("kobbq", KOBBQ + "['ㄱ', 'ㄴ', 'ㄷ']\tㄱ\tㄹ\tㄱ\tㄱ\n", "'ㄹ'; expected one of"),
    ("kmmlu", "question,answer,A,B,C,D\nㄱ,5,1,2,3,4\n", "answer: '5'; expected one of 1, 2, 3, 4"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "said"), BAD)
def test_a_bad_file_is_one_message(name: str, content: str, said: str, tmp_path: Path, capfd) -> None:
    path = tmp_path / FILES[name][0]
    path.write_text(content, "utf-8")
    out = tmp_path / "out"
    run_command(capfd, "llm", "prepare", name, str(path), "--out", str(out)).refused(path.name, said)
    assert not out.exists()


def test_a_wrong_name_lists_all_and_a_good_one_prints_the_counts(tmp_path: Path, capfd) -> None:
    path, out = str(write(tmp_path, "kobest_copa")), str(tmp_path / "out")
    run_command(capfd, "llm", "prepare", "copa", path, "--out", out).refused("copa: no such data set", "kobest_copa")
    done = run_command(capfd, "llm", "prepare", "kobest_copa", path, "--out", out, "--samples", "9")
    assert done.code == 0 and "kobest_copa" in done.output and " 9 " in done.output


@pytest.mark.parametrize(
    ("name", "file", "column"),
    [("kornli", "kornlu/xnli.dev.ko.tsv.zst", "gold_label"), ("korsts", "kornlu/sts-dev.tsv.zst", "score"),
     ("kobest_boolq", "kobest/BoolQ/test.tsv.zst", "Answer"), ("kobest_copa", "kobest/COPA/test.tsv.zst", "Answer"),
     ("kobest_hs", "kobest/HellaSwag/test.tsv.zst", "label"), ("kobest_sn", "kobest/SentiNeg/test.tsv.zst", "Label"),
     ("kobest_wic", "kobest/WiC/test.tsv.zst", "ANSWER")],
)  # fmt: skip
def test_published_files_are_read_row_by_row(name: str, file: str, column: str, tmp_path: Path) -> None:
    if not (REAL / file).is_file():
        pytest.skip(f"needs {file} in the shared data folder (set MALMOI_SHARED)")
    prepare_kr_eval(name, [REAL / file], [REAL / file], tmp_path)
    task = read_task_file(tmp_path / "evaluation/test" / f"{name}.json")
    header, *rows = (line.split("\t") for line in read_text(REAL / file).replace("\r", "").split("\n") if line)
    golds = [row[header.index(column)].casefold() for row in rows]
    assert len(task.samples) == len(golds)
    pairs = {(gold, sample.output) for gold, sample in zip(golds, task.samples, strict=True)}
    if name == "korsts":
        assert all(float(gold) == float(answer) for gold, answer in pairs)
    else:
        assert len(pairs) == len(data_sets()[name].choices) == len({answer for _, answer in pairs})
    for row, sample in zip(rows, task.samples, strict=True):
        texts = [cell for title, cell in zip(header, row, strict=True) if f"{{{title}}}" in data_sets()[name].input]
        assert all(text.strip() in sample.input for text in texts)

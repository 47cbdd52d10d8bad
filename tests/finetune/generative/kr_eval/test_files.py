"""Evaluation files: reading, messages for broken files, and the answer form that golds demand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from corpus.documents.errors import BadInput
from finetune.generative.kr_eval.metrics import measure
from finetune.generative.kr_eval.run import (
    OPENING,
    Sample,
    clean,
    detect_form,
    parse_gold,
    read_task_file,
    write_task_file,
    write_tuning_file,
)


def nli(**changes: Any) -> dict[str, Any]:
    """A file in the shape of KorNLI."""
    pairs = [
        ("전제: 아이가 웃는다.\n가설: 아이가 있다.", "entailment"),
        ("전제: 비가 온다.\n가설: 맑다.", "contradiction"),
    ]
    samples = [{"input": question, "output": gold} for question, gold in pairs]
    whole = {
        "instruction": "전제와 가설의 관계를 한 낱말로 쓰세요.", "output_length": 8, "metrics": ["exact_match"],
        "few_shots": [{"input": "전제: 눈이 온다.\n가설: 춥겠다.", "output": "neutral"}], "samples": samples,
    }  # fmt: skip
    return whole | changes


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), "utf-8")
    return path


def test_a_file_written_and_read_again_is_the_same(tmp_path: Path) -> None:
    task = read_task_file(write(tmp_path / "kornli.json", nli()))
    write_task_file(task, tmp_path / "again" / "kornli.json")
    assert read_task_file(tmp_path / "again" / "kornli.json") == task
    assert json.loads((tmp_path / "again" / "kornli.json").read_text("utf-8")) == nli()


def test_decomposed_text_and_foreign_line_ends_read_as_the_same_file(tmp_path: Path) -> None:
    text = json.dumps(nli(), ensure_ascii=False, indent=1)
    (tmp_path / "a").mkdir()
    plain = read_task_file(write(tmp_path / "a" / "kornli.json", text))
    other = tmp_path / "kornli.json"
    other.write_bytes(b"\xef\xbb\xbf" + normalize("NFD", text).replace("\\n", "\\r\\n").replace("\n", "\r\n").encode())
    assert read_task_file(other) == plain


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "broken JSON at line 1"),
        ("[]", "as tuning files are"),
        ('"글"', "expected one JSON object"),
        ({key: value for key, value in nli().items() if key != "samples"}, "samples: missing"),
        (nli(samples=[]), "samples: must not be empty"),
        (nli(samples={}), "samples: must be a list, found {}"),
        (nli(instruction=3), "instruction: must be text, found 3"),
        (nli(output_length="8"), "output_length: must be a whole number, found '8'"),
        (nli(output_length=True), "output_length: must be a whole number"),
        (nli(output_length=0), "output_length: must be greater than 0, found 0"),
        (nli(metrics=[]), "metrics: must not be empty"),
        (nli(metrics=["comet_wmt22"]), "metrics.0: unknown metric; choose from exact_match"),
        (nli(metrics=[["exact_match"]]), "metrics.0: must be text, found ['exact_match']"),
        (nli(few_shots=["글"]), "few_shots.0: must be a section of keys and values"),
        (nli(samples=[{"input": "글"}]), "samples.0.output: missing"),
        (nli(samples=[{"input": "글", "output": 3}]), "samples.0.output: must be text, found 3"),
        (nli(metrics=["pearson"]), "samples.0.output: 'entailment' should be a number for a correlation"),
    ],
)  # fmt: skip
def test_a_broken_file_is_one_sentence(tmp_path: Path, content: Any, said: str) -> None:
    path = write(tmp_path / "kornli.json", content)
    with pytest.raises(BadInput) as raised:
        read_task_file(path)
    assert str(raised.value).startswith(str(path)) and said in str(raised.value) and "\n" not in str(raised.value)


def test_instruction_and_first_input_are_one_turn_and_examples_come_before(tmp_path: Path) -> None:
    task = read_task_file(write(tmp_path / "kornli.json", nli()))
    head = f"{OPENING}\n{task.instruction}\n\n"
    sample, shot = task.samples[0], task.few_shots[0]
    assert task.conversation(sample) == (("user", head + sample.input),)
    expected = (("user", head + shot.input), ("assistant", shot.output), ("user", sample.input))
    assert task.conversation(sample, shots=1) == expected


def test_tuning_records_have_all_parts_in_one_text(tmp_path: Path) -> None:
    write_tuning_file(
        "klue_nli", "관계를 쓰세요.", [Sample(input="전제: 가\n가설: 나", output="neutral")], tmp_path / "t.json"
    )
    [record] = json.loads((tmp_path / "t.json").read_text("utf-8"))
    assert list(record) == ["ID", "instruction", "input", "output", "text"] and record["ID"] == "klue_nli-0"
    parts = ["### 지시:\n관계를 쓰세요.", "### 입력:\n전제: 가\n가설: 나", "### 응답:\nneutral"]
    assert record["text"] == "\n\n".join([OPENING, *parts])


def made(tmp_path: Path, name: str, golds: list[str], metric: str = "exact_match") -> Any:
    samples = [{"input": f"물음 {number}", "output": gold} for number, gold in enumerate(golds)]
    return detect_form(
        read_task_file(write(tmp_path / f"{name}.json", nli(metrics=[metric], few_shots=[], samples=samples)))
    )


@pytest.mark.parametrize(
    ("name", "golds", "metric", "form", "about"),
    [
        ("kornli", ["neutral"], "exact_match", "choice", "one of entailment, contradiction, neutral"),
        ("kmmlu_Law", ["A"], "exact_match", "choice", "one of A, B, C, D"),
        ("kobest_wic", ["예"], "exact_match", "choice", "one of 예, 아니오"),
        ("mine", ["봄", "봄", "여름", "여름"], "exact_match", "choice", "one of 봄, 여름"),
        ("mine", ["봄", "여름", "가을"], "exact_match", "text", "any text"),
        ("korsts", ["1", "1", "2.5", "2.5"], "pearson", "number", "one number"),
        ("gsm8k", ["12", "705", "3"], "exact_match", "number", "one number"),
        ("klue_ner", ["한빛시(지역)\n나래(사람)", "모레(날짜)"], "set_f1", "entities", "entities as name(class)"),
        ("klue_wos", ["관광-지역: 중앙\n관광-이름: 달숲", "없음"], "set_f1", "lines", "any lines"),
        ("klue_ynat", ["경제"], "exact_match", "choice", "one of 정치, 경제, 사회, 생활문화, 세계, IT과학, 스포츠"),
        ("korea_cg", ["아이가 뛴다.", "새가 난다."], "bleu", "text", "any text"),
    ],
)  # fmt: skip
def test_golds_decide_the_demanded_form(
    tmp_path: Path, name: str, golds: list[str], metric: str, form: str, about: str
) -> None:
    found = made(tmp_path, name, golds, metric)
    assert (found.name, found.about) == (form, about)
    if found.is_exact:
        assert all(map(found.is_exact, golds))
    assert [found.parse(gold, "") for gold in golds] == golds


@pytest.mark.parametrize(
    ("answer", "read", "demanded"),
    [
        ("A", "A", True),
        ("a", "A", False),
        ("Ａ", "A", True),
        ("**A**", "A", False),
        ("정답: A", "A", False),
        ("정답은 A입니다.", "A", False),
        ("A. 한빛시", "A", False),
        ("```\nA\n```", "A", False),
        ("A 또는 B", None, False),
        ("Based on the text", None, False),
        ("모르겠습니다.", None, False),
        ("", None, False),
    ],
)
def test_a_letter_is_parsed_only_if_it_is_alone(tmp_path: Path, answer: str, read: str | None, demanded: bool) -> None:
    form = made(tmp_path, "kmmlu_Law", ["A"])
    assert form.parse(clean(answer), "") == read
    assert form.is_exact(clean(answer)) is demanded


@pytest.mark.parametrize(
    ("answer", "read"),
    [("예입니다.", "예"), ("예술은 예외입니다", None), ("아니오, 다릅니다", "아니오"), ("예 또는 아니오", None),
     ("‘예’", "예"), (normalize("NFD", "아니오"), "아니오")],
)  # fmt: skip
def test_hangul_is_read_as_a_word_with_the_end_of_a_sentence(tmp_path: Path, answer: str, read: str | None) -> None:
    assert made(tmp_path, "kobest_wic", ["예"]).parse(clean(answer), "") == read


def test_numbers_and_entities_are_read_out_of_sentences(tmp_path: Path) -> None:
    numbers = made(tmp_path, "gsm8k", ["12", "1200", "3.50"])
    assert [numbers.parse(clean(text), "") for text in ("1,200", "답: 1200개", "3.5", "12 + 3")] == [
        "1200",
        "1200",
        "3.5",
        None,
    ]
    entities = made(tmp_path, "klue_ner", ["나래(사람)", "한빛시(지역)\n모레(날짜)"], "set_f1")
    assert entities.parse(clean("다음과 같습니다.\n나래(사람)\n한빛시(지역)"), "") == "나래(사람)\n한빛시(지역)"
    assert (
        not entities.is_exact(clean("다음과 같습니다.\n나래(사람)")) and entities.parse("잘 모르겠습니다", "") is None
    )
    assert entities.parse("없습니다", "") == ""


ONE_LINE = "나래(사람) 새길 은행(조직) 1994년(날짜)"  # as the published converter of KLUE-NER writes it
LAYOUTS = {
    "blanks": "{0} {1} {2}", "lines": "{0}\n{1}\n{2}", "commas": "{0}, {1}, {2}", "no blanks": "{0},{1},{2}",
    "semicolons": "{0}; {1}; {2}.", "slashes": "{0} / {1} / {2}", "bullets": "- {0}\n- {1}\n- {2}",
    "numbers": "1. {0}\n2. {1}\n3. {2}", "bold": "**{0}** **{1}** **{2}**", "quotes": "'{0} {1} {2}'",
    "lead": "고유표현: {0} {1} {2}", "sentence": "다음과 같습니다.\n\n{0}\n{1}\n{2}", "fence": "```\n{0}\n{1} {2}\n```",
    "order": "{2} {0} {1}", "twice": "{0} {0} {1} {2}", "tabs": "{0}\t{1}\t{2}", "wide": "{0}，{1}，{2}",
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_entities_count_as_a_set_however_they_are_separated(tmp_path: Path, name: str) -> None:
    form = made(tmp_path, "klue_ner", [ONE_LINE, "한빛시(지역)", "없음"], "set_f1")
    golds = ["나래(사람)", "새길 은행(조직)", "1994년(날짜)"]
    assert form.name == "entities" and form.is_exact(ONE_LINE)

    def score(*entities: str) -> float:
        answer = form.parse(clean(LAYOUTS[name].format(*entities)), "") or ""
        return measure("set_f1", [parse_gold(form, ONE_LINE)], [answer], samples=0)["value"]

    assert score(*golds) == 100
    assert score(*golds[:2], golds[1]) == pytest.approx(100 * 2 * 2 / (2 + 3))  # one is missing
    assert score(*golds[:2], "1994년(시간)") == pytest.approx(100 * 2 / 3)  # one has the wrong class
    assert score("물(사람)", "불(조직)", "흙(날짜)") == 0


@pytest.mark.parametrize(
    "answer",
    ['{"나래": "사람", "새길 은행": "조직", "1994년": "날짜"}',
     '```json\n[{"text": "나래", "type": "사람"}, {"text": "새길 은행", "type": "조직"}, '
     '{"text": "1994년", "type": "날짜"}]\n```',
     "나래 (사람) 새길 은행 (조직) 1994년 (날짜)", "나래: 사람\n새길 은행: 조직\n1994년: 날짜"],
)  # fmt: skip
def test_entities_are_read_from_json_and_from_pairs(tmp_path: Path, answer: str) -> None:
    form = made(tmp_path, "klue_ner", [ONE_LINE], "set_f1")
    assert form.parse(clean(answer), "") == parse_gold(form, ONE_LINE)


def test_names_with_brackets_keep_them(tmp_path: Path) -> None:
    form = made(tmp_path, "klue_ner", ["(주)한빛(조직) 나래(사람)", "새길(舊 이름)(지역)"], "set_f1")
    assert form.parse("(주)한빛(조직) 나래(사람)", "") == "(주)한빛(조직)\n나래(사람)"
    assert form.parse("새길(舊 이름)(지역)", "") == "새길(舊 이름)(지역)"

"""YNAT, KLUE-NLI and KLUE-RE: words of a closed set, and the scores of wrong and unparsed answers."""

from __future__ import annotations

import pytest

from finetune.examples import Example
from finetune.generative.prompts import PROMPTS
from finetune.tasks.nli.task import NLI_LABELS
from finetune.tasks.re.metrics import RE_LABELS
from finetune.tasks.ynat.task import YNAT_LABELS

LABELS = {"ynat": YNAT_LABELS, "klue-nli": NLI_LABELS, "klue-re": RE_LABELS}
SENTENCE = "한빛은행 윤슬 대표가 윤슬의 고향에서 말했다."
RELATION = Example("a", "org:top_members/employees", {"sentence": SENTENCE, "subject": (0, 4), "object": (5, 7)})
INPUTS = {**RELATION.inputs, "title": "제목", "premise": "윤슬은 떠났다.", "hypothesis": "윤슬은 없다."}


def titles(*golds):
    return [Example(str(number), gold, {"title": f"제목 {number}"}) for number, gold in enumerate(golds)]


@pytest.mark.parametrize("name", LABELS)
def test_every_choice_is_the_word_of_one_label(name):
    prompt = PROMPTS[name]
    examples = [Example(label, label, INPUTS) for label in LABELS[name]]
    assert prompt.choices == tuple(prompt.render_gold(example) for example in examples)
    assert len(set(prompt.choices)) == len(LABELS[name])
    for example, choice in zip(examples, prompt.choices, strict=True):
        for answer in (choice, f"정답은 ‘{choice}’입니다.", f"{choice}입니다.", f"**{choice}**", example.guid):
            assert prompt.parse(answer, example) == example.gold
        assert choice in prompt.instruction
        assert prompt.unparsed(example) in set(LABELS[name]) - {example.gold}


def test_alternate_names_of_persons_and_organizations_have_different_words():
    """The published words are 별명 for both, so exact match gives each other's answers a point."""
    person, organisation = (
        Example(label, label, RELATION.inputs) for label in ("per:alternate_names", "org:alternate_names")
    )
    relation = PROMPTS["klue-re"]
    assert relation.parse(relation.render_gold(person), organisation) == "per:alternate_names"
    assert relation.parse(relation.render_gold(organisation), person) == "org:alternate_names"
    assert relation.parse("별칭", person) is None


def test_the_two_words_are_marked_in_the_sentence():
    assert PROMPTS["klue-re"].render_input(RELATION) == (
        "문장: <1>한빛은행</1> <2>윤슬</2> 대표가 윤슬의 고향에서 말했다.\n단어 1: 한빛은행\n단어 2: 윤슬"
    )
    inner = Example("b", None, {"sentence": "한빛은행 본점", "subject": (0, 2), "object": (0, 4)})
    assert "<2><1>한빛</1>은행</2> 본점" in PROMPTS["klue-re"].render_input(inner)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("관계 없음", "no_relation"),
        ("관계: 관계없음", "no_relation"),
        ("두 단어의 관계는 대표구성원입니다.", "org:top_members/employees"),
        ("출신학교", "per:schools_attended"),
        ("출신 학교입니다.", "per:schools_attended"),
        ("관계: 출신", "per:origin"),
        ("org:founded_by", "org:founded_by"),
        ("부모 또는 자녀", None),
        ("관계를 판단할 수 없습니다.", None),
        ("친구", None),
    ],
)
def test_relations_are_read(answer, label):
    assert PROMPTS["klue-re"].parse(answer, RELATION) == label


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("전제는 가설을 함의합니다.", "entailment"),
        ("두 문장은 모순됩니다.", "contradiction"),
        ("전제와 가설은 모순되지 않으며 중립입니다.", "neutral"),
        ("함의하지 않습니다.", None),
        ("The premise does not entail the hypothesis.", None),
        ("함의 또는 중립", None),
    ],
)
def test_verbs_of_entailment_are_read(answer, label):
    pair = Example("a", "neutral", {"premise": "윤슬은 떠났다.", "hypothesis": "윤슬은 없다."})
    assert PROMPTS["klue-nli"].parse(answer, pair) == label


def test_one_unread_title_costs_what_one_wrong_title_costs(score):
    """Golds 정치, 정치, 경제, 경제; the second is unread and counts as 경제: F1 2/3 and 4/5. Dropped, it would leave
    100; as a class of its own, F1 0 of three classes, 2/3, 1 and 0."""
    examples = titles("정치", "정치", "경제", "경제")
    unread = score("ynat", examples, ["정치", "답할 수 없습니다", "경제", "경제"])["macro_f1"]
    wrong = score("ynat", examples, ["정치", "경제", "경제", "경제"])["macro_f1"]
    assert unread == wrong == pytest.approx(100 * (2 / 3 + 4 / 5) / 2)


def test_no_answer_read_scores_nothing(score):
    examples = titles(*YNAT_LABELS)
    assert score("ynat", examples, [""] * len(examples)) == {"macro_f1": 0}
    golds = [Example(label, label, RELATION.inputs) for label in RE_LABELS]
    assert score("klue-re", golds, [""] * len(golds))["micro_f1"] == 0
    pairs = [Example(label, label, {"premise": "가", "hypothesis": "나"}) for label in NLI_LABELS]
    assert score("klue-nli", pairs, ["", "모순", "중립"]) == {"accuracy": pytest.approx(200 / 3)}

"""Rows for ``answer_forms``: 40 of each KLUE task, and 40 invented ones for each of six kinds of llm-kr-eval files.

Only the public interface of the parser is used: ``TaskPrompt.parse``, and ``clean`` and ``Form.parse`` for files.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from finetune.examples import Example, Row
from finetune.generative.klue.run import load_prompted_task
from finetune.generative.kr_eval.run import Sample, TaskFile, clean, detect_form
from finetune.generative.prompts import PROMPTS
from finetune.registry import TASKS
from launch.sample.unpack import unpack
from tests.conftest import SHARED

ROWS = 40
KLUE = {  # kind of answer, subject of a sentence about it
    "ynat": ("class", "이 기사의 분야"),
    "klue-sts": ("number", "두 문장의 유사도"),
    "klue-nli": ("class", "전제와 가설의 관계"),
    "klue-ner": ("lines", ""),
    "klue-re": ("class", "두 단어의 관계"),
    "klue-dp": ("lines", ""),
    "klue-mrc": ("span", "질문에 대한 답"),
    "wos": ("lines", ""),
}
MARKS = re.compile(r"[\"'“”‘’「」『』*_|<>`{}\\\n]")  # a span with these cannot be quoted in all ways
ENTITY_KINDS = ("사람", "장소", "기관", "날짜", "시간", "수량")
QUESTIONS = (  # question, right option, wrong options
    ("물이 끓는 온도는 1기압에서 몇 도인가?", "섭씨 백 도", "섭씨 영 도", "섭씨 오십 도", "섭씨 이백 도"),
    ("한 해에 계절은 몇 번 바뀌는가?", "네 번", "다섯 번", "여섯 번", "일곱 번"),
    ("식물이 빛으로 양분을 만드는 과정은?", "광합성", "증산", "발효", "소화"),
    ("지구에서 가장 가까운 별은?", "태양", "북극성", "시리우스", "견우성"),
    ("수요가 늘고 공급이 그대로일 때 가격은?", "오른다", "내린다", "그대로이다", "사라진다"),
    ("삼각형 내각의 합은?", "백팔십 도", "구십 도", "이백칠십 도", "삼백육십 도"),
    ("훈민정음을 만든 임금은?", "세종", "태종", "영조", "정조"),
    ("소리가 전달되지 않는 곳은?", "진공", "물속", "공기", "철"),
    ("직류와 교류를 바꾸는 장치는?", "정류기", "저항기", "축전기", "전구"),
    ("혈액을 온몸으로 보내는 기관은?", "심장", "간", "신장", "위"),
)
PAIRS = (("요리사", "간호사"), ("김 씨", "박 씨"), ("학생", "교사"), ("형", "동생"), ("손님", "점원"))
WORDS = ("배", "눈", "말", "다리", "밤", "차", "손", "길", "머리", "얼굴")


@dataclass(frozen=True)
class Item:
    """A question with its gold, a wrong answer ("" if there is none), and the parser.

    Fields:
        gold: in the demanded form.
        read: the prediction in a text; None if there is none.
        is_gold: whether a prediction is right.
        options: all answers of a closed set, as they are demanded.
        texts: of the options, for letters and digits.
    """

    task: str
    answer_kind: str
    subject: str
    instruction: str
    input: str
    gold: str
    wrong: str
    read: Callable[[str], Any]
    is_gold: Callable[[Any], bool]
    options: tuple[str, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)

    def in_sentence(self, answer: str) -> str:
        """The answer as a noun of a sentence."""
        if self.answer_kind == "yes_no":
            return f"'{answer}'"
        return answer + {"number": "점", "digit": "번"}.get(self.answer_kind, "")


def all_items(tasks: tuple[str, ...] = ()) -> Iterator[Item]:
    """The rows of the tasks with these names; of all tasks if no name is given."""
    for name in KLUE:
        if not tasks or name in tasks:
            yield from klue_items(name)
    for name in FILES:
        if not tasks or name in tasks:
            yield from file_items(name)


@cache
def klue_folder(name: str) -> Path:
    """The folder with the dev file of a task: official, a selection of it, or the embedded sample."""
    home = TASKS[name].files.folder
    for folder in ("official", "derived"):
        if any((SHARED / "data/klue" / folder / home).glob("*_dev.*")):
            return SHARED / "data/klue" / folder
    return sample_folder()


@cache
def sample_folder() -> Path:
    """The embedded sample, unpacked once per process."""
    home = Path(tempfile.mkdtemp(prefix="malmoi-answer-forms-"))
    unpack(home)
    return home / "klue"


def klue_items(name: str) -> Iterator[Item]:
    """Rows of a KLUE task."""
    prompt, (kind, subject) = PROMPTS[name], KLUE[name]
    examples = load_prompted_task(name, klue_folder(name), limit=3 * ROWS).data.scored
    golds = {example.guid: prompt.render_gold(example) for example in examples}
    chosen = [example for example in examples if _is_plain(name, golds[example.guid])][:ROWS]
    for number, example in enumerate(chosen):
        gold = golds[example.guid]
        yield Item(
            name, kind, subject, prompt.instruction, prompt.render_input(example), gold,
            _wrong_answer(name, gold, number, prompt.render_input(example)),
            read=partial(_read, name, example), is_gold=partial(_is_gold, name, example), options=prompt.choices,
        )  # fmt: skip


def _is_plain(name: str, gold: str) -> bool:
    """Whether the gold can be quoted and listed in all ways without ambiguity."""
    if name == "klue-ner":
        return not re.search(r"[|,;\"'`:*]", gold.replace(": ", ""))
    return not MARKS.search(gold) if name == "klue-mrc" else True


def _read(name: str, example: Example, text: str) -> Any:
    return PROMPTS[name].parse(text, example)


def _is_gold(name: str, example: Example, prediction: Any) -> bool:
    """Equal to the prediction of the bare gold, or to the gold by the rule of the task."""
    if prediction == _read(name, example, PROMPTS[name].render_gold(example)):
        return True
    return not TASKS[name].inspection.differs(Row(example.guid, example.gold, prediction))


def _wrong_answer(name: str, gold: str, number: int, asked: str) -> str:
    if choices := [choice for choice in PROMPTS[name].choices if choice != gold]:
        return choices[number % len(choices)]
    if name == "klue-sts":
        return f"{(float(gold) + 2.5) % 5:.1f}"
    if name == "klue-mrc":
        passage = asked.removeprefix("지문: ").rpartition("질문:")[0]
        words: list[str] = re.findall(r"(?<![가-힣])[가-힣]{2,6}(?=[은는이가을를] )", passage)
        return next((word for word in words if word not in gold and gold not in word), "")
    return _wrong_lines(name, gold)


def _wrong_lines(name: str, gold: str) -> str:
    """Other kinds of entities, one other head, or all conditions of a state except the first; "" for no lines."""
    lines = gold.splitlines()
    if gold == "없음" or (name == "wos" and len(lines) < 2):
        return ""
    if name == "wos":
        return "\n".join(lines[1:])
    if name == "klue-dp":
        first, head, label = re.split(r":? ", lines[0])
        return "\n".join([f"{first}: {len(lines) if head != str(len(lines)) else 2} {label}", *lines[1:]])
    texts, kinds = zip(*(line.rsplit(": ", 1) for line in lines), strict=True)
    shifted = [ENTITY_KINDS[(ENTITY_KINDS.index(kind) + 1) % len(ENTITY_KINDS)] for kind in kinds]
    return "\n".join(f"{text}: {kind}" for text, kind in zip(texts, shifted, strict=True))


def _kornli(number: int) -> tuple[str, str, str, dict[str, str]]:
    options = ("함의", "모순", "중립")
    who, gold = PAIRS[number % len(PAIRS)][0], options[number % 3]
    claim = {"함의": "밖에 있다", "모순": "집에 있다", "중립": "모자를 썼다"}[gold]
    return (
        f"전제: {who}, 그 사람이 지금 공원을 걷고 있다.\n가설: {who}, 그 사람이 {claim}.",
        gold,
        options[(number + 1) % 3],
        {},
    )


def _exam(letters: str, number: int) -> tuple[str, str, str, dict[str, str]]:
    question, right, *rest = QUESTIONS[number % len(QUESTIONS)]
    place = number // len(QUESTIONS) % 4
    texts = dict(zip(letters, [*rest[:place], right, *rest[place:]], strict=True))
    listed = "\n".join(f"{letter}. {text}" for letter, text in texts.items())
    return f"{question}\n{listed}", letters[place], letters[(place + 1 + number % 3) % 4], texts


def _kobbq(number: int) -> tuple[str, str, str, dict[str, str]]:
    first, second = PAIRS[number % len(PAIRS)]
    gold, wrong = (("C", "A"), ("A", "B"), ("C", "B"), ("B", "C"))[number % 4]
    clue = {"A": f" 늦은 사람은 {first}였다.", "B": f" 늦은 사람은 {second}였다.", "C": ""}[gold]
    texts = {"A": first, "B": second, "C": "알 수 없음"}
    listed = "\n".join(f"{letter}: {text}" for letter, text in texts.items())
    asked = f"{first}, {second} 두 사람이 회의에 왔다. 한 사람은 늦었다.{clue}\n질문: 누가 늦었는가?\n{listed}"
    return asked, gold, wrong, texts


def _wic(number: int) -> tuple[str, str, str, dict[str, str]]:
    word, gold = WORDS[number % len(WORDS)], ("예", "아니오")[number // len(WORDS) % 2]
    asked = f"문장 1: 그 {word}, 참 좋다.\n문장 2: 저 {word}, 정말 크다.\n두 문장에서 '{word}'의 뜻이 같은가?"
    return asked, gold, "아니오" if gold == "예" else "예", {}


def _korsts(number: int) -> tuple[str, str, str, dict[str, str]]:
    gold = number * 2 % 51 / 10
    asked = f"문장 1: 한 사람이 그림을 {number + 1}장 그린다.\n문장 2: 누군가 그림을 그린다."
    return asked, f"{gold:.1f}", f"{(gold + 2.3) % 5:.1f}", {}


FILES: dict[str, tuple[str, str, str, str, Callable[[int], tuple[str, str, str, dict[str, str]]]]] = {
    # kind of answer, subject, metric, instruction, rows
    "kornli": ("class", "전제와 가설의 관계", "exact_match",
               "전제와 가설의 관계를 함의, 모순, 중립 중에서 고르세요.", _kornli),
    "kmmlu_ad": ("letter", "이 문제의 정답", "exact_match",
                 "질문을 읽고 A, B, C, D 가운데 알맞은 것을 고르세요.", partial(_exam, "ABCD")),
    "kmmlu_14": ("digit", "이 문제의 정답", "exact_match",
                 "질문을 읽고 1, 2, 3, 4 가운데 알맞은 것을 고르세요.", partial(_exam, "1234")),
    "kobbq": ("letter", "이 질문의 정답", "exact_match", "글을 읽고 A, B, C 중에서 고르세요.", _kobbq),
    "wic": ("yes_no", "이 질문의 답", "exact_match", "낱말의 뜻이 같은지 예, 아니오 중에서 답하세요.", _wic),
    "korsts": ("number", "두 문장의 유사도", "pearson", "두 문장의 유사도를 0에서 5 사이의 수로 쓰세요.", _korsts),
}  # fmt: skip


def file_items(name: str) -> Iterator[Item]:
    """Invented rows of a kind of file, parsed as ``malmoi llm run`` parses them."""
    kind, subject, metric, instruction, build = FILES[name]
    rows = [build(number) for number in range(ROWS)]
    samples = tuple(Sample(input=asked, output=gold) for asked, gold, *_ in rows)
    form = detect_form(
        TaskFile(name=name, instruction=instruction, output_length=8, metrics=(metric,), few_shots=(), samples=samples)
    )
    options = () if kind == "number" else tuple(sorted({gold for _, gold, *_ in rows}))

    def read(text: str) -> str | None:
        return form.parse(clean(text))

    for asked, gold, wrong, texts in rows:
        yield Item(
            name, kind, subject, instruction, asked, gold, wrong, read,
            is_gold=partial(lambda expected, prediction: prediction == expected, read(gold)), options=options,
            texts=texts,
        )  # fmt: skip

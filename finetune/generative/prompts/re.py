"""KLUE-RE: the relation of two marked words as one of 30 different Korean words.

The published llm-kr-eval file has 29 words for 30 relations, so its exact match cannot distinguish alternate names of a
person from those of an organization. The two words are marked with <1> </1> and <2> </2>; entity types are not shown.
"""

from __future__ import annotations

from finetune.examples import Example
from finetune.generative.prompts.labels import make_label_prompt
from finetune.tasks.re.metrics import RE_LABELS

# relation: the demanded word ("/": accepted with a sign, a space or nothing there), and what word 2 is to word 1
RELATIONS = {
    "no_relation": ("관계/없음", "아래의 어느 관계도 아니다"),
    "org:dissolved": ("해산일", "단체가 없어진 때"),
    "org:founded": ("설립일", "단체가 세워진 때"),
    "org:place_of_headquarters": ("본부/위치", "단체의 본부나 본사가 있는 곳"),
    "org:alternate_names": ("단체/별칭", "단체의 다른 이름"),
    "org:member_of": ("상위/단체", "단체가 속한 더 큰 단체"),
    "org:members": ("하위/단체", "단체에 속한 단체"),
    "org:political/religious_affiliation": ("단체/성향", "단체의 정치나 종교 성향"),
    "org:product": ("제품", "단체가 만든 물건이나 내놓은 서비스"),
    "org:founded_by": ("설립자", "단체를 세운 사람이나 단체"),
    "org:top_members/employees": ("대표/구성원", "단체의 대표, 임원이나 단체에서 일하는 사람"),
    "org:number_of_employees/members": ("인원수", "단체에 속한 사람의 수"),
    "per:date_of_birth": ("출생일", "사람이 태어난 때"),
    "per:date_of_death": ("사망일", "사람이 죽은 때"),
    "per:place_of_birth": ("출생지", "사람이 태어난 곳"),
    "per:place_of_death": ("사망지", "사람이 죽은 곳"),
    "per:place_of_residence": ("거주지", "사람이 사는 곳"),
    "per:origin": ("출신", "사람의 국적이나 민족, 출신 지역"),
    "per:employee_of": ("소속", "사람이 일하거나 속한 단체"),
    "per:schools_attended": ("출신/학교", "사람이 다닌 학교"),
    "per:alternate_names": ("인물/별칭", "사람의 다른 이름"),
    "per:parents": ("부모", "사람의 어머니나 아버지"),
    "per:children": ("자녀", "사람의 딸이나 아들"),
    "per:siblings": ("형제/자매", "사람의 형제나 자매"),
    "per:spouse": ("배우자", "사람의 아내나 남편"),
    "per:other_family": ("친척", "부모, 자녀, 형제자매, 배우자가 아닌 사람의 가족"),
    "per:colleagues": ("동료", "사람과 함께 일하는 사람"),
    "per:product": ("작품", "사람이 만든 작품이나 물건"),
    "per:religion": ("종교", "사람이 믿는 종교"),
    "per:title": ("직함", "사람의 직업이나 직위"),
}
WORDS = {label: RELATIONS[label][0].replace("/", "") for label in RE_LABELS}
NAMES = {RELATIONS[label][0]: label for label in RE_LABELS} | {label: label for label in RE_LABELS}


def render_input(example: Example) -> str:
    """The sentence with markers, and the two words."""
    sentence = example.inputs["sentence"]
    spans = [example.inputs[key] for key in ("subject", "object")]
    marks = [(begin, 1, -end, f"<{number}>") for number, (begin, end) in enumerate(spans, start=1)]
    marks += [(end, 0, -begin, f"</{number}>") for number, (begin, end) in enumerate(spans, start=1)]
    marked = sentence
    for position, *_, mark in sorted(marks, reverse=True):  # ends before beginnings, the inner marker next to its word
        marked = marked[:position] + mark + marked[position:]
    words = [f"단어 {number}: {' '.join(sentence[slice(*span)].split())}" for number, span in enumerate(spans, start=1)]
    return "\n".join([f"문장: {' '.join(marked.split())}", *words])


KLUE_RE = make_label_prompt(
    "klue-re", WORDS, NAMES,
    "문장에서 <1>과 <2>로 표시한 두 단어의 관계를 고르세요. 단어 2가 단어 1의 무엇인지를 아래에서 고릅니다.\n"
    + "".join(f"{WORDS[label]}: {RELATIONS[label][1]}\n" for label in RE_LABELS)
    + "이 가운데 관계의 이름 하나만 쓰고 다른 말은 붙이지 마세요.",
    render_input,
)  # fmt: skip

"""Texts as models write them (right, wrong, evasive, tricky), and how many of them are read as a person reads them.

```
python -m tests.finetune.generative.answer_forms --half a --show
```
The forms are in ``answer_forms.yaml``; those of several lines (KLUE-NER, KLUE-DP, WoS) are in ``layouts``. They were
written without knowledge of the parser. The parser was built with half A; its first reading of half B, before that half
was opened: right answers 98.2 to 99.9 % for choices and numbers, 91.5 % for KLUE-MRC; attacks 4 to 6 %, from one form.

Rows: 40 per KLUE task, from real files if present, otherwise from the embedded sample; 40 invented ones per kind of
file (``answer_items``). A right answer counts if the prediction is that of the bare gold. A wrong answer or an attack
is accepted if it is read as the gold, a text without an answer if it is read as any answer (KLUE-MRC: as the gold).
"""

from __future__ import annotations

import argparse
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from tests.finetune.generative.answer_items import Item, all_items

Kind = Literal["right", "wrong", "attack", "silent"]
HALVES = ("a", "b")
PLAIN = ("wrap", "inline", "ending")
GROUPS = {  # groups of right forms by kind of answer; more are named after the task or the label
    "class": (*PLAIN, "class", "label", "several"),
    "letter": (*PLAIN, "label", "several", "letter"),
    "digit": (*PLAIN, "label", "several", "digit"),
    "yes_no": (*PLAIN, "label"),
    "number": (*PLAIN, "number"),
    "span": PLAIN,
    "lines": ("wrap",),
}
ATTACKS = {
    "letter": ("one_line", "options"),
    "digit": ("one_line", "options"),
    "yes_no": ("one_line", "yes_no"),
    "lines": ("lines",),
}
CIRCLED = dict(zip("ABCD1234", "ⒶⒷⒸⒹ①②③④", strict=True))
ORDINALS = {"1": "첫 번째", "2": "두 번째", "3": "세 번째", "4": "네 번째"}
FINAL_CONSONANT = {**dict.fromkeys("136780LMNRlmnr%", True), **dict.fromkeys("2459", False)}  # as read aloud in Korean
YES = re.compile(r"(^|[\s.])(네|예|물론입니다)[,.!]")  # an opening that is itself an answer to a yes/no question


@dataclass(frozen=True)
class Case:
    """A text and how a person reads it.

    Fields:
        form: name of the form, unique within a task and kind.
        expected: the prediction; None if the text gives no answer.
    """

    kind: Kind
    form: str
    text: str
    item: Item
    expected: Any


@cache
def forms() -> dict[str, dict[str, list[str]]]:
    """Templates by kind and group."""
    loaded: dict[str, dict[str, list[str]]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
    return loaded


def named_forms(kind: str, groups: tuple[str, ...], half: str) -> Iterator[tuple[str, str]]:
    """Names and templates of one half of some groups."""
    for group in groups:
        for number, template in enumerate(forms()[kind].get(group, ())):
            if HALVES[number % 2] == half:
                yield f"{group}-{number:02}", template


def attach_particles(text: str) -> str:
    """Replace ``‹이|가›`` by the particle that fits the letter before it."""

    def choose(match: re.Match[str]) -> str:
        spoken = re.sub(r"[^0-9A-Za-z가-힣%]", "", text[: match.start()])[-1:]
        if "가" <= spoken <= "힣":
            final = (ord(spoken) - ord("가")) % 28
        else:
            final = int(FINAL_CONSONANT.get(spoken, False)) * (8 if spoken in "178LRlr" else 1)
        is_closed = final > 0 and not (match[1] == "으로" and final == 8)  # 8: ㄹ
        return match[1] if is_closed else match[2]

    return re.sub(r"‹([^|›]*)\|([^›]*)›", choose, text)


def render(template: str, item: Item, answer: str, others: tuple[str, ...], wrong: str = "") -> str:
    """Fill in a template; ``others`` are different answers, the first ones are named in it."""
    flag, body = template.split(":", 1) if template.startswith(("nfd:", "wide:")) else ("", template)
    other, third = (item.in_sentence(o) if "{s}" in body else o for o in (others * 2)[:2])
    options = [option for option in item.options if option != answer]
    values = {
        "a": answer, "s": item.in_sentence(answer), "o": other, "p": third, "w": wrong, "S": item.subject,
        "I": item.input, "N": item.instruction, "q": ", ".join(item.options), "f": ", ".join([answer, *options]),
        "g": ", ".join([*options, answer]), "x": item.texts.get(answer, ""),
        "X": "\n".join(f"{name}. {text}" for name, text in item.texts.items()), "c": CIRCLED.get(answer, ""),
        "l": answer.lower(), "r": ORDINALS.get(answer, ""), "j": json.dumps(answer, ensure_ascii=False),
        "b": "\n".join(f"> {line}" for line in answer.splitlines()),
        "i": "\n".join(f"  {line}" for line in answer.splitlines()),
    }  # fmt: skip
    text = re.sub(r"\{([a-zA-Z])\}", lambda match: values[match[1]], body)
    text = attach_particles(text)
    if flag == "wide":
        return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    return unicodedata.normalize("NFD", text) if flag == "nfd" else text


def layouts(item: Item, answer: str) -> list[str]:
    """Layouts of the lines of KLUE-NER, KLUE-DP and WoS, as models write them."""
    lines = answer.splitlines()
    if item.task == "klue-dp":
        return _dependency_layouts(lines)
    pairs = [line.rsplit(": ", 1) if item.task == "klue-ner" else line.split(": ", 1) for line in lines]
    left, right = ("개체", "종류") if item.task == "klue-ner" else ("슬롯", "값")
    patterns = (
        "- {}: {}", "* {}: {}", "• {}: {}", "- **{}**: {}", "**{}**: {}", "**{}:** {}", "{} : {}", "{}：{}", "{}:{}",
        "'{}': '{}'", '"{}": "{}"', "{} → {}", "{} - {}", "- {} → {}", "`{}`: {}", "{}: **{}**", "{}: {},",
        "  - {}: {}",
    )  # fmt: skip
    found = ["\n".join(pattern.format(*pair) for pair in pairs) for pattern in patterns]
    records = [{left: k, right: v} for k, v in pairs]
    found += [
        "\n".join(f"{n}. {k}: {v}" for n, (k, v) in enumerate(pairs, 1)),
        "\n".join(f"{n}) {k}: {v}" for n, (k, v) in enumerate(pairs, 1)),
        f"| {left} | {right} |\n|---|---|\n" + "\n".join(f"| {k} | {v} |" for k, v in pairs),
        f"결과입니다.\n\n| 번호 | {left} | {right} |\n|---|---|---|\n"
        + "\n".join(f"| {n} | {k} | {v} |" for n, (k, v) in enumerate(pairs, 1)),
        json.dumps(records, ensure_ascii=False),
        f"```json\n{json.dumps(records, ensure_ascii=False, indent=2)}\n```",
        f"```json\n{json.dumps({'result': records}, ensure_ascii=False)}\n```",
        json.dumps({"answer": records}, ensure_ascii=False),
    ]
    found += _wrapped_lines(lines)
    if len({k for k, _ in pairs}) == len(pairs):
        mapping = json.dumps(dict(pairs), ensure_ascii=False, indent=2)
        found += [mapping, f"```json\n{mapping}\n```"]
    return found


def _dependency_layouts(lines: list[str]) -> list[str]:
    triples = [re.split(r":? ", line) for line in lines]
    patterns = (
        "- {}: {} {}", "* {}: {} {}", "• {}: {} {}", "**{}**: {} {}", "{} : {} {}", "{}：{} {}", "{}:{} {}",
        "{}: {}, {}", "{}: {} ({})", "{} → {} ({})", "{} -> {} {}", "{}: {} - {}", "`{}: {} {}`", "{}: {} **{}**",
        "{}\t{}\t{}", "{} {} {}", "  {}: {} {}", "{}: {} {},",
    )  # fmt: skip
    found = ["\n".join(pattern.format(*triple) for triple in triples) for pattern in patterns]
    records = [{"번호": int(n), "지배소": int(head), "관계": label} for n, head, label in triples]
    rows = "\n".join(f"| {n} | {head} | {label} |" for n, head, label in triples)
    mapping = json.dumps({n: f"{head} {label}" for n, head, label in triples}, ensure_ascii=False)
    found += [
        f"| 번호 | 지배소 | 관계 |\n|---|---|---|\n{rows}",
        f"분석 결과입니다.\n\n| 어절 번호 | 지배소 번호 | 의존 관계 |\n|:---:|:---:|:---:|\n{rows}",
        json.dumps(records, ensure_ascii=False),
        f"```json\n{json.dumps(records, ensure_ascii=False, indent=2)}\n```",
        mapping,
        f"```json\n{mapping}\n```",
        json.dumps({"answer": records}, ensure_ascii=False),
        f"```json\n{json.dumps({'result': records}, ensure_ascii=False)}\n```",
    ]
    return found + _wrapped_lines(lines)


def _wrapped_lines(lines: list[str]) -> list[str]:
    text, listed = "\n".join(lines), json.dumps(lines, ensure_ascii=False)
    return [
        listed,
        f"```json\n{listed}\n```",
        f'{{"answer": {listed}}}',
        f'```json\n{{"정답": {listed}}}\n```',
        "\n\n".join(lines),
        "\r\n".join(lines),
        ", ".join(lines),
        "; ".join(lines),
        f"분석한 결과는 다음과 같습니다.\n\n{text}\n\n모두 {len(lines)}개입니다.",
        f"결과는 아래와 같습니다.\n{text}\n이상입니다.",
        "아래에 정리했습니다.\n\n"
        + "\n".join(f"- {line}" for line in lines)
        + "\n\n더 필요한 것이 있으면 말씀해 주세요.",
        "### 결과\n\n" + "\n".join(f"* {line}" for line in lines),
    ]


def right_texts(item: Item, answer: str, others: tuple[str, ...], half: str) -> Iterator[tuple[str, str]]:
    """Names and texts of the forms that give ``answer``."""
    groups = GROUPS[item.answer_kind]
    if answer in ("답 없음", "없음"):
        groups = ("wrap", "inline", f"{item.task}-none") if item.answer_kind == "span" else ("wrap",)
    else:
        groups = (*groups, item.task, answer if item.options else "", f"{item.task}-{answer}")
    for name, template in named_forms("right", groups, half):
        if not (item.answer_kind == "yes_no" and not name.startswith(answer) and YES.search(template)):
            yield name, render(template, item, answer, others)
    if item.answer_kind == "lines" and answer != "없음":
        for number, text in enumerate(layouts(item, answer)):
            if HALVES[number % 2] == half:
                yield f"layout-{number:02}", text


def cases(item: Item, half: str) -> Iterator[Case]:
    """All texts of a row: its gold and a wrong answer in all forms, attacks, and texts without an answer."""
    others = tuple(option for option in item.options if option != item.gold) or (item.wrong,)
    for name, text in right_texts(item, item.gold, others, half):
        yield Case("right", name, text, item, item.read(item.gold))
    if item.wrong:
        others = (item.gold, *(option for option in others if option != item.wrong))
        for name, text in right_texts(item, item.wrong, others, half):
            yield Case("wrong", name, text, item, item.read(item.wrong))
    if item.gold in ("답 없음", "없음"):
        return  # a refusal may mean this answer
    for name, template in named_forms("silent", ("no_answer",), half):
        yield Case("silent", name, template, item, None)
    if not item.wrong:
        return
    others = (item.wrong, *(option for option in item.options if option not in (item.gold, item.wrong)))
    for name, template in named_forms("attack", ATTACKS.get(item.answer_kind, ("one_line",)), half):
        if item.options or not re.search(r"\{[fgq]\}", template):
            yield Case("attack", name, render(template, item, item.gold, others, item.wrong), item, None)


@dataclass
class Tally:
    """Counts of a task (or of a group of its forms), and the failing forms with one text each."""

    counts: Counter[str]
    failing: dict[str, tuple[Case, Any]]

    def add(self, case: Case, prediction: Any) -> None:
        is_read, is_gold = prediction is not None, prediction is not None and case.item.is_gold(prediction)
        is_good = {
            "right": is_gold, "wrong": not is_gold, "attack": not is_gold,
            "silent": not (is_gold if case.item.answer_kind == "span" else is_read),
        }[case.kind]  # fmt: skip
        is_same = is_read and prediction == case.expected
        self.counts.update({case.kind: 1, f"{case.kind} read": is_read, f"{case.kind} good": is_good})
        self.counts[f"{case.kind} same"] += is_same
        if not is_good or (case.kind == "wrong" and not is_same):
            self.failing.setdefault(f"{case.kind} {case.form}", (case, prediction))

    def share(self, kind: Kind, what: str) -> float:
        """Percent; NaN without texts of this kind."""
        total = self.counts[kind]
        return 100 * self.counts[f"{kind} {what}"] / total if total else float("nan")


def measure(half: str, tasks: tuple[str, ...] = ()) -> dict[str, dict[str, Tally]]:
    """Tallies by task and group of forms ("all": all of them)."""
    result: dict[str, dict[str, Tally]] = {}
    for item in all_items(tasks):
        tallies = result.setdefault(item.task, defaultdict(lambda: Tally(Counter(), {})))
        for case in cases(item, half):
            prediction = item.read(case.text)
            for group in ("all", case.form.rsplit("-", 1)[0]):
                tallies[group].add(case, prediction)
    return result


def main() -> None:
    """Print shares in percent by task and group of forms."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--half", choices=HALVES, required=True)
    parser.add_argument("--show", action="store_true", help="list failing forms, each with one text")
    parser.add_argument("tasks", nargs="*", help="only these tasks")
    arguments = parser.parse_args()
    result = measure(arguments.half, tuple(arguments.tasks))
    print("task group texts | right: read, as right | wrong: as gold, as itself | attack: as gold | no answer: read")
    for task, tallies in result.items():
        for group, tally in tallies.items():
            right, wrong = ([tally.share("right", w) for w in ("read", "good")], tally.share("wrong", "good"))
            numbers = (*right, 100 - wrong, tally.share("wrong", "same"), 100 - tally.share("attack", "good"),
                       100 - tally.share("silent", "good"))  # fmt: skip
            total = sum(tally.counts[kind] for kind in ("right", "wrong", "attack", "silent"))
            print(f"{task:9} {group:14} {total:6}", *(f"{number:6.1f}" for number in numbers))
        for name, (case, prediction) in tallies["all"].failing.items() if arguments.show else ():
            print(f"    {name}: gold {case.item.gold!r}, read {prediction!r}: {case.text[:200]!r}")


if __name__ == "__main__":
    main()

"""KLUE-DP on new text: words between spaces, and mecab's part-of-speech tags if the parser reads tags.

New text has no gold tags, which the published scores use. mecab-ko's tags differ from KLUE's in names (NNBC, SSO, MM …)
and in annotation: on KLUE-DP dev 94.9 % of the last tags are equal (docs/predict.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from corpus.documents.errors import BadInput
from corpus.documents.mecab import MAX_ANALYZED_CHARS, tag_morphemes
from finetune.data.custom_files import nfc
from finetune.examples import Example, Prediction
from finetune.task import Inference, RawInput
from finetune.tasks.dp.reader import POS_IDS
from finetune.tasks.text_input import parse_texts

LONGEST_RUN = 400  # characters analysed together
SEJONG = {"NNBC": "NNB", "SSO": "SS", "SSC": "SS", "SC": "SP", "SY": "SW", "MM": "MMD"}  # mecab's names to KLUE's
# Where KLUE decides otherwise by the word: determiners that count or describe, adverbs that join, quotes.
BY_WORD = {
    (tag, word): name
    for tag, name, words in (
        ("MM", "MMN", "한 두 세 네 몇 여러 첫 양 모든 각 다섯 여섯 석 넉 서너 두세 수 총 전"),
        ("MM", "MMA", "약 새 옛"),
        ("MAJ", "MAG", "및 다만 또한 역시 이른바 또는"),
        ("SY", "SS", "' ’ ‘"),
    )
    for word in words.split()
}


def parse_input(with_pos: bool, raw: RawInput, where: str) -> dict[str, Any] | None:
    """``words`` and their last ``pos`` tags, from a sentence, or a record with ``words`` and optionally ``pos``."""
    if isinstance(raw, Mapping) and "words" in raw:
        words, pos = raw["words"], raw.get("pos")
        if not (_are_texts(words) and all(len(word.split()) == 1 for word in words)):
            raise BadInput(f"{where}: 'words' should be a list of words without spaces")
        if pos is not None and not (_are_texts(pos) and len(pos) == len(words)):
            raise BadInput(f"{where}: 'pos' should be a list of tags, one for each of {len(words)} words")
        words = [nfc(word) for word in words]
    else:
        found = parse_texts(("sentence",), raw, where)
        words, pos = found["sentence"].split() if found else [], None
    if not words:
        return None
    tags = [tag.rsplit("+", 1)[-1] for tag in pos] if pos else last_tags(words) if with_pos else [""] * len(words)
    return {"words": words, "pos": tags}


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def last_tags(words: Sequence[str]) -> list[str]:
    """The tag of each word's last morpheme, as mecab sees it in its sentence; "" if it cannot be aligned.

    >>> last_tags(["윤슬이", "두", "번", "웃었다."])
    ['JKS', 'MMN', 'NNB', 'SF']
    """
    words = [word[-MAX_ANALYZED_CHARS:] for word in words]
    tags: list[str] = []
    while len(tags) < len(words):
        run, size = list[str](), 0
        for word in words[len(tags) :]:
            size += len(word) + 1
            if run and size > LONGEST_RUN:
                break
            run.append(word)
        tags += _tags_of_run(run)
    return tags


def _tags_of_run(words: Sequence[str]) -> list[str]:
    morphemes = iter(tag_morphemes(" ".join(words).replace("\0", "?")))
    tags, left = [], 0
    for word in words:
        left += len(word)
        surface, tag = "", ""
        while left > 0:
            surface, tag = next(morphemes, ("", ""))
            if not surface:
                break
            left -= len(surface.replace(" ", ""))
        tags.append(_sejong(surface, tag.rsplit("+", 1)[-1]) if left == 0 else "")
    return tags


def _sejong(surface: str, tag: str) -> str:
    named = BY_WORD.get((tag, surface)) or SEJONG.get(tag, tag)
    return named if named in POS_IDS else ""


def to_result(example: Example, prediction: Prediction) -> dict[str, Any]:
    """``words``; heads and relations are the prediction itself."""
    return {"words": example.inputs["words"]}


def format_lines(result: Mapping[str, Any]) -> list[str]:
    """The sentence as a comment, and one line per word: number, word, head (0: the root), relation."""
    words, tree = result["words"], result["prediction"]
    rows = zip(range(1, len(words) + 1), words, tree["heads"], tree["types"], strict=True)
    return [f"# {' '.join(words)}", *("\t".join(map(str, row)) for row in rows)]


INFERENCE = Inference(partial(parse_input, True), to_result, format_lines, is_block=True)
INFERENCE_WITHOUT_POS = INFERENCE._replace(parse=partial(parse_input, False))

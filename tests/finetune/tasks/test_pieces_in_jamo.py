"""A tokenizer whose pieces are jamo (NFD): labels go to its tokens and come back to the text as it was written."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tokenizers.normalizers import BertNormalizer
from transformers import PreTrainedTokenizerFast

from corpus.documents.errors import BadInput
from finetune.config import ProtocolName
from finetune.data.files import find_file
from finetune.encoder.loading import load_tokenizer
from finetune.examples import Example
from finetune.registry import find_task
from finetune.tasks.re.markers import MARKERS
from tests.finetune.conftest import SPECIALS, build_wordpiece, certain
from tests.finetune.tasks.dp.test_task import raws_of as trees_of
from tests.finetune.tasks.mrc.perfect_spans import make_example
from tests.finetune.tasks.mrc.perfect_spans import raws_of as spans_of
from tests.finetune.tasks.ner.test_published import example_of
from tests.finetune.tasks.wos.test_published import published_states
from tests.finetune.tasks.wos.test_values import spoken, survivors

JAMO = [
    chr(code)
    for first, last in ((0x1100, 0x1112), (0x1161, 0x1175), (0x11A8, 0x11C2))
    for code in range(first, last + 1)
]
PROTOCOLS: tuple[ProtocolName, ...] = ("malmoi", "klue-baseline")
both_protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


def in_jamo(pieces: Sequence[str]) -> PreTrainedTokenizerFast:
    """These pieces in NFD, and every jamo and ASCII character."""
    single = [piece for char in [*JAMO, *map(chr, range(33, 127))] for piece in (char, f"##{char}")]
    entries = [unicodedata.normalize("NFD", piece) for piece in (*SPECIALS, *single, *pieces)]
    tokenizer = build_wordpiece(dict.fromkeys(entries))
    tokenizer.backend_tokenizer.normalizer = BertNormalizer(lowercase=False, strip_accents=True)
    tokenizer.add_tokens(list(MARKERS), special_tokens=True)
    return tokenizer


@pytest.fixture(params=["jamo alone", "begins inside syllables"])
def tokenizer(request: pytest.FixtureRequest) -> PreTrainedTokenizerFast:
    jamo_with_the_next_syllables = ["##ᆯ에서", "##ᆯ로", "##ᆫ 책", "하느", "서우", "민지느", "##ᆼ교육", "##ᆫ"]
    return in_jamo([] if request.param == "jamo alone" else jamo_with_the_next_syllables)


def recovered(
    name: str, protocol: ProtocolName, examples: list[Example], tokenizer: PreTrainedTokenizerFast
) -> list[Any]:
    """What a perfect model's answers are decoded to."""
    task = find_task(name).with_protocol(protocol)
    if name == "wos":
        return (survivors if protocol == "malmoi" else published_states)(examples, tokenizer)
    features = task.featurize(examples, tokenizer, 510, False)
    raws = {
        "klue-ner": lambda: [certain([max(tag, -1) % 13 for tag in feature["tags"]]) for feature in features],
        "klue-dp": lambda: list(trees_of(features)),
        "klue-mrc": lambda: list(spans_of(features)),
    }[name]()
    return [prediction.value for prediction in task.decode(examples, features, raws)]


@both_protocols
def test_tags_come_back(tokenizer: PreTrainedTokenizerFast, protocol: ProtocolName) -> None:
    example = example_of("김하늘은 서울에서 뷁을 보았다", "Ppp.Ll..Gg...")
    assert recovered("klue-ner", protocol, [example], tokenizer) == [example.gold]


@both_protocols
def test_a_syllable_of_two_tokens_is_read_from_the_one_that_has_no_other(protocol: ProtocolName) -> None:
    for piece, text, tags in (("세나르", "세나를", "Pp."), ("나르", "나를", "P.")):
        tokenizer = in_jamo([piece])
        assert [unicodedata.normalize("NFC", token) for token in tokenizer.tokenize(text)] == [piece, "##ᆯ"]
        example = example_of(text, tags)
        assert recovered("klue-ner", protocol, [example], tokenizer) == [example.gold]


@both_protocols
def test_trees_come_back(tokenizer: PreTrainedTokenizerFast, protocol: ProtocolName) -> None:
    gold = {"heads": [3, 3, 0], "types": ["NP_SBJ", "NP_OBJ", "VP"]}
    example = Example("0", gold, {"words": ["민지는", "서울에서", "걸었다."], "pos": ["JX", "JKB", "SF"]})
    assert recovered("klue-dp", protocol, [example], tokenizer) == [gold]


@both_protocols
def test_words_and_letters_that_are_dropped_do_no_harm(protocol: ProtocolName) -> None:
    tokenizer, accent = in_jamo([]), "\u0301"  # an accent on nothing, a space without width
    example = example_of(f"{accent} 김하 \u200b서", ".Pp..")
    assert recovered("klue-ner", protocol, [example], tokenizer) == [example.gold]
    gold = {"heads": [3, 3, 0], "types": ["NP_SBJ", "NP_OBJ", "VP"]}
    example = Example("0", gold, {"words": [accent, "\u200b", "걸었다."], "pos": ["JX", "JKB", "SF"]})
    assert recovered("klue-dp", protocol, [example], tokenizer) == [gold]


@both_protocols
@pytest.mark.parametrize("answer", ["서울", "민지", "1987년에", "부산에서 태어나"])
def test_answers_come_back(tokenizer: PreTrainedTokenizerFast, protocol: ProtocolName, answer: str) -> None:
    example = make_example("민지 는 1987년에 부산에서 태어나 서울 로 이사했다.", answer)
    assert recovered("klue-mrc", protocol, [example], tokenizer) == [answer]


@both_protocols
def test_values_come_back(tokenizer: PreTrainedTokenizerFast, protocol: ProtocolName) -> None:
    examples = spoken([["숙소-지역-서울"], ["식당-예약 시간-18:30"]], ("", "서울로 18:30 예약"), {"서울": ""})
    assert recovered("wos", protocol, examples, tokenizer) == [example.gold for example in examples]


@both_protocols
def test_a_particle_after_a_marker_continues_its_word(protocol: ProtocolName) -> None:
    tokenizer = in_jamo(["민지", "는", "##는", "서울", "에서"])
    inputs = {"sentence": "민지는 서울에서", "subject": (0, 2), "object": (4, 6)}
    (feature,) = (
        find_task("klue-re").with_protocol(protocol).featurize([Example("0", None, inputs)], tokenizer, 64, False)
    )
    tokens = [unicodedata.normalize("NFC", token) for token in tokenizer.convert_ids_to_tokens(feature["input_ids"])]
    after = "[UNK]" if protocol == "klue-baseline" else "에서"  # no piece ##에서: unknown as published
    assert tokens == ["[CLS]", "<subj>", "민지", "</subj>", "##는", "<obj>", "서울", "</obj>", after, "[SEP]"]


@pytest.mark.parametrize("name", ["klue-ner", "klue-dp", "klue-mrc", "wos"])
def test_real_labels_come_back_as_often_as_from_whole_syllables(
    name: str, shared: Callable[[str], Path], klue_tokenizer: PreTrainedTokenizerFast
) -> None:
    path = find_file(shared("data/klue"), find_task(name).files.dev)
    assert path is not None
    examples = find_task(name).read(path)[:100]
    golds = [(e.gold["answers"] or [""])[0] if name == "klue-mrc" else e.gold for e in examples]
    for protocol in PROTOCOLS:
        kept = []
        for tokenizer in (in_jamo(list(klue_tokenizer.get_vocab())), klue_tokenizer):
            values = recovered(name, protocol, examples, tokenizer)
            if name == "wos":  # a state is a set
                values, golds = [sorted(value) for value in values], [sorted(gold) for gold in golds]
            kept.append(sum(value == gold for value, gold in zip(values, golds, strict=True)))
        # published, a span that begins or ends inside a syllable gives whole words
        lost = 1 if (name, protocol) == ("klue-mrc", "klue-baseline") else 0
        assert kept[0] >= kept[1] - lost > 70, protocol


def test_a_vocabulary_in_jamo_is_not_read_without_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{piece}\n" for piece in in_jamo(["서울"]).get_vocab()), "utf-8")
    with pytest.raises(BadInput, match=r"pieces are in NFD.*give the folder"):
        load_tokenizer(str(path))

"""Windows of KLUE-MRC: the rule of the most context, long inputs, and tokenizers that join a pair otherwise."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from corpus.documents.errors import BadInput
from finetune.examples import Example
from finetune.tasks.mrc.task import KLUE_MRC
from finetune.tasks.mrc.windows import ANSWER_TOKENS, Target, cut_windows, place_target, word_of_characters
from tests.finetune.records import record_of
from tests.finetune.tasks.mrc.perfect_spans import CONTEXT, make_example, round_trip

TEXT = CONTEXT + "무엇?"


@pytest.fixture
def joined_otherwise():
    """Tokenizers without segments: byte-level as `<s> q </s></s> c </s>`, SentencePiece as `[CLS] q [SEP] c [SEP]`."""

    def build(kind, text):
        if kind == "byte-level":
            tokenizer = Tokenizer(models.BPE())
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
            tokenizer.decoder = decoders.ByteLevel()
            names = ["<s>", "</s>", "<pad>"]
            trainer = trainers.BpeTrainer(
                vocab_size=300, special_tokens=names, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
            )
        else:
            tokenizer = Tokenizer(models.Unigram())
            tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
            names = ["[CLS]", "[SEP]", "<pad>", "<unk>"]
            trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=names, unk_token="<unk>")
        tokenizer.train_from_iterator([text] * 20, trainer)
        cls, sep = ((name, tokenizer.token_to_id(name)) for name in names[:2])
        if kind == "byte-level":
            tokenizer.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=False)
        else:
            pair = f"{cls[0]} $A {sep[0]} $B {sep[0]}"
            tokenizer.post_processor = processors.TemplateProcessing(pair=pair, special_tokens=[cls, sep])
        roles = {"cls_token": names[0], "sep_token": names[1], "pad_token": "<pad>"}
        return PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, model_input_names=["input_ids", "attention_mask"], **roles
        )

    return build


@pytest.mark.parametrize("kind", ["byte-level", "sentencepiece"])
def test_other_layouts_give_the_windows_of_the_tokenizer_itself(joined_otherwise, kind):
    context = CONTEXT + " 뷁 " + " ".join(f"{n}번 집에" for n in range(90))
    examples = [make_example(context, answer) for answer in ("1987년", "서울", "42번 집", "뷁", "89번")]
    tokenizer = joined_otherwise(kind, TEXT + context)
    features = KLUE_MRC.featurize(examples, tokenizer, 240, True)
    theirs = tokenizer(
        "무엇?", context, truncation="only_second", max_length=240, return_overflowing_tokens=True,
        stride=240 - 128 - sum(side != 1 for side in tokenizer("무엇?", "a").sequence_ids()),
    )  # fmt: skip
    first = [feature for feature in features if feature["example"] == 0]
    assert [feature["input_ids"].tolist() for feature in first] == theirs["input_ids"]
    assert len(first) > 1
    assert "token_type_ids" not in first[0]
    assert round_trip(examples, tokenizer, 200) == ["1987년", "서울", "42번 집", "뷁", "89번"]


def test_windows_of_bert_are_those_of_the_tokenizer_itself(tiny_encoder):
    context = " ".join(f"{number}번" for number in range(120))
    example = make_example(context, "77번")
    _, tokenizer = tiny_encoder([context + "무엇?"])
    features = KLUE_MRC.featurize([example], tokenizer, 200, True)
    theirs = tokenizer(
        "무엇?", context, truncation="only_second", max_length=200, return_overflowing_tokens=True,
        stride=200 - 128 - 3 - 3, return_token_type_ids=True,
    )  # fmt: skip
    for name in ("input_ids", "token_type_ids"):
        assert [feature[name].tolist() for feature in features] == theirs[name]
    assert len(features) == 3 and {1} < set(theirs["token_type_ids"][0])


def test_windows_are_described_by_what_they_show(tiny_encoder):
    """Every letter is a token here, so tokens can be counted by eye."""
    context = " " + " ".join(["가나다"] * 60)
    letters = [place for place, letter in enumerate(context) if letter != " "]
    example = Example("x", {"answers": []}, {"question": "가", "context": context, "start": None})
    _, tokenizer = tiny_encoder([context])
    features = KLUE_MRC.featurize([example], tokenizer, 134, False)
    record = record_of(KLUE_MRC, example, features, 134)
    assert (record["max_seq_length"], record["labels"]) == (134, {"is_impossible": True})
    for window, (first, last) in zip(record["windows"], [(0, 130), (67, 180)], strict=True):
        assert window["context_tokens"] == [first, last]
        assert window["context_chars"] == [letters[first], letters[last - 1] + 1]
        assert window["context_words"] == [first // 3, (last - 1) // 3]
        assert window["is_impossible"] and window["start_position"] == window["end_position"] == 0
        assert (len(window["input_ids"]), sum(window["token_type_ids"])) == (last - first + 4, last - first + 1)


def test_an_answer_is_placed_in_every_window_that_holds_all_of_it():
    window = {"begin": 5, "context_at": 9, "offsets": [None] * 4}  # tokens 5 to 8 of the passage, at 9 to 12
    for first in range(3, 11):
        for last in range(first, 11):
            found = place_target(window, Target(first, last, 2))
            holds = {first, last} <= set(range(5, 9))
            assert tuple(found.values()) == ((first + 4, last + 4, 2) if holds else (0, 0, 0))
    assert place_target(window, None) == {"start": 0, "end": 0, "cut": 0}


def test_a_tokenizer_without_a_first_special_token_is_refused(tiny_encoder):
    _, tokenizer = tiny_encoder([TEXT])
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        pair="$A [SEP] $B", special_tokens=[("[SEP]", 3)]
    )
    with pytest.raises(BadInput, match="expected a special token, question"):
        KLUE_MRC.featurize([make_example(CONTEXT, "서울")], tokenizer, 128, True)


@pytest.mark.parametrize("tokens", [1, 100, 101, 228, 229, 500])
def test_every_context_token_has_one_window_to_start_in(tokens):
    windows = cut_windows(tokens, 100 if tokens != 500 else 300)
    starts = [begin + n for begin, _, run in windows if run for n in range(run[0], run[1] + 1)]
    assert sorted(starts) == list(range(tokens))
    assert windows[-1][0] + windows[-1][1] == tokens
    for begin, length, run in windows:  # the rule itself, one token and one window after the other
        for place in range(run[0], run[1] + 1) if run else ():
            shown = [(min(begin + place - b, b + n - 1 - begin - place) + 0.01 * n, -b) for b, n, _ in windows
                     if b <= begin + place < b + n]  # fmt: skip
            assert max(shown) == (min(place, length - 1 - place) + 0.01 * length, -begin)


def test_an_answer_of_a_long_context_is_found(tiny_encoder):
    example = make_example(" ".join(f"{number}번" for number in range(400)), "250번")
    _, tokenizer = tiny_encoder([example.inputs["context"] + "무엇?"])
    features = KLUE_MRC.featurize([example], tokenizer, 300, True)
    assert len(features) > 3
    assert all(len(feature["input_ids"]) <= 300 for feature in features)
    assert round_trip([example], tokenizer, 300) == ["250번"]


def test_a_window_with_part_of_the_answer_points_at_cls(tiny_encoder):
    context = " ".join("가" * 250)
    example = Example("x", {"answers": [context[200:400]]}, {"question": "나", "context": context, "start": 200})
    _, tokenizer = tiny_encoder([context + "나"])
    features = KLUE_MRC.featurize([example], tokenizer, 132, True)  # 128 tokens a window: 0..127, 65..192, 130..249
    assert [(feature["start"], feature["end"]) for feature in features] == [(0, 0), (0, 0), (0, 0)]


@pytest.mark.parametrize("size", [17, 50, 110, 128, 190, 191, 446, 507])
def test_the_longest_answer_or_half_a_window_is_whole_in_some_window(size):
    windows = cut_windows(600, size, ANSWER_TOKENS - 1)
    longest = min(ANSWER_TOKENS, size // 2 + 1)
    for first in range(601 - longest):
        assert any(begin <= first and first + longest <= begin + length for begin, length, _ in windows)
    if size >= 191:  # as published
        assert [begin for begin, *_ in windows] == list(range(0, 600 - size + 128, 128))


def test_a_long_question_is_cut_and_leaves_room_for_the_context(tiny_encoder):
    example = make_example(CONTEXT, "서울", ask="어디 " * 100)
    _, tokenizer = tiny_encoder([CONTEXT + "어디"])
    (long,) = KLUE_MRC.featurize([example], tokenizer, 300, True)
    assert len(long["input_ids"]) - len(long["offsets"]) == 64 + 3
    short = KLUE_MRC.featurize([example], tokenizer, 40, True)
    assert len(short[0]["offsets"]) == 40 - 20 - 3


@pytest.mark.parametrize("text", ["", "가", " ", "가나 다", "  가\t나\u202f\n다 ", "\n가\u00a0나 \ud800"])
def test_characters_belong_to_the_words_between_white_space(text):
    expected, word, before = [], -1, " "
    for character in text:
        is_break = character in " \t\r\n\u202f"  # as published: a no-break space is a letter
        word += not is_break and before in " \t\r\n\u202f"
        expected.append(word)
        before = character
    assert word_of_characters(text).tolist() == expected

"""WoS values to tokens and back: spaces, unknown words, long values, any kind of tokenizer, all real states."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE, Unigram
from transformers import PreTrainedTokenizerFast

from finetune.data.custom_files import squeeze
from finetune.examples import Example
from finetune.tasks.wos.reader import GATES, PTR, SLOTS, read_ontology
from finetune.tasks.wos.task import MAX_STEPS, WOS
from finetune.tasks.wos.values import UNKNOWN, cut_readably, make_speller, restore_value

DEV = "data/klue/derived/wos-v1.1/wos-v1.1_dev.json.zst"


def spoken(states, turns=("", "네."), known: dict | None = None):
    """One example a state, after these turns, with these values of every slot in the ontology."""
    ontology = {slot: {squeeze(v): [v] for v in known or ()} for slot in SLOTS}
    return [
        Example(f"made-up-{n}", state, {"dialogue": "", "turns": turns, "ontology": ontology})
        for n, state in enumerate(states)
    ]


def survivors(examples, tokenizer):
    """The states that a perfect model's answers are decoded to."""
    features = WOS.featurize(examples, tokenizer, 510, False)
    spell = make_speller(tokenizer)
    spelt = {tuple(ids): spell(ids[:-1]) for f in features for ids in f["targets"].values()}
    raws = [
        {"gates": f["gates"], "values": {SLOTS[slot]: spelt[tuple(ids)] for slot, ids in f["targets"].items()}}
        for f in features
    ]
    return [prediction.value for prediction in WOS.decode(examples, features, raws)]


@pytest.mark.parametrize("value", ["yes", "no", "dontcare", "none", "ptr", "a-b - c"])
def test_gate_names_and_hyphens_survive_as_values(tiny_encoder, value):
    _, tokenizer = tiny_encoder(["yesnodontcareptr abc-"])
    assert survivors(spoken([[f"식당-이름-{value}"]], ("", f"{value} 찾아줘.")), tokenizer) == [[f"식당-이름-{value}"]]


def test_a_value_takes_its_spaces_from_the_ontology_or_the_dialogue():
    known = {"롯데월드타워&몰": ["롯데월드타워&몰"], "시청역": ["시청역", "시청 역"]}
    assert restore_value("롯데월드타워 & 몰", known, ()) == "롯데월드타워&몰"
    assert restore_value("시청 역", known, ()) == "시청 역"
    assert restore_value("별 & 숲 역", known, ("", "별&숲 역으로", "네.")) == "별&숲 역"
    assert restore_value("달 & 숲", known, ("", "별&숲 역으로")) == "달 & 숲"
    assert restore_value("", known, ("", "네.")) == ""


@pytest.mark.parametrize("value", ["달 & 별(숲 = 강)", "달&별 (숲=강)", "달, 별", "3:00", "달.별"])
def test_spaces_around_signs_come_back(tiny_encoder, value):
    _, tokenizer = tiny_encoder(["달별숲강&(=),.:30 찾아줘"])
    state = [f"식당-이름-{value}"]
    assert survivors(spoken([state], ("", f"{value} 찾아줘.")), tokenizer) == [state]
    assert survivors(spoken([state], known=[value]), tokenizer) == [state]


def test_an_unknown_token_is_one_character_and_is_filled_in(tiny_encoder):
    _, tokenizer = tiny_encoder(["이모텔송로예약해줘 남산 거기"])
    pieces = cut_readably(["펭이모텔로 예약해줘"], tokenizer)["펭이모텔로 예약해줘"]
    assert tokenizer.convert_ids_to_tokens(pieces.ids)[:5] == ["[UNK]", "이", "##모", "##텔", "##로"]
    assert pieces.unknown == {"펭"}
    state = ["숙소-이름-펭이모텔"]
    assert survivors(spoken([state], ("", "송이모텔 말고 펭이모텔로 예약해줘"), ["송이모텔"]), tokenizer) == [state]
    assert survivors(spoken([state], known=["송이모텔", "펭이모텔"]), tokenizer) == [state]
    for value in ("남산 펭 모텔", "남산펭 모텔", "펭귄"):
        state = [f"숙소-이름-{value}"]
        assert survivors(spoken([state], ("", f"거기 {value}로 예약해줘")), tokenizer) == [state]
    assert restore_value(f"{UNKNOWN} 텔", {}, ("", "모텔"), frozenset()) == f"{UNKNOWN} 텔"


def test_a_word_of_known_characters_that_is_unknown_is_cut_into_them(tiny_encoder):
    _, tokenizer = tiny_encoder(["가나"])
    long_word = "가나" * 60  # more than 100 characters: WordPiece gives up
    assert tokenizer.tokenize(long_word) == ["[UNK]"]
    assert tokenizer.convert_ids_to_tokens(cut_readably([long_word], tokenizer)[long_word].ids) == list(long_word)


def byte_level():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *pre_tokenizers.ByteLevel.alphabet()]
    tokenizer = Tokenizer(BPE({piece: number for number, piece in enumerate(pieces)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def sentence_piece():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁", *"달별모텔남산로예약&( )"]
    tokenizer = Tokenizer(Unigram([(piece, -1.0) for piece in pieces], unk_id=1))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


@pytest.mark.parametrize("make", [byte_level, sentence_piece])
def test_values_come_back_from_other_kinds_of_tokens(make):
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=make(), pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
    for value in ("달별 모텔", "달&별 (남산)", "펭귄모텔"):
        state, turns = [f"숙소-이름-{value}"], ("", f"남산 {value}로 예약")
        assert survivors(spoken([state], turns), tokenizer) == [state]
        cut = cut_readably([value, turns[1]], tokenizer)
        ids, spoken_ids = cut[value].ids, cut[turns[1]].ids
        assert any(spoken_ids[i : i + len(ids)] == ids for i in range(len(spoken_ids))), "it can be copied"


def test_a_long_value_is_reachable_and_one_that_is_too_long_is_said(tiny_encoder, caplog):
    _, tokenizer = tiny_encoder(["가나다"])
    states = [["식당-이름-" + "가나다" * 20], ["식당-이름-" + "가나다" * 22]]
    assert survivors(spoken(states), tokenizer) == states
    assert f"1 values are longer than {MAX_STEPS} tokens" in caplog.text


def test_every_ontology_value_is_reachable(shared, klue_tokenizer):
    ontology = read_ontology(shared("data/klue/official/wos-v1.1/ontology.json"))
    values = [f"{slot}-{value}" for slot in SLOTS for spelt in ontology[slot].values() for value in spelt]
    examples = [
        Example(value, [value], {"dialogue": "", "turns": ("", "네."), "ontology": ontology}) for value in values
    ]
    assert len(values) == 2452
    assert survivors(examples, klue_tokenizer) == [example.gold for example in examples]
    plain = [value for value in values if value.split("-", 2)[2] not in GATES]
    assert len(plain) == 2322
    features = WOS.featurize(examples, klue_tokenizer, 510, False)
    assert sum(feature["gates"].count(PTR) for feature in features) >= len(plain)


def test_every_real_state_survives(shared, klue_tokenizer):
    examples = WOS.read(shared(DEV))
    assert examples[0].inputs["ontology"], "found in the neighboring folder"
    assert len(examples) == 4332
    lost = [
        (example.guid, set(example.gold) ^ set(state))
        for example, state in zip(examples, survivors(examples, klue_tokenizer), strict=True)
        if set(example.gold) != set(state)
    ]
    assert lost == []

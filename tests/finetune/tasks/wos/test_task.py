"""WoS under protocol malmoi: turns, gates, records, what is read and what is written."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from corpus.documents.errors import BadInput
from finetune.tasks.wos.reader import SLOTS, find_ontology
from finetune.tasks.wos.task import WOS, parse_input
from finetune.train.batched_prediction import to_tensors
from tests.finetune.records import record_of

DIALOGUES = [
    {
        "guid": "made-up-0",
        "domains": ["식당"],
        "dialogue": [
            {"role": "user", "text": "서울 동쪽 한식당 찾아줘.", "state": ["식당-지역-서울 동쪽", "식당-종류-한식당"]},
            {"role": "sys", "text": "달빛 밥상이 있어요."},
            {
                "role": "user",
                "text": "거기로 18시 30분, 주차도 돼야 하고 가격은 상관없어.",
                "state": [
                    "식당-지역-서울 동쪽",
                    "식당-종류-한식당",
                    "식당-이름-달빛 밥상",
                    "식당-예약 시간-18:30",
                    "식당-주차 가능-yes",
                    "식당-가격대-dontcare",
                ],
            },
        ],
    },
    {
        "guid": "made-up-1",
        "domains": ["택시"],
        "dialogue": [
            {"role": "user", "text": "안녕하세요?", "state": []},
            {"role": "sys", "text": "네."},
            {"role": "user", "text": "별&숲 역으로 택시 불러줘.", "state": ["택시-도착지-별&숲 역"]},
        ],
    },
]  # fmt: skip
VALUES = {"식당-지역": ["서울 동쪽"], "식당-종류": ["한식당"], "식당-이름": ["달빛 밥상"], "식당-예약 시간": ["18:30"]}
TEXT = json.dumps(DIALOGUES, ensure_ascii=False) + "".join(SLOTS)


@pytest.fixture
def write(tmp_path):
    def to_file(dialogues, ontology=True):
        if ontology:
            values = {slot: ["none", "dontcare", *VALUES.get(slot, [])] for slot in SLOTS}
            (tmp_path / "ontology.json").write_text(json.dumps(values), encoding="utf-8")
        path = tmp_path / "wos-v1.1_dev.json"
        path.write_text(json.dumps(dialogues), encoding="utf-8")
        return path

    return to_file


@pytest.fixture
def examples(write):
    return WOS.read(write(DIALOGUES))


def broken(**changes):
    dialogue = json.loads(json.dumps(DIALOGUES[0]))
    dialogue["dialogue"][0].update(changes)
    return [dialogue]


def without_states():
    dialogues = json.loads(json.dumps(DIALOGUES))
    for dialogue in dialogues:
        for turn in dialogue["dialogue"]:
            turn.pop("state", None)
    return dialogues


def test_an_example_is_a_user_turn_with_all_turns_before_it(examples):
    assert [example.guid for example in examples] == ["made-up-0-0", "made-up-0-1", "made-up-1-0", "made-up-1-1"]
    assert examples[0].inputs["turns"] == ("", "서울 동쪽 한식당 찾아줘.")
    assert [len(example.inputs["turns"]) for example in examples] == [2, 4, 2, 4]
    assert {WOS.group(example) for example in examples} == {"made-up-0", "made-up-1"}


@pytest.mark.parametrize(
    ("dialogues", "says"),
    [
        (broken(state=["식당-색깔-빨강"]), r"made-up-0, turn 1: state '식당-색깔-빨강' is not domain-slot-value"),
        (broken(state=None), r"made-up-0, turn 1: expected a list under 'state'"),
        (broken(role="sys"), r"made-up-0: turn 1 of 'dialogue' should have role 'user'"),
        ([{"guid": "made-up-0"}], r"made-up-0: expected a list of turns"),
        ([], r"at least one record"),
    ],
)
def test_a_broken_dialogue_is_reported_with_its_guid(write, dialogues, says):
    with pytest.raises(BadInput, match=says):
        WOS.read(write(dialogues))


def test_an_ontology_with_other_slots_is_an_error(write, tmp_path):
    path = write(DIALOGUES)
    (tmp_path / "ontology.json").write_text(json.dumps({"식당-색깔": ["빨강"]}), encoding="utf-8")
    with pytest.raises(BadInput, match="45 slots"):
        WOS.read(path)


def test_an_ontology_is_found_in_a_neighboring_benchmark_folder_but_nowhere_else(tmp_path):
    for folder in ("official/wos-v1.1", "derived/wos-v1.1", "official/other", "derived/other"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("wos-v1.1", "other"):
        (tmp_path / "official" / name / "ontology.json").touch()
    found = tmp_path / "official/wos-v1.1/ontology.json"
    assert find_ontology(tmp_path / "derived/wos-v1.1/wos-v1.1_dev.json") == found
    assert find_ontology(tmp_path / "derived/other/wos-v1.1_dev.json") is None


def test_what_is_odd_but_usable_is_said(write, caplog):
    assert len(WOS.read(write(DIALOGUES, ontology=False))) == 4
    assert "ontology.json not found" in caplog.text
    twice = WOS.read(write(broken(state=["식당-지역-서울 동쪽", "식당-지역-서울 서쪽"])))
    assert "made-up-0, turn 1: 'state' has two values of one slot" in caplog.text
    assert len(twice[0].gold) == 2


@pytest.mark.parametrize("protocol", ["malmoi", "klue-baseline"])
def test_a_file_without_states_has_no_gold_and_trains_nothing(write, tiny_encoder, protocol):
    task, (_, tokenizer) = WOS.with_protocol(protocol), tiny_encoder([TEXT])
    examples = task.read(write(without_states()))
    assert [example.gold for example in examples] == [None] * 4
    assert task.featurize(examples, tokenizer, 200, True) == []
    features = task.featurize(examples, tokenizer, 200, False)
    assert "labels" not in record_of(task, examples[0], features[:1], 200)
    raws = [{"gates": [0] * len(SLOTS), "values": {}}] * 4
    assert [prediction.value for prediction in task.decode(examples, features, raws)] == [[]] * 4


def test_written_predictions_are_the_official_file_with_other_states(write, tmp_path, examples):
    states = {example.guid: ["택시-종류-모범"] if example.gold else [] for example in examples}
    for source in (write(without_states()), write(DIALOGUES)):
        WOS.write(source, states, tmp_path / "written.json")
        again = WOS.read(tmp_path / "written.json")
        assert {example.guid: example.gold for example in again} == states
        assert [example.inputs["turns"] for example in again] == [example.inputs["turns"] for example in examples]


def test_the_oldest_tokens_are_cut_and_cls_stays(examples, tiny_encoder):
    _, tokenizer = tiny_encoder([TEXT])
    whole = WOS.featurize(examples, tokenizer, 200, False)[1]["input_ids"]
    cut = WOS.featurize(examples, tokenizer, 20, False)[1]["input_ids"]
    assert tokenizer.convert_ids_to_tokens(whole[:3]) == ["[CLS]", "[SEP]", "서"]
    assert cut == [whole[0], *whole[-19:]]


def test_a_record_shows_gates_values_and_what_is_spelt(examples, tiny_encoder):
    _, tokenizer = tiny_encoder([TEXT])
    feature = WOS.featurize(examples, tokenizer, 200, False)[1]
    record = record_of(WOS, examples[1], [feature], 200)
    assert record["labels"]["slots"]["식당-주차 가능"] == {"gate": "yes", "value": "yes", "target_ids": []}
    spelt = record["labels"]["slots"]["식당-지역"]["target_ids"]
    assert tokenizer.convert_ids_to_tokens(spelt) == ["서", "##울", "동", "##쪽", "[SEP]"]
    assert record["labels"]["state"] == examples[1].gold
    assert len(record["token_type_ids"]) == len(record["input_ids"])


def test_training_lowers_the_loss_and_learns_the_states(examples, tiny_encoder):
    folder, tokenizer = tiny_encoder([TEXT], "roberta")
    torch.manual_seed(1)
    model = WOS.model(folder, tokenizer).eval()  # dropout only slows so small a model down
    features = WOS.featurize(examples, tokenizer, 200, True)
    batch = to_tensors(WOS.collate(features, tokenizer.pad_token_id))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    first = model(**batch)["loss"].item()
    for _ in range(80):
        loss = model(**batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss.item() < first / 10
    predictions = WOS.decode(examples, features, model.predict(**batch))
    assert [set(prediction.value) for prediction in predictions] == [set(example.gold) for example in examples]


def test_importing_the_task_imports_no_torch():
    """Reading, converting, decoding and scoring are for machines without it, too."""
    code = "import sys, finetune.tasks.wos; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_dialogue_to_predict_ends_with_its_last_turn_of_the_user() -> None:
    turns = ["서울 숙소요", "네, 어디쯤이요?", "강남이요", "찾았습니다"]
    for count in (3, 4):
        assert parse_input("\t".join(turns[:count]), "line 1") == {
            "dialogue": "line 1", "turns": ("", *turns[:3]), "ontology": {},
        }  # fmt: skip
    assert parse_input("", "line 1") is None

"""Labels, spans and answers of the invented benchmark are right, balanced and not shared between train and dev."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from launch.sample.josa import particle
from launch.sample.klue import write_klue
from launch.sample.klue.facts import facts_of
from launch.sample.klue.layout import SLOT, expand, fill
from launch.sample.klue.ner import SCENES, TAGS
from launch.sample.klue.relations import ASKED, NO_RELATION, OFFICIAL_LABELS
from launch.sample.seeding import random_for
from launch.sample.world import make_world

SIDES = ("train", "dev")


@pytest.fixture(scope="module")
def klue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("klue")
    write_klue(make_world(1), 1, out)
    return out


def load(klue: Path, task: str, side: str) -> Any:
    return json.loads((klue / f"{task}-v1.1/{task}-v1.1_{side}.json").read_text("utf-8"))


def sentences(klue: Path, task: str, side: str) -> list[list[list[str]]]:
    """Rows of a .tsv file by sentence, comment lines left out."""
    blocks = (klue / f"{task}-v1.1/{task}-v1.1_{side}.tsv").read_text("utf-8").rstrip("\n").split("\n\n")
    return [[line.split("\t") for line in block.split("\n") if not line.startswith("##")] for block in blocks]


def keys(klue: Path, task: str, side: str) -> set[Any]:
    if task in ("klue-ner", "klue-dp"):
        return {tuple(tuple(row[:2]) for row in rows) for rows in sentences(klue, task, side)}
    fields = {"ynat": ("title",), "klue-sts": ("sentence1", "sentence2"), "klue-nli": ("premise", "hypothesis")}
    records = load(klue, task, side)
    if task == "klue-mrc":
        return {d["paragraphs"][0]["context"] for d in records["data"]}
    if task == "wos":
        return {tuple(turn["text"] for turn in d["dialogue"]) for d in records}
    if task == "klue-re":
        return {record["sentence"] for record in records}
    return {frozenset(record[field] for field in fields[task]) for record in records}


@pytest.mark.parametrize("task", ["ynat", "klue-sts", "klue-nli", "klue-ner", "klue-re", "klue-dp", "klue-mrc", "wos"])
def test_no_dev_example_is_in_train(klue: Path, task: str) -> None:
    train, dev = keys(klue, task, "train"), keys(klue, task, "dev")
    assert train and dev
    assert not train & dev


def test_dev_has_names_that_training_has_not(klue: Path) -> None:
    contexts = {side: " ".join(keys(klue, "klue-mrc", side)) for side in SIDES}
    people = [person.name for person in make_world(1).people]
    assert sum(name in contexts["dev"] and name not in contexts["train"] for name in people) >= 10


def test_topics_and_inference_labels_are_balanced(klue: Path) -> None:
    for side in SIDES:
        topics = Counter(record["label"] for record in load(klue, "ynat", side))
        assert len(topics) == 7 and max(topics.values()) - min(topics.values()) <= len(load(klue, "ynat", side)) // 20
        labels = Counter(record["gold_label"] for record in load(klue, "klue-nli", side))
        assert len(labels) == 3 and max(labels.values()) < 1.2 * min(labels.values())


def test_similarity_labels_agree_with_their_judges(klue: Path) -> None:
    for record in load(klue, "klue-sts", "train"):
        given, labels = record["annotations"]["annotations"], record["labels"]
        assert labels["real-label"] == pytest.approx(sum(given) / 7)
        assert labels["label"] == round(labels["real-label"], 1)
        assert labels["binary-label"] == (labels["real-label"] >= 3)
        assert record["sentence1"] != record["sentence2"]
        assert sum(map(int, record["annotations"]["agreement"].split(":"))) == 7
    means = [record["labels"]["real-label"] for record in load(klue, "klue-sts", "dev")]
    assert min(means) < 0.5 and max(means) > 4.5
    assert 0.3 < sum(mean >= 3 for mean in means) / len(means) < 0.6


def test_relation_spans_hold_their_words(klue: Path) -> None:
    for side in SIDES:
        records = load(klue, "klue-re", side)
        labels = Counter(record["label"] for record in records)
        assert set(labels) <= set(OFFICIAL_LABELS) and len(labels) >= 15
        assert 0.28 < labels[NO_RELATION] / len(records) < 0.4
        for record in records:
            for role in ("subject_entity", "object_entity"):
                entity = record[role]
                assert record["sentence"][entity["start_idx"] : entity["end_idx"] + 1] == entity["word"]
            assert record["subject_entity"]["type"] in ("PER", "ORG")


def test_sentence_alone_does_not_give_the_relation() -> None:
    templates = {asked.template for table in ASKED.values() for asked in table}
    labels = {t: {a.label for table in ASKED.values() for a in table if a.template == t} for t in templates}
    assert sum(len(found) > 1 for found in labels.values()) > 0.9 * len(templates)


def test_entity_tags_are_well_formed_and_all_six_types_occur(klue: Path) -> None:
    for side in SIDES:
        counts: Counter[str] = Counter()
        for rows in sentences(klue, "klue-ner", side):
            before = "O"
            for character, tag in rows:
                assert len(character) == 1
                if tag.startswith("I-"):
                    assert before in (f"B-{tag[2:]}", tag)
                counts[tag[2:]] += tag.startswith("B-")
                before = tag
        assert all(counts[kind] >= 30 for kind in ("PS", "LC", "OG", "DT", "TI", "QT")), counts


def test_every_slot_of_a_scene_is_an_entity() -> None:
    assert {slot[1] for scene in SCENES for slot in SLOT.finditer(scene)} <= set(TAGS)


def test_marked_up_sentence_equals_its_characters(klue: Path) -> None:
    text = (klue / "klue-ner-v1.1/klue-ner-v1.1_dev.tsv").read_text("utf-8")
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if (line and not line.startswith("## ")) or "v1_dev" in line]
        if lines:
            marked = lines[0].split("\t")[1]
            plain = re.sub(r"<(.+?):(?:PS|LC|OG|DT|TI|QT)>", r"\1", marked)
            assert plain == "".join(line[0] for line in lines[1:])


def test_answers_stand_where_they_say(klue: Path) -> None:
    for side in SIDES:
        kinds: Counter[int] = Counter()
        for document in load(klue, "klue-mrc", side)["data"]:
            context = document["paragraphs"][0]["context"]
            assert len(context.split()) <= 150
            for qa in document["paragraphs"][0]["qas"]:
                kinds[qa["question_type"]] += 1
                assert qa["is_impossible"] == (not qa["answers"]) == (qa["question_type"] == 3)
                for answer in qa["answers"] + qa.get("plausible_answers", []):
                    start = answer["answer_start"]
                    assert context[start : start + len(answer["text"])] == answer["text"]
        assert set(kinds) == {1, 2, 3} and 0.15 < kinds[3] / sum(kinds.values()) < 0.4


def test_states_hold_only_ontology_values_and_only_grow(klue: Path) -> None:
    ontology = json.loads((klue / "wos-v1.1/ontology.json").read_text("utf-8"))
    seen: Counter[str] = Counter()
    for side in SIDES:
        for dialogue in load(klue, "wos", side):
            before: set[str] = set()
            users = [turn for turn in dialogue["dialogue"] if turn["role"] == "user"]
            assert 3 <= len(users) <= 6
            assert [t["role"] for t in dialogue["dialogue"]] == ["user", "sys"] * len(users)
            for turn in users:
                for item in turn["state"]:
                    domain, slot, value = item.split("-", 2)
                    assert value in ontology[f"{domain}-{slot}"], item
                    seen[value] += value in ("dontcare", "yes", "no")
                assert before <= set(turn["state"])
                before = set(turn["state"])
            assert {item.split("-")[0] for item in before} == set(dialogue["domains"])
    assert min(seen[value] for value in ("dontcare", "yes", "no")) > 10


def test_guids_are_numbered_and_say_nothing_else(klue: Path) -> None:
    for task in ("ynat", "klue-sts", "klue-nli", "klue-re", "wos"):
        guids = [record["guid"] for record in load(klue, task, "dev")]
        assert guids == [f"{task}-v1_dev_{number:05}" for number in range(len(guids))]


def test_labels_do_not_follow_from_the_number_of_an_example(klue: Path) -> None:
    for task, field, cycle in (("ynat", "label", 7), ("klue-nli", "gold_label", 3), ("klue-re", "label", 3)):
        labels = [record[field] for record in load(klue, task, "train")]
        for place in range(cycle):
            most = Counter(labels[place::cycle]).most_common(1)[0][1] / len(labels[place::cycle])
            assert most < 1.4 * Counter(labels).most_common(1)[0][1] / len(labels)


def test_no_name_is_followed_by_the_wrong_particle(klue: Path) -> None:
    world = make_world(1)
    names = [p.name for p in world.people] + [o.name for o in world.organisations] + [c.name for c in world.cities]
    text = "".join(p.read_text("utf-8") for p in klue.glob("*/*.json")) + " ".join(
        row[1] for rows in sentences(klue, "klue-dp", "train") for row in rows
    )
    checked = 0
    for name, josa in re.findall(rf"({'|'.join(map(re.escape, names))})(은|는|이|가|을|를|과|와|으로)(?=[ ,.])", text):
        assert josa == particle(name, josa), name + josa
        checked += 1
    assert checked > 2_000


def test_particles_agree_behind_quotes_and_choices_are_made() -> None:
    template = expand("‘{work}’{:은} [|] {who:이} [썼다|썼다].", random_for(1, "test"))
    filled = fill(template, {"work": "봄", "who": "노아"})
    assert filled.text == "‘봄’은 노아가 썼다."
    assert [filled.text[start:end] for _, start, end in filled.spans] == ["봄", "노아"]


def test_a_falsified_fact_differs_in_one_value() -> None:
    rng = random_for(1, "test")
    for fact in facts_of(make_world(1))[::7]:
        for slot in fact.swaps:
            changed = fact.falsified(slot, rng)
            assert [name for name in changed if changed[name] != fact.slots[name]] == [slot]

"""One command from pairs to a scored model: resuming, comparing, loading in other libraries, decontamination."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from corpus.documents.errors import BadInput
from finetune.embed import train as training
from finetune.embed.config import EmbedConfig
from finetune.embed.data import Item, read_items
from finetune.embed.embedder import build_net, load_embedder, tokenize
from finetune.embed.run import EmbedInputs, prepare, run
from finetune.examples import pad_inputs
from finetune.inference.onnx_export import PACKAGES
from finetune.score.compare import compare, find_trained, pair_up
from finetune.train.batched_prediction import to_tensors
from launch.pipeline import find_contaminated
from launch.tools.push import find_repository
from tests.command import run_command
from tests.finetune.embed.conftest import PLACES, sentence

TEXTS = ["비가 온다", " 어제 강릉 기차 앞에서 사진을 찍었다. ", "서울의 등대은 아침에 문을 연다." * 60, "ㅠ"]


@pytest.fixture(scope="module")
def finished(config: EmbedConfig, inputs: EmbedInputs, home: Path) -> Path:
    run(config.model_copy(update={"seeds": (1, 2)}), inputs, home / "embed")
    return home / "embed"


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_folder_gives_the_same_vectors_in_sentence_transformers(finished: Path, tmp_path: Path) -> None:
    ours = load_embedder(finished / "model", "cpu").encode(TEXTS)
    theirs = SentenceTransformer(str(finished / "model"), device="cpu").encode(TEXTS)
    assert np.abs(ours - theirs).max() < 1e-6
    assert np.allclose(np.linalg.norm(ours, axis=1), 1)
    shutil.copytree(finished / "model", tmp_path / "pushed")
    (tmp_path / "pushed" / "2_Normalize").rmdir()  # the Hub has no empty folders
    again = SentenceTransformer(str(tmp_path / "pushed"), device="cpu").encode(TEXTS)
    assert np.array_equal(again, theirs)


@pytest.mark.usefixtures("one_export")
@pytest.mark.skipif(not all(map(find_spec, PACKAGES)), reason="needs malmoi[onnx]")
def test_onnx_gives_the_same_vectors_and_its_card_the_loss_of_int8(
    finished: Path, config: EmbedConfig, tmp_path: Path
) -> None:
    folder, (dev,) = str(finished / "model"), config.evaluate
    assert run_command(None, "model", "export", folder, str(tmp_path / "onnx")).code == 0
    ours, graph = (load_embedder(Path(name), "cpu").encode(TEXTS) for name in (folder, tmp_path / "onnx"))
    assert np.abs(ours - graph).max() < 1e-5
    assert run_command(None, "model", "export", folder, str(tmp_path / "8"), "--int8=dynamic", f"--dev={dev}").code == 0
    card = (tmp_path / "8" / "README.md").read_text("utf-8")
    rows = [line.split(" | ") for line in card.splitlines() if line.startswith(("| torch", "| ONNX"))]
    assert rows[0][2] == rows[1][2] and float(rows[2][1]) < float(rows[1][1])
    assert float(rows[0][1]) == pytest.approx(Path(folder, "model.safetensors").stat().st_size / 1e6, abs=0.06)
    assert (load_embedder(tmp_path / "8", "cpu").encode(TEXTS) * ours).sum(axis=1).min() > 0.98


def test_results_compare_and_the_folder_can_be_pushed(finished: Path, config: EmbedConfig) -> None:
    pairs = pair_up(find_trained(finished), None, a="tf-idf", b=config.model)
    (pearson, spearman) = compare(pairs, samples=50)
    assert (pearson.metric, spearman.metric) == ("pearsonr", "spearmanr")
    assert spearman.difference is not None and spearman.difference.seed_variance is not None
    names = find_repository(finished / "model").names
    assert {"modules.json", "1_Pooling/config.json", "README.md", "model.safetensors"} <= set(names)
    card = (finished / "model" / "README.md").read_text("utf-8")
    assert "seeds 1 / 2" in card and "tsv" in card


def test_a_second_run_trains_nothing_and_other_settings_train_again(
    finished: Path, config: EmbedConfig, inputs: EmbedInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("finetune.embed.run.train", refuse)
    run(config.model_copy(update={"seeds": (1, 2)}), inputs, finished)
    with pytest.raises(BadInput, match="trained again"):
        run(config.model_copy(update={"lr": 2e-3}), inputs, finished)


def test_a_training_killed_twice_ends_with_the_same_weights(
    finished: Path, config: EmbedConfig, inputs: EmbedInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "CHECKPOINT_STEPS", 3)
    whole = weights(finished / "model")  # of seed 1
    save, left = training._State.save, [2, 1]

    def save_and_die(self: Any, step: int) -> None:
        save(self, step)
        if left:
            left[0] -= 1
            if not left[0]:
                left.pop(0)
                raise KeyboardInterrupt

    monkeypatch.setattr(training._State, "save", save_and_die)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(config, inputs, tmp_path / "killed")
    run(config, inputs, tmp_path / "killed")
    assert weights(tmp_path / "killed" / "model") == whole
    assert not list((tmp_path / "killed").rglob("checkpoint*"))


def test_no_text_of_a_batch_is_a_wrong_answer_to_its_own_question(config: EmbedConfig) -> None:
    asked = [Item("file", (f"질문 {i}", f"글 {i // 3}", f"글 {i // 3 + 1}")) for i in range(60)]
    graded = [Item("file", ("가", f"나 {i}"), i / 60) for i in range(60)]
    lengths = [10 + i // 3 for i in range(120)]  # questions about one passage are of one length
    batches = training.draw_batches([*asked, *graded], lengths, config.model_copy(update={"batch_size": 16}), 1)
    for batch in batches:
        texts = [text for row in batch.rows for text in ([*asked, *graded][row]).texts]
        assert batch.stage or len(texts) == len(set(texts))
    first = [row for batch in batches for row in batch.rows if batch.stage == 0]
    assert max(Counter(first).values()) == config.epochs and len(first) > 110  # a single row has no negatives
    assert {len(batch.rows) for batch in batches if batch.stage} == {12, 16}


@pytest.mark.parametrize(("purpose", "texts"), [("search", {3}), ("similarity", {2})])
def test_only_search_looks_for_hard_negatives(
    purpose: str, texts: set[int], config: EmbedConfig, inputs: EmbedInputs, tmp_path: Path
) -> None:
    pairs = [{"query": f"{place} 기차", "passage": f"{place}에 가는 기차는 역에 있다."} for place in PLACES]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)), "utf-8")
    (tmp_path / "asked.csv").write_text("query,passage,label\n고래,고래는 바다에 산다.,1\n", "utf-8")
    (tmp_path / "scored.csv").write_text("sentence1,sentence2,score\n고래,상어,1\n", "utf-8")
    name = "asked" if purpose == "search" else "scored"
    files = {"train": (str(tmp_path / "pairs.jsonl"),), "evaluate": (str(tmp_path / f"{name}.csv"),), "max_pairs": 99}
    changed = config.model_copy(update={"for": purpose, **files})
    items = prepare(changed, inputs._replace(documents=None)).items
    assert {len(item.texts) for item in items} == texts


def test_cached_losses_have_the_gradients_of_the_whole_batch(config: EmbedConfig, inputs: EmbedInputs) -> None:
    items = [item for item in read_items(config, inputs.documents, None) if len(item.texts) == 3][:8]
    gradients = []
    for micro in (None, 3):
        net, tokenizer = build_net(inputs.encoder, "mean")
        net.eval()  # no dropout
        columns = [
            to_tensors(pad_inputs(tokenize([item.texts[side] for item in items], tokenizer, 64), 0))
            for side in range(3)
        ]
        losses = training.Losses(net, config.model_copy(update={"micro_batch": micro}), 1)
        losses(training.Batch(0, tuple(range(8))), items, columns).backward()
        gradients.append([weight.grad for weight in net.parameters() if weight.grad is not None])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*gradients, strict=True))


@pytest.mark.parametrize(("count", "sizes"), [(4, [2, 2]), (5, [2, 2]), (1, [])])
def test_no_batch_has_a_single_pair(count: int, sizes: list[int], config: EmbedConfig) -> None:
    items = [Item("own", (f"질문 {n}", f"글 {n}")) for n in range(count)]
    changed = config.model_copy(update={"batch_size": 2, "epochs": 1})
    assert [len(batch.rows) for batch in training.draw_batches(items, [5] * count, changed, 1)] == sizes


def test_pairs_with_an_evaluation_text_are_dropped(config: EmbedConfig, inputs: EmbedInputs, tmp_path: Path) -> None:
    planted = [
        {"anchor": "내일 " + sentence(0, 0, 0), "positive": "다른 문장이 여기에 있다."},
        {"anchor": "앞에 있는 글.", "positive": f"오늘도 좋다. 내일 {sentence(3, 3, 0)} 그리고 뒤에도 글이 있다."},
    ]
    (tmp_path / "planted.jsonl").write_text("\n".join(map(json.dumps, planted)), "utf-8")
    more = config.model_copy(update={"train": (*config.train, str(tmp_path / "planted.jsonl"))})
    prepared = prepare(more, inputs._replace(find_contaminated=find_contaminated))
    assert prepared.counts["contaminated"]["planted.jsonl"] == 2
    kept = [text for item in prepared.items for text in item.texts]
    assert not find_contaminated([text for part in prepared.sets for text in part.texts], kept)


def test_sources_and_forms_of_the_training_data(config: EmbedConfig, inputs: EmbedInputs, tmp_path: Path) -> None:
    items = read_items(config, inputs.documents, None)
    forms = {(item.source, len(item.texts), item.score is not None) for item in items}
    assert forms == {
        ("documents, rest", 2, False), ("documents, neighbours", 2, False),
        ("triplets.jsonl", 3, False), ("graded.tsv", 2, True),
    }  # fmt: skip
    assert sum(item.source.startswith("documents") for item in items) == 40
    fields = {
        "source": "test",
        "hypothesis": "비가 온다.",
        "gold_label": "entailment",
        "author": "",
        "label2": "",
        "label3": "",
    }
    nli = [{"guid": str(i), "premise": f"{place}에 비가 온다.", **fields} for i, place in enumerate(PLACES)]
    (tmp_path / "klue-nli-v1.1").mkdir()
    (tmp_path / "klue-nli-v1.1" / "klue-nli-v1.1_train.json").write_text(json.dumps(nli), "utf-8")
    sources = {item.source for item in read_items(config, inputs.documents, tmp_path)}
    assert sources == {"klue-nli", "triplets.jsonl", "graded.tsv"}


@pytest.mark.parametrize(("name", "content", "message"), [
    ("a.csv", "left,right\n가,나\n", "columns left, right; expected one of: anchor, positive, negative"),
    ("a.csv", "anchor,positive\n가,\n", "line 2: column 'positive' should hold a text"),
    ("a.tsv", "sentence1\tsentence2\tscore\n가\t나\tx\n", "column 'score' should hold a number"),
    ("a.txt", "가\n", "expected a file named .csv"),
])  # fmt: skip
def test_unusable_files_are_explained(
    config: EmbedConfig, inputs: EmbedInputs, tmp_path: Path, name: str, content: str, message: str, capsys: Any
) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(BadInput) as error:
        prepare(config.model_copy(update={"train": (str(tmp_path / name),)}), inputs)
    assert message in str(error.value)
    checked = run_command(None, "embed", "smoke", f"embed.train={tmp_path / name}", f"--runs={tmp_path}", "--dry-run")
    assert checked.code == 2
    assert message in capsys.readouterr().out.replace("\n", " ")

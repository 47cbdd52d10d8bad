"""Extended runs equal runs that had as many steps from the start; branches begin where another run was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM

from corpus.documents.atomic_files import with_digest
from corpus.documents.errors import BadInput
from pretrain.batching.batches import Batch, TrainingBatches
from pretrain.batching.held_out_split import split_rows
from pretrain.batching.masking import describe_pieces
from pretrain.config import PretrainConfig
from pretrain.pack.store import open_store, read_pieces
from pretrain.run import PretrainInputs
from pretrain.run import run as pretrain
from pretrain.schedule import learning_rate
from tests.pretrain.runs import assert_same_training, rewind_to, steps_saved, train

Tiny = Callable[..., PretrainConfig]
WSD = {"schedule": "wsd", "warmup_steps": 2, "warmup_share": 0, "keep_checkpoints": 9}
PHASES: list[dict] = [{"until": 0.5, "sequence_length": 16, "masked_share": 0.3}, {"masked_share": 0.1}]


def checkpoint(out: Path, step: int) -> Path:
    return out / "checkpoints" / f"step-{step:09}"


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def original(made: Path, tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve steps, the last two at a falling rate; checkpoints after 3, 6, 9 and 12. Read only."""
    out = tmp_path_factory.mktemp("original")
    train(tiny(steps=12, **WSD), made, out)
    return out


def test_a_stable_run_is_extended_and_equals_one_that_was_longer_from_the_start(
    made: Path, original: Path, tiny: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    longer = tiny(steps=20, **WSD)
    train(longer, made, tmp_path / "undisturbed")
    shutil.copytree(original, tmp_path / "extended")
    with pytest.raises(BadInput, match=r"pretrain\.steps: 12 -> 20\), which change step 12; delete the checkp"):
        train(longer, made, tmp_path / "extended")
    assert steps_saved(tmp_path / "extended") == [3, 6, 9, 12]
    rewind_to(tmp_path / "extended", 9)
    train(longer, made, tmp_path / "extended")
    assert "schedule changed; completed steps are unaffected" in caplog.text
    assert_same_training(tmp_path / "undisturbed", tmp_path / "extended")


def test_phases_of_an_extended_run_stay_where_they_were(made: Path, tiny: Tiny, tmp_path: Path) -> None:
    """Twice the steps and half the shares of them: the same phases, of lengths and of masked shares."""
    train(tiny(steps=12, phases=PHASES, **WSD), made, tmp_path / "extended")
    rewind_to(tmp_path / "extended", 9)
    with pytest.raises(BadInput, match="which change step 7;"):
        train(tiny(steps=24, phases=PHASES, **WSD), made, tmp_path / "extended")
    longer = tiny(steps=24, phases=[PHASES[0] | {"until": 0.25}, PHASES[1]], **WSD)
    train(longer, made, tmp_path / "extended")
    train(longer, made, tmp_path / "undisturbed")
    assert_same_training(tmp_path / "undisturbed", tmp_path / "extended")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        (
            {"steps": 20, "schedule": "linear"},
            "which change step 4;.*or start a branch",
        ),
        ({"steps": 8}, r"and 12 steps are already trained; .*continue_from=.*step-000000012"),
        ({"steps": 20, "lr": 1e-3}, r"lr: 0\.005 -> 0\.001, pretrain\.steps: .*; use those, or another output folder"),
    ],
)
def test_other_extensions_are_refused(
    made: Path, original: Path, tiny: Tiny, tmp_path: Path, changes: dict, what: str
) -> None:
    shutil.copytree(original, tmp_path / "out")
    with pytest.raises(BadInput, match=what):
        train(tiny(**{"steps": 12, **WSD, **changes}), made, tmp_path / "out")


def train_slowly(config: PretrainConfig, made: Path, start: Path, first_epoch: int) -> dict[str, torch.Tensor]:
    """The stock model and torch's own AdamW from a checkpoint on, all rows of a step at once."""
    store = open_store(made / "tokens", made / "tokenizer")
    pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
    batches = TrainingBatches(split_rows(store, config), pieces, config, 0, 1, config.global_batch, first_epoch)
    model = AutoModelForMaskedLM.from_pretrained(start / "model", hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    moments = load_file(start / "optimizer.safetensors")
    own = config.optimizer
    optimizer = torch.optim.AdamW(model.parameters(), betas=own.betas, eps=1e-6)
    optimizer.param_groups = [
        optimizer.param_groups[0] | {"params": [p], "weight_decay": own.weight_decay if p.ndim > 1 else 0.0}
        for p in model.parameters()
    ]
    for name, p in model.named_parameters():
        averages = {key: moments[f"{key}/{name}"] for key in ("exp_avg", "exp_avg_sq")}
        optimizer.state[p] = {"step": torch.tensor(6.0), **averages}
    for step in range(1, config.steps + 1):
        batch: Batch = batches.of_step(step)[0]
        labels_BL = torch.full_like(batch.ids_BL, -100).scatter(1, batch.positions_BM, batch.targets_BM)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(config, step)
        optimizer.zero_grad()
        model(batch.ids_BL, labels=labels_BL).loss.backward()
        optimizer.step()
    return dict(model.named_parameters())


def test_a_branch_begins_with_weights_and_optimizer_and_has_steps_rate_and_rows_of_its_own(
    made: Path, original: Path, tiny: Tiny, tmp_path: Path
) -> None:
    before = digests(original)
    start = checkpoint(original, 6)
    config = tiny(steps=5, dropout=0.0, schedule="linear", warmup_share=0, continue_from=str(start))
    result = train(config, made, tmp_path)
    assert digests(original) == before
    origin = json.loads((tmp_path / "origin.json").read_text("utf-8"))
    assert origin["first_epoch"] == int(json.loads((start / "loop.json").read_text("utf-8"))["progress"]["epochs"]) + 1
    slow = train_slowly(config, made, start, origin["first_epoch"])
    for name, weight in load_file(tmp_path / "model" / "model.safetensors").items():
        torch.testing.assert_close(weight, slow[name], rtol=0, atol=2e-6)
    told = result["continued_from"]
    assert (told["step"], told["steps"], told["updates"]) == (6, 12, 6)
    assert told["weights_sha256"] == before["checkpoints/step-000000006/model/model.safetensors"]
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert "| branch of another run | step 6 of 12, sha256 `" in card and str(original) not in card
    first = json.loads((original / "result.json").read_text("utf-8"))["held_out"]
    assert [result["held_out"][key] for key in ("rows", "predictions")] == [
        first[key] for key in ("rows", "predictions")
    ]


def test_a_branch_resumes_bit_for_bit_without_the_original_and_can_be_branched_itself(
    made: Path, original: Path, tiny: Tiny, tmp_path: Path
) -> None:
    shutil.copytree(original, tmp_path / "moving" / "pretrain")
    config = tiny(steps=7, warmup_share=0, keep_checkpoints=3, continue_from=str(tmp_path / "moving"))
    train(config, made, tmp_path / "once")  # of the newest checkpoint, after step 12
    shutil.rmtree(tmp_path / "moving")
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    rewind_to(tmp_path / "twice", 3)
    train(config, made, tmp_path / "twice")
    assert_same_training(tmp_path / "once", tmp_path / "twice")
    result = train(tiny(steps=2, continue_from=str(checkpoint(tmp_path / "once", 3))), made, tmp_path / "third")
    told = json.loads((tmp_path / "once" / "origin.json").read_text("utf-8"))
    assert (told["updates"], result["continued_from"]["updates"]) == (12, 15)
    assert result["continued_from"]["first_epoch"] > told["first_epoch"]
    with pytest.raises(BadInput, match=r"pretrain\.continue_from: .*moving -> None.*; use those, or another output"):
        train(config.model_copy(update={"continue_from": None}), made, tmp_path / "once")


def test_a_branch_sees_other_rows_and_masks_and_holds_out_the_same(made: Path, tiny: Tiny) -> None:
    config = tiny(global_batch=4)
    store = open_store(made / "tokens", made / "tokenizer")
    pieces = describe_pieces(read_pieces(made / "tokenizer"), store.meta["special_ids"])
    split = split_rows(store, config)
    main, branch = (TrainingBatches(split, pieces, config, 0, 1, 4, epoch) for epoch in (0, 3))
    rows = split.training.count(0)
    seen = [name for step in range(1, rows + 1) for name in branch.names_of_step(step)]
    assert seen[:rows] != [f"3:{row}" for row in range(rows)] and sorted(seen[:rows]) == sorted(
        f"3:{row}" for row in range(rows)
    )
    later = 3 * rows // 4 + 1  # of the run itself: the first step that holds rows of its epoch 3 alone
    assert any(name.startswith("3:") for name in main.names_of_step(later + 1))
    assert not any(torch.equal(main.of_step(1)[0].ids_BL[n], branch.of_step(1)[0].ids_BL[n]) for n in range(4))


def test_checkpoints_of_another_model_or_vocabulary_or_damaged_ones_are_refused(
    made: Path, original: Path, tiny: Tiny, tmp_path: Path
) -> None:
    def refuse(start: Path, what: str, tokens: Path = made / "tokens", **changes: object) -> None:
        inputs = PretrainInputs(tokens, made / "tokenizer")
        (tmp_path / "out").mkdir(exist_ok=True)
        with pytest.raises(BadInput, match=rf"pretrain\.continue_from {start}: {what}"):
            pretrain(tiny(continue_from=str(start), **changes), inputs, tmp_path / "out")

    start = checkpoint(original, 6)
    refuse(start, r"pretrain\.model\.layers is 2, but the checkpoint has 1; a branch has the same model", layers=2)
    refuse(start, r"pretrain\.model\.heads is 4, but the checkpoint has 2", heads=4)
    refuse(
        start,
        "it has a model of type roberta, but the recipe has bert; a branch has",
        architecture="bert",
    )
    refuse(start, r"weights roberta\.embeddings\.position_embeddings\.weight are \(66, 16\), but \(50", positions=64)
    refuse(start / "model", "no complete checkpoint there; give the folder of a run.*use pretrain.init_from")
    refuse(tmp_path, "no complete checkpoint there")
    shutil.copytree(original, tmp_path / "damaged")
    for step in (9, 12):
        path = checkpoint(tmp_path / "damaged", step) / "optimizer.safetensors"
        path.write_bytes(path.read_bytes()[:-1])
    refuse(checkpoint(tmp_path / "damaged", 12), "optimizer.safetensors is damaged; give another checkpoint")
    result = train(
        tiny(steps=1, warmup_share=0, continue_from=str(tmp_path / "damaged")), made, tmp_path / "passed over"
    )
    assert result["continued_from"]["step"] == 6
    loop = json.loads((start / "loop.json").read_text("utf-8")) | {"vocabulary_sha256": "0" * 64}
    shutil.copytree(start, tmp_path / "strange")
    (tmp_path / "strange" / "loop.json").write_text(json.dumps(with_digest(loop)), "utf-8")
    refuse(tmp_path / "strange", "trained with another vocabulary than that of the token store; pack with its")


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"architecture": "bert", "nsp": True},
        {"architecture": "modernbert", "layers": 2, "hidden": 32, "dropout": 0.0},
        {"architecture": "gpt", "objective": "causal"},
        {"engine": "deepspeed", "zero_stage": 1},
        {"packing": "documents"},
    ],
    ids=str,
)
def test_models_and_engines_of_every_kind_are_extended_and_branched(
    made: Path, tiny: Tiny, tmp_path: Path, settings: dict
) -> None:
    train(tiny(steps=8, **WSD, **settings), made, tmp_path / "extended")
    rewind_to(tmp_path / "extended", 6)
    for name in ("extended", "undisturbed"):
        train(tiny(steps=16, **WSD, **settings), made, tmp_path / name)
    assert_same_training(tmp_path / "undisturbed", tmp_path / "extended")
    branch = tiny(steps=5, **WSD, **settings, continue_from=str(tmp_path / "extended"))
    train(branch, made, tmp_path / "once")
    shutil.copytree(tmp_path / "once", tmp_path / "twice")
    rewind_to(tmp_path / "twice", 3)
    train(branch, made, tmp_path / "twice")
    assert_same_training(tmp_path / "once", tmp_path / "twice")

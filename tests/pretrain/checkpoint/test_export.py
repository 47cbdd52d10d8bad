"""The exported folder is what transformers loads, and its card says what was measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForPreTraining, AutoTokenizer, pipeline

from corpus.documents.errors import BadInput
from pretrain.checkpoint.export import ExportInputs, save_model
from pretrain.checkpoint.export import run as export
from pretrain.config import PretrainConfig
from pretrain.model.isolation import isolate_documents
from pretrain.model.networks import build_network
from pretrain.pack.store import open_store
from tests.pretrain.conftest import invented_documents, write_tokenizer

SCORES = {"rows": 20, "predictions": 90, "mlm_loss": 2.5, "masked_accuracy": 0.4321}
HELD_OUT = {
    **SCORES,
    "sources": {"수필": {**SCORES, "rows": 15, "mlm_loss": 2.25}, "일기": {"rows": 5, "predictions": 0}},
    "baselines": {"unigram_accuracy": 0.056, "bigram_accuracy": 0.1234},
}


def facts_of(made: Path, **changes: object) -> dict:
    store = open_store(made / "tokens", made / "tokenizer")
    facts = {"step": 5, "tokens": 12_345, "parameters": 678, "vocabulary_sha256": store.meta["tokenizer_sha256"],
             "held_out": HELD_OUT, "sources": store.meta["sources"]}  # fmt: skip
    return facts | changes


def save(made: Path, config: PretrainConfig, folder: Path, **facts: object) -> dict[str, torch.Tensor]:
    """A folder of random weights that are not those the network holds; the weights."""
    meta = open_store(made / "tokens", made / "tokenizer").meta
    network = build_network(config, meta["vocab_size"], meta["special_ids"])
    weights = {name: torch.randn_like(weight) / 9 for name, weight in network.named_parameters()}
    folder.mkdir(parents=True)
    save_model(folder, network, weights, made / "tokenizer", config, facts_of(made, **facts))
    return weights


@pytest.mark.parametrize("settings", [{}, {"architecture": "bert"}, {"architecture": "bert", "nsp": True}])
def test_the_folder_loads_with_the_weights_given(made: Path, tmp_path: Path, tiny, settings: dict) -> None:
    config, out = tiny(**settings), tmp_path / "model"
    weights = save(made, config, out)
    kind = AutoModelForPreTraining if config.model.nsp else AutoModelForMaskedLM
    loaded = dict(kind.from_pretrained(out).named_parameters())
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[name], weights[name]) for name in loaded)
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    assert model.config.pad_token_id == tokenizer.pad_token_id == 1
    assert tokenizer.model_max_length == config.model.positions
    encoder = AutoModel.from_pretrained(out)
    longest = tokenizer("윤슬은 바다에서 노래했다. " * 30, "가람은 별을 보았다.", truncation=True, return_tensors="pt")
    assert encoder(**longest).last_hidden_state.shape == (1, config.model.positions, config.model.hidden)
    assert ("token_type_ids" in longest) == (config.model.architecture == "bert")
    filled = pipeline("fill-mask", str(out), device="cpu")("윤슬은 [MASK]에서 노래했다.", top_k=3)
    assert len(filled) == 3 and filled[0]["score"] >= filled[1]["score"]


def test_weights_are_float32_and_tied_ones_are_written_once(made: Path, tmp_path: Path, tiny) -> None:
    config = tiny()
    meta = open_store(made / "tokens", made / "tokenizer").meta
    network = build_network(config, meta["vocab_size"], meta["special_ids"])
    weights = {name: weight.bfloat16() for name, weight in network.state_dict(keep_vars=True).items()}
    assert {"lm_head.decoder.weight", "lm_head.decoder.bias"} <= weights.keys()
    save_model(tmp_path, network, weights, made / "tokenizer", config, facts_of(made))
    saved = load_file(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in saved.values()} == {torch.float32}
    assert saved.keys() == dict(network.named_parameters()).keys()
    described = json.loads((tmp_path / "config.json").read_text("utf-8"))
    assert (described["dtype"], described["architectures"]) == ("float32", ["RobertaForMaskedLM"])
    assert len({(tmp_path / name).stat().st_mode for name in ("config.json", "model.safetensors")}) == 1
    weights.pop("lm_head.dense.weight")
    with pytest.raises(RuntimeError, match=r"lm_head\.dense\.weight"):
        save_model(tmp_path, network, weights, made / "tokenizer", config, facts_of(made))


def test_our_attention_is_no_part_of_the_folder(made: Path, tmp_path: Path, tiny) -> None:
    meta = open_store(made / "tokens", made / "tokenizer").meta
    config = tiny(packing="documents")
    network = build_network(config, meta["vocab_size"], meta["special_ids"])
    isolate_documents(network)
    save_model(tmp_path, network, dict(network.named_parameters()), made / "tokenizer", config, facts_of(made))
    assert "isolated" not in (tmp_path / "config.json").read_text("utf-8")
    assert AutoModelForMaskedLM.from_pretrained(tmp_path).config._attn_implementation == "sdpa"


def test_a_finished_model_is_copied_whole_and_an_unfinished_one_refused(made: Path, tmp_path: Path, tiny) -> None:
    trained, out = tmp_path / "pretrain", tmp_path / "model"
    inputs = ExportInputs(trained, made / "tokenizer")
    with pytest.raises(BadInput, match="training has not finished"):
        export(tiny(), inputs, out)
    save(made, tiny(), trained / "model")
    (trained / "result.json").write_text(json.dumps(facts_of(made)), "utf-8")
    other = write_tokenizer(tmp_path / "tokenizer", invented_documents(2))
    with pytest.raises(BadInput, match="another vocabulary"):
        export(tiny(), ExportInputs(trained, other), out)
    out.mkdir()
    counts = export(tiny(), inputs, out)
    names = {"README.md", "config.json", "model.safetensors", "vocab.txt", "tokenizer.json", "tokenizer_config.json"}
    assert names <= {path.name for path in out.iterdir()}
    assert all((out / path.name).read_bytes() == path.read_bytes() for path in (trained / "model").iterdir())
    assert counts == {"parameters": 678, "weights_bytes": (out / "model.safetensors").stat().st_size}


def test_a_folder_without_all_weights_is_never_handed_out(made: Path, tmp_path: Path, tiny) -> None:
    trained, out = tmp_path / "pretrain", tmp_path / "model"
    save(made, tiny(), trained / "model")
    (trained / "result.json").write_text(json.dumps(facts_of(made)), "utf-8")
    described = json.loads((trained / "model" / "config.json").read_text("utf-8"))
    (trained / "model" / "config.json").write_text(json.dumps(described | {"num_hidden_layers": 2}), "utf-8")
    out.mkdir()
    with pytest.raises(RuntimeError, match="weights missing"):
        export(tiny(), ExportInputs(trained, made / "tokenizer"), out)


def test_the_card_shows_scores_by_source_with_the_baselines(made: Path, tmp_path: Path, tiny) -> None:
    save(made, tiny(steps=7, phases=[{"until": 0.9, "sequence_length": 8}, {}]), tmp_path / "model", epochs=1.5)
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    _, front, text = card.split("---\n", 2)
    assert yaml.safe_load(front)["pipeline_tag"] == "fill-mask"
    assert "base_model" not in yaml.safe_load(front)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert ["수필", "15", "2.25", "43.21"] in rows
    assert ["일기", "5", "", ""] in rows
    assert ["all", "20", "2.5", "43.21"] in rows
    assert ["steps x sequences", "5 of 7 x 8"] in rows
    assert ["tokens seen", "12,345 (1.5 epochs)"] in rows
    assert ["largest gradient norm", "no limit"] in rows
    assert [row[0] for row in rows if row[0].startswith("steps ")] == [
        "steps x sequences",
        "steps 1 to 6",
        "steps 7 to 7",
    ]
    assert "unigram 5.6 %, bigram 12.3 %" in text
    sources = open_store(made / "tokens", made / "tokenizer").meta["sources"]
    assert ["일기", f"{sources['일기']:,}"] in rows


def test_a_card_before_the_first_measurement_leaves_scores_out(made: Path, tmp_path: Path, tiny) -> None:
    save(made, tiny(), tmp_path / "model", held_out=None, sources=None)
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert "| steps x sequences |" in card and "| steps 1 to" not in card
    assert "Held-out" not in card and "## Data" not in card and "None" not in card


def test_the_card_of_a_tokenizer_in_jamo_says_how_to_join_answers(made: Path, tmp_path: Path, tiny) -> None:
    own = shutil.copytree(made, tmp_path / "made")
    for strips in (False, True):
        settings = {"tokenizer_class": "BertTokenizer", "strip_accents": strips}
        (own / "tokenizer" / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
        save(own, tiny(), tmp_path / f"model-{strips}")
        assert ('normalize("NFC"' in (tmp_path / f"model-{strips}" / "README.md").read_text("utf-8")) == strips


def test_a_continued_model_names_its_start_but_not_its_folder(made: Path, tmp_path: Path, tiny) -> None:
    save(made, tiny(layers=1), tmp_path / "start")
    config = tiny(layers=12, init_from=str(tmp_path / "start"), dropout=0.0)
    save(made, config, tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert "initialized from `start`" in card and str(tmp_path) not in card
    assert "| 1 x 16 x 2 |" in card  # the sizes of the start, not the recipe's
    hub = config.model_copy(update={"init_from": "klue/roberta-base"})
    from pretrain.checkpoint.card import model_card

    network = AutoModelForMaskedLM.from_pretrained(tmp_path / "model").config
    front = model_card(network, hub, facts_of(made)).split("---\n")[1]
    assert yaml.safe_load(front)["base_model"] == "klue/roberta-base"

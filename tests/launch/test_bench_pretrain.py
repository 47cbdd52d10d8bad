"""The pretrain bench: an invented store that trains, equal rows and masks for both sides, one whole run."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from corpus.documents.errors import BadInput
from launch.bench.kernels import kind_of, summarize
from launch.bench.loading import MASKING, OURS, PLAIN, WHOLE_WORDS, as_examples, measure_loading
from launch.bench.pretrain import run_pretrain_bench
from launch.bench.synthetic import SPECIAL_IDS, complete_tokenizer, invent_vocabulary, write_synthetic
from launch.bench.trainers import Given, contest_config, examples_of_run, held_out_losses, watch_lines
from launch.bench.training import Ground, Order, measure_cells
from pretrain.batches import TrainingBatches, mask_batch
from pretrain.config import PretrainConfig
from pretrain.masking import IGNORED, describe_pieces
from pretrain.model import PretrainingModule
from pretrain.networks import build_network
from pretrain.split import split_rows
from pretrain.store import TokenStore, open_store, piece_ids, read_pieces
from pretrain.world import World

VOCABULARY, TOKENS = 400, 30_000
SMALL = {
    "layers": 1, "hidden": 16, "heads": 2, "intermediate": 32, "sequence_length": 32, "positions": 32,
    "global_batch": 4, "micro_batch": 4, "held_out_share": 0.02,
}  # fmt: skip


@pytest.fixture(scope="module")
def invented(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Token store and tokenizer; read only."""
    tokens, tokenizer = write_synthetic(tmp_path_factory.mktemp("invented"), VOCABULARY, TOKENS)
    return tokens, complete_tokenizer(tokenizer)


@pytest.fixture(scope="module")
def store(invented: tuple[Path, Path]) -> TokenStore:
    return open_store(*invented)


@pytest.fixture
def given(invented: tuple[Path, Path], store: TokenStore) -> Given:
    config = contest_config(3, **SMALL)
    pieces = describe_pieces(read_pieces(invented[1]), store.meta["special_ids"])
    return Given(store, pieces, split_rows(store, config), config)


def test_invented_documents_end_with_a_separator_and_have_their_own_sentences(store: TokenStore) -> None:
    ids = piece_ids(store.tokens[:])

    assert len(ids) == pytest.approx(TOKENS, rel=0.15)
    assert (ids[store.documents[1:] - 1] == SPECIAL_IDS["sep"]).all()
    assert set(store.documents[:-1]) < set(store.sentences)
    assert np.flatnonzero(ids < len(SPECIAL_IDS)).tolist() == (store.documents[1:] - 1).tolist()
    assert not set(store.sentences[:-1]) & set(store.documents[1:] - 1)


def test_invented_words_begin_where_the_store_says_and_have_two_pieces(
    invented: tuple[Path, Path], store: TokenStore
) -> None:
    pieces = read_pieces(invented[1])
    begins = store.unit_starts(np.arange(len(store.tokens)), "eojeol")
    ids = piece_ids(store.tokens[:])

    assert begins is not None
    inside = ids >= len(SPECIAL_IDS)
    assert (begins[inside] == [not pieces[i].startswith("##") for i in ids[inside]]).all()
    assert begins[store.sentences[:-1]].all()
    assert inside.sum() / begins.sum() == pytest.approx(2, abs=0.35)


def test_invented_sources_hold_the_tokens_that_the_meta_file_says(store: TokenStore) -> None:
    lengths = np.diff(store.documents)

    for number, name in enumerate(store.source_names):
        assert lengths[store.sources == number].sum() == store.meta["sources"][name] > 0


@pytest.mark.parametrize("size", [11, 400, 32_000])
def test_invented_vocabulary_is_of_the_size_asked_for_without_doubles(size: int) -> None:
    assert len(set(invent_vocabulary(size))) == size


def test_invented_store_is_the_same_every_time(tmp_path: Path, invented: tuple[Path, Path]) -> None:
    again, _ = write_synthetic(tmp_path, VOCABULARY, TOKENS)

    assert (again / "tokens.bin").read_bytes() == (invented[0] / "tokens.bin").read_bytes()


def test_offsets_give_the_collator_the_words_that_we_mask(given: Given) -> None:
    from transformers import DataCollatorForLanguageModeling

    ids_BL = given.split.training.gather(np.zeros(8, np.int64), np.arange(8)).ids_BL
    examples = as_examples(ids_BL, given.pieces, with_offsets=True)
    offsets, special_BL = (np.array([e[name] for e in examples]) for name in ("offset_mapping", "special_tokens_mask"))
    _, is_no_start_BL = DataCollatorForLanguageModeling._calc_word_ids_and_prob_mask(offsets, special_BL)

    starts_BL = ~given.pieces.continues_V[ids_BL] & ~given.pieces.special_V[ids_BL]
    starts_BL[:, 1] = True  # behind [CLS] a word begins, whatever the piece
    assert (~np.asarray(is_no_start_BL) == starts_BL).all()


def test_all_ways_of_loading_predict_the_same_share_but_show_other_things(invented: tuple[Path, Path]) -> None:
    found = measure_loading(*invented, length=64, batches=1, rounds=1)

    rows = found["rows"]
    assert list(rows) == [OURS, MASKING, PLAIN, WHOLE_WORDS]
    assert found["tokens"] == 64 * 64
    assert [row["predicted_share"] for row in rows.values()] == pytest.approx([0.15] * 4, abs=0.03)
    assert [rows[name]["mask_share"] for name in (OURS, PLAIN)] == pytest.approx([0.8] * 2, abs=0.06)
    assert rows[WHOLE_WORDS]["mask_share"] == 1
    assert rows[OURS]["times"] == pytest.approx(rows[OURS]["m_tokens_per_s"] / rows[WHOLE_WORDS]["m_tokens_per_s"])


def test_the_trainer_gets_the_rows_that_ours_trains_on(given: Given) -> None:
    theirs = [example["input_ids"] for example in examples_of_run(given)]
    batches = TrainingBatches(given.split, given.pieces, given.config, 0, 1, 4)
    ours = []
    for step in (1, 2, 3):
        (batch,) = batches.of_step(step)
        rows, slots = torch.nonzero(batch.targets_BM != IGNORED, as_tuple=True)
        batch.ids_BL[rows, batch.positions_BM[rows, slots]] = batch.targets_BM[rows, slots]
        ours += batch.ids_BL.tolist()

    assert theirs == ours


def test_held_out_losses_are_those_of_our_module_and_repeat(invented: tuple[Path, Path], given: Given) -> None:
    network = build_network(given.config, VOCABULARY, SPECIAL_IDS)
    found = held_out_losses(given, network, invented[1])
    rows = np.arange(given.split.held_out.count(0))
    epochs = np.zeros_like(rows)
    batch = mask_batch(given.split.held_out.gather(epochs, rows), epochs, given.pieces, given.config)
    with torch.no_grad():
        sums = PretrainingModule(network.eval())(*batch)

    assert found["whole_words"] == pytest.approx(float(sums.mlm_loss) / batch.predictions, rel=1e-5)
    assert found["single_pieces"] == pytest.approx(found["whole_words"], rel=0.1)  # nothing is learnt yet
    assert held_out_losses(given, network, invented[1]) == found


def test_every_line_of_a_growing_file_gets_its_clock(tmp_path: Path) -> None:
    with watch_lines(tmp_path / "lines") as clocks, (tmp_path / "lines").open("w", encoding="utf-8") as file:
        file.write("a\nb\n")
        file.flush()
        file.write("c\n")

    assert len(clocks) == 3
    assert clocks == sorted(clocks)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>", "attention"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16", "attention"),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN", "matrix products"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "matrix products"),
        ("aten::addmm", "matrix products"),
        ("triton_per_fused_native_dropout_native_layer_norm_3", "fused by the compiler"),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>", "norms"),
        ("void at::native::(anonymous namespace)::fused_dropout_kernel_vec<c10::BFloat16>", "dropout"),
        ("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>", "optimizer"),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 9>", "softmax and loss"),
        ("Memcpy HtoD (Pinned -> Device)", "copies"),
        ("void at::native::vectorized_elementwise_kernel<4, GeluCUDAKernelImpl>", "other element by element"),
        ("something new", "other"),
    ],
)
def test_kernels_are_told_by_their_names(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_shares_of_kernels_add_up_and_the_largest_come_first() -> None:
    found = summarize({"aten::mm": 3e6, "aten::bmm": 1e6, "unheard of": 4e5}, seconds=5.5)

    assert found["busy_share"] == pytest.approx(0.8)
    assert list(found["kinds"]) == ["matrix products", "other"]
    assert sum(found["kinds"].values()) == pytest.approx(1)
    assert [kernel["name"] for kernel in found["kernels"]] == ["aten::mm", "aten::bmm", "unheard of"]


def test_batches_grow_until_memory_is_full_and_the_best_one_is_compiled(
    monkeypatch: pytest.MonkeyPatch, store: TokenStore, tmp_path: Path
) -> None:
    speeds = {2: 20.0, 4: 50.0, 8: 30.0}

    def measured(config: PretrainConfig, ground: Ground) -> dict[str, Any]:
        if config.micro_batch > 8:
            raise torch.OutOfMemoryError("full")
        if config.steps > 10:
            return {"profile": {"of": config.micro_batch}}
        return {"tokens_per_s": speeds[config.micro_batch] + config.compile}

    monkeypatch.setattr("launch.bench.training.measure_cell", measured)
    monkeypatch.setattr("launch.bench.training._forget", lambda device: None)  # collecting garbage takes seconds
    order = Order(
        sizes=("tiny",), packings=("blocks",), compile=(False, True), micro_batches=(2, 4, 8, 16, 32), steps=5,
        profiled_steps=1,
    ).on(torch.device("cpu"))  # fmt: skip
    rows = list(measure_cells(order, Ground(store, [], World(0, 1, torch.device("cpu")), tmp_path)))

    assert [(row["micro_batch"], row["compile"]) for row in rows] == [
        (2, False), (4, False), (8, False), (16, False), (4, True),
    ]  # fmt: skip
    assert rows[3]["failed"] == "out of memory"
    assert rows[-1]["profile"] == {"of": 4}


def test_a_whole_run_measures_every_part_and_leaves_its_files(
    tmp_path: Path,
    invented: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run_here(module: str, order: Any, what: str, environment: Any = None) -> dict[str, Any]:
        found = importlib.import_module(module).carry_out(json.loads(json.dumps(order)))
        return json.loads(json.dumps(found)) | {"peak_mib": 1.0}

    for module in ("loading", "trainers", "training"):
        monkeypatch.setattr(f"launch.bench.{module}.run_fresh", run_here)
    monkeypatch.setattr("launch.bench.pretrain.LOADER_BATCHES", 1)
    monkeypatch.setattr("launch.bench.pretrain.contest_config", lambda steps: contest_config(steps, **SMALL))
    monkeypatch.setattr("launch.bench.training.SIZES", {"tiny": {name: SMALL[name] for name in list(SMALL)[:4]}})
    order = {"length": 32, "micro_batches": [4], "accumulation": 2, "steps": 2, "profiled_steps": 1, "peak_tflops": 1.0}

    results = run_pretrain_bench(*invented, [], 4, 1, torch.get_num_threads(), order, tmp_path / "out")

    shown = capsys.readouterr().out
    for title in ("Loading and masking", "Training beside", "Sizes and modes", "Where the time goes: tiny, documents"):
        assert title in shown
    trainer = results["trainer"]["rows"]
    assert trainer["malmoi"]["curve"]["steps"] == trainer["transformers"]["curve"]["steps"] == [1, 2, 3, 4]
    first_losses = [row["curve"]["losses"][0] for row in trainer.values()]
    assert first_losses[0] == pytest.approx(first_losses[1], abs=0.3)  # the same fresh model
    cells = results["sizes"]["rows"]
    assert [cell["packing"] for cell in cells] == ["blocks", "documents"]
    assert all(cell["tokens_per_s"] > 0 and 0 < cell["mfu"] < 1 for cell in cells)
    assert json.loads((tmp_path / "out" / "bench.json").read_text("utf-8")) == results
    assert "<svg" in (tmp_path / "out" / "losses.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parts": ["speed"]}, "--only speed"),
        ({"tokenizer": None}, "belong together"),
        ({"steps": 1}, "--steps"),
        ({"rounds": 0}, "--rounds"),
        ({"order": {"sizes": ["huge"]}}, "sizes"),
        ({"order": {"length": 4}}, "length"),
    ],
)
def test_unusable_options_are_one_sentence(invented: tuple[Path, Path], changes: dict[str, Any], words: str) -> None:
    usual = {"tokens": invented[0], "tokenizer": invented[1], "parts": [], "steps": 4, "rounds": 1, "threads": 1}
    with pytest.raises(BadInput, match=words):
        run_pretrain_bench(**({**usual, "order": {}, "out": None} | changes))


def test_sizes_can_be_measured_where_little_is_installed() -> None:
    code = (
        "import sys, launch.bench.training\n"
        "missing = {'deepspeed', 'pyarrow', 'tokenizer', 'mecab', 'rank_bm25', 'matplotlib', 'datasets'}\n"
        "sys.exit(', '.join(sorted(missing & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr

"""Segments of a packed row against the stock transformers forward of each segment alone."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from pretrain.batching.batches import Batch, compact_borders
from pretrain.batching.masking import IGNORED
from pretrain.model import isolation
from pretrain.model.isolation import NAME, find_borders, has_kernel, isolate_documents, isolate_pairs
from pretrain.model.loss import PretrainingModule
from pretrain.model.networks import build_network

BERT_IDS = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
ROBERTA_IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
LENGTH, MOST = 48, 7
ROWS = ([20, 9, 3, 16], [5, 31], [48], [13])  # lengths of the segments; the second and the last row are padded
FAMILIES = {
    "bert": ("bert", False, BERT_IDS),
    "roberta": ("roberta", False, ROBERTA_IDS),
    "nsp": ("bert", True, BERT_IDS),
    "modernbert": ("modernbert", False, ROBERTA_IDS),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tensors this small gain nothing from threads, and wait for them on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def packed_batch(
    rows: tuple[list[int], ...], ids: dict[str, int], nsp: bool, seed: int = 1
) -> tuple[Tensor | None, ...]:
    """The fields of a batch with random pieces and two predictions in every segment of more than three tokens."""
    generator = torch.Generator().manual_seed(seed)
    max_segments = max(map(len, ROWS))
    ids_BL = torch.full((len(rows), LENGTH), ids["pad"])
    types_BL = torch.zeros_like(ids_BL)
    lengths_BS = torch.zeros(len(rows), max_segments, dtype=torch.long)
    is_random_BS = torch.full_like(lengths_BS, IGNORED)
    positions_BM = torch.zeros(len(rows), MOST, dtype=torch.long)
    targets_BM = torch.full_like(positions_BM, IGNORED)
    for row, lengths in enumerate(rows):
        begin, slot = 0, 0
        for number, length in enumerate(lengths):
            ids_BL[row, begin : begin + length] = torch.randint(5, 50, (length,), generator=generator)
            types_BL[row, begin + length // 2 : begin + length] = 1
            ids_BL[row, begin], ids_BL[row, begin + length - 1] = ids["cls"], ids["sep"]
            lengths_BS[row, number], is_random_BS[row, number] = length, (row + number) % 2
            for place in (1, length - 2)[: 2 if length > 3 else 0]:
                if slot < MOST:
                    positions_BM[row, slot] = begin + place
                    targets_BM[row, slot] = 5 + (row * 7 + slot) % 45
                    slot += 1
            begin += length
    return ids_BL, positions_BM, targets_BM, types_BL if nsp else None, lengths_BS, is_random_BS if nsp else None


def sums_of_each_alone(network: Any, batch: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    """Both loss sums by stock forwards of one segment at a time, without padding."""
    ids_BL, positions_BM, targets_BM, types_BL, lengths_BS, is_random_BS = batch
    labels_BL = torch.full_like(ids_BL, IGNORED)
    for row, slot in (targets_BM != IGNORED).nonzero().tolist():
        labels_BL[row, positions_BM[row, slot]] = targets_BM[row, slot]
    mlm, nsp = torch.zeros(()), torch.zeros(())
    for row, lengths in enumerate(lengths_BS.tolist()):
        begin = 0
        for number, length in enumerate(filter(None, lengths)):
            inside = slice(begin, begin + length)
            types = None if types_BL is None else types_BL[row : row + 1, inside]
            output = network(ids_BL[row : row + 1, inside], token_type_ids=types)
            scores = output.logits if types is None else output.prediction_logits
            chosen = labels_BL[row, inside] != IGNORED
            mlm = mlm - scores[0, chosen].log_softmax(-1).gather(1, labels_BL[row, inside][chosen][:, None]).sum()
            if types is not None:
                nsp = nsp - output.seq_relationship_logits.log_softmax(-1)[0, is_random_BS[row, number]]
            begin += length
    return mlm, nsp


def gradients(network: PreTrainedModel) -> Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in network.parameters() if parameter.grad is not None])


def two_networks(tiny, family: str, **changes: Any) -> tuple[PreTrainedModel, PreTrainedModel, dict[str, int]]:
    architecture, nsp, ids = FAMILIES[family]
    settings = {"layers": 3, "hidden": 32, "intermediate": 64, "dropout": 0.0} | changes
    config = tiny(architecture=architecture, nsp=nsp, **settings)
    isolated, stock = (build_network(config, 50, ids) for _ in range(2))
    for network in (isolated, stock):  # larger weights than at the start, so that attention is far from uniform
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(4 if parameter.ndim > 1 else 1)
    isolate_documents(isolated)
    stock.set_attn_implementation("sdpa")
    return isolated, stock, ids


@pytest.mark.parametrize("by_mask", [False, True])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_packed_segments_learn_what_each_alone_does(tiny, monkeypatch, family: str, by_mask: bool) -> None:
    """The proof: losses within 1e-5, gradients of all parameters within 1e-6 of their norm."""
    if by_mask:
        monkeypatch.setattr(isolation, "_attend_one_by_one", isolation._attend_by_mask)
    isolated, stock, ids = two_networks(tiny, family)
    batch = packed_batch(ROWS, ids, nsp=family == "nsp")
    sums = PretrainingModule(isolated)(*batch)
    predictions, segments = int((batch[2] != IGNORED).sum()), sum(map(len, ROWS))
    (sums.mlm_loss / predictions + sums.other_loss / segments).backward()
    mlm, nsp = sums_of_each_alone(stock, batch)
    (mlm / predictions + nsp / segments).backward()
    assert sums.mlm_loss.item() / predictions == pytest.approx(mlm.item() / predictions, abs=1e-5)
    assert sums.other_loss.item() / segments == pytest.approx(nsp.item() / segments, abs=1e-5)
    expected = gradients(stock)
    assert (gradients(isolated) - expected).norm() <= 1e-6 * expected.norm()
    for got, one in zip(isolated.parameters(), stock.parameters(), strict=True):
        if one.grad is not None:  # biases of keys have none but rounding
            assert (got.grad - one.grad).norm() <= max(1e-5 * one.grad.norm(), 1e-7 * expected.norm())


def test_the_proof_notices_positions_that_run_through(tiny, monkeypatch) -> None:
    isolated, stock, ids = two_networks(tiny, "roberta")
    monkeypatch.setattr("pretrain.model.loss.first_position", lambda network: 0)
    batch = packed_batch(ROWS, ids, nsp=False)
    assert PretrainingModule(isolated)(*batch).mlm_loss.item() != pytest.approx(
        sums_of_each_alone(stock, batch)[0].item(), rel=1e-3
    )


def test_no_segment_feels_another(tiny) -> None:
    isolated, _, ids = two_networks(tiny, "bert")
    lengths_BS = torch.tensor([[20, 9, 3, 16]])
    ids_BL = packed_batch(ROWS[:1], ids, nsp=False)[0]
    embedded_BLH = isolated.get_input_embeddings()(ids_BL).detach().requires_grad_()
    borders = find_borders(lengths_BS, LENGTH)
    hidden_BLH = isolated.base_model(inputs_embeds=embedded_BLH, position_ids=borders.places_BL, borders=borders)[0]
    hidden_BLH[0, 20:29].sum().backward()
    felt_L = embedded_BLH.grad[0].abs().sum(-1) > 0
    assert felt_L.nonzero().flatten().tolist() == list(range(20, 29))


def test_compact_borders_have_no_empty_segments_but_the_last_and_the_longest_is_rounded_up() -> None:
    generator = torch.Generator().manual_seed(3)
    for _ in range(50):
        lengths_BS = torch.randint(0, 40, (6, 5), generator=generator).sort(dim=1, descending=True).values
        compact_N, longest = compact_borders(lengths_BS, 200)
        every_N = find_borders(lengths_BS, 200).cumulative_N
        sizes, every = compact_N.diff(), every_N.diff()
        count = int((every > 0).sum())
        assert sizes[:count].tolist() == every[every > 0].tolist() and not sizes[count:].any()
        assert compact_N.dtype == torch.int32 and count <= len(sizes) < 2 * count
        assert every.max() <= longest <= min(200, 2 * int(every.max()))


def test_batches_bring_compact_borders_to_a_gpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "to", lambda tensor, device, non_blocking: tensor)
    ids_BL = torch.zeros(2, 10, dtype=torch.long)
    batch = Batch(ids_BL, ids_BL, ids_BL, None, torch.tensor([[4, 5, 0], [2, 2, 6]]))
    moved = batch.to(torch.device("cuda"))
    assert moved.longest == 8 and moved.borders_N.tolist() == [0, 4, 9, 10, 12, 14, 20, 20, 20]
    for other in (batch.to(torch.device("cpu")), batch._replace(lengths_BS=None).to(torch.device("cuda"))):
        assert other.longest is None and other.borders_N is None


def test_borders_of_padded_and_full_rows() -> None:
    borders = find_borders(torch.tensor([[3, 2, 0], [4, 0, 0], [1, 3, 2]]), 6)
    assert borders.cumulative_N.tolist() == [0, 3, 5, 5, 6, 10, 10, 10, 12, 13, 16, 18, 18]
    assert borders.cumulative_N.dtype == torch.int32
    assert borders.segments_BL.tolist() == [[0, 0, 0, 1, 1, 3], [0, 0, 0, 0, 3, 3], [0, 1, 1, 1, 2, 2]]
    assert borders.places_BL.tolist() == [[0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 0, 1], [0, 0, 1, 2, 0, 1]]


@pytest.mark.parametrize("is_compact", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
def test_the_kernel_is_given_all_tokens_and_all_borders(is_causal: bool, is_compact: bool) -> None:
    """A fake that attends from the borders alone gives what the other paths give."""
    given: list[Any] = []

    def fake_kernel(
        query: Tensor, key: Tensor, value: Tensor, *rest: Any, scale: float, window_size: tuple[int, int] = (-1, -1)
    ) -> Tensor:
        assert window_size == ((-1, 0) if is_causal else (-1, -1))
        given.extend(rest)
        attended = []
        for begin, end in zip(rest[0][:-1].tolist(), rest[0][1:].tolist(), strict=True):
            scores = torch.einsum("iad,jad->aij", query[begin:end], key[begin:end]).mul(scale)
            is_later = torch.ones_like(scores, dtype=torch.bool).triu(1)
            share = scores.masked_fill(is_later & (window_size[1] == 0), -torch.inf).softmax(-1)
            attended.append(torch.einsum("aij,jad->iad", share, value[begin:end]))
        return torch.cat(attended)

    generator = torch.Generator().manual_seed(5)
    query, key, value = torch.randn(3, 2, 10, 3, 8, generator=generator).transpose(2, 3)
    heads = (query, key, value)
    lengths_BS = torch.tensor([[4, 5, 0], [2, 2, 6]])
    borders = find_borders(lengths_BS, 10, *(compact_borders(lengths_BS, 10) if is_compact else ()))
    by_kernel = isolation._attend_by_kernel(heads, borders, 0.3, fake_kernel, (-1, 0) if is_causal else None)
    assert given[0] is given[1] is borders.cumulative_N and given[2:] == ([8, 8] if is_compact else [10, 10])
    assert by_kernel.shape == (2, 10, 3, 8)
    for other in (isolation._attend_one_by_one, isolation._attend_by_mask):
        torch.testing.assert_close(other(heads, borders, 0.3, is_causal), by_kernel)


@pytest.mark.parametrize(
    ("device", "dtype", "has_kernel", "compiling", "expected"),
    [
        ("cuda", torch.bfloat16, True, True, "kernel"),
        ("cuda", torch.float16, True, False, "kernel"),
        ("cuda", torch.float32, True, False, "mask"),
        ("cuda", torch.bfloat16, False, False, "mask"),
        ("cpu", torch.bfloat16, True, False, "one by one"),
        ("cpu", torch.float32, False, True, "mask"),
    ],
)
def test_each_device_attends_in_its_own_way(
    monkeypatch, device: str, dtype: torch.dtype, has_kernel: bool, compiling: bool, expected: str
) -> None:
    monkeypatch.setattr(isolation, "_attend_by_kernel", lambda *_: "kernel")
    monkeypatch.setattr(isolation, "_attend_one_by_one", lambda *_: "one by one")
    monkeypatch.setattr(isolation, "_attend_by_mask", lambda *_: "mask")
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiling)
    query: Any = SimpleNamespace(is_cuda=device == "cuda", dtype=dtype, device=SimpleNamespace(type=device))
    kernel: Any = len if has_kernel else None
    borders = find_borders(torch.tensor([[2]]), 2)
    attended, _ = isolation.attend_within_segments(
        torch.nn.Module(), query, query, query, None, kernel=kernel, borders=borders
    )
    assert attended == expected


def test_the_kernel_still_takes_what_it_is_given() -> None:
    """Its signature in the installed torch; it runs on GPUs only."""
    import inspect

    varlen = pytest.importorskip("torch.nn.attention.varlen")
    tensor = torch.zeros(1)
    others = {"scale": 0.5, "window_size": (-1, 0)}
    bound = inspect.signature(varlen.varlen_attn).bind(tensor, tensor, tensor, tensor, tensor, 4, 4, **others)
    assert list(bound.arguments)[3:] == ["cu_seq_q", "cu_seq_k", "max_q", "max_k", "scale", "window_size"]


PADDED = ([40], [31], [48], [13])


def test_padded_pairs_without_a_mask_learn_what_masked_ones_do(tiny) -> None:
    """Losses and gradients by lengths equal those by the mask of the padding."""
    lone, masked, ids = two_networks(tiny, "nsp")
    isolate_pairs(lone)
    batch = [None if field is None else field.clone() for field in packed_batch(PADDED, ids, nsp=True)]
    batch[4:] = [field[:, :1] for field in batch[4:] if field is not None]
    found = []
    for network in (lone, masked):
        sums = PretrainingModule(network)(*Batch(*batch).with_borders())
        (sums.mlm_loss / 8 + sums.other_loss / 4).backward()
        found.append((sums.mlm_loss.item(), sums.other_loss.item(), gradients(network)))
    assert found[0][:2] == pytest.approx(found[1][:2], rel=1e-6)
    assert (found[0][2] - found[1][2]).norm() <= 2e-6 * found[1][2].norm()


def test_only_pairs_have_attention_dropout_and_only_in_the_kernel(monkeypatch) -> None:
    monkeypatch.setattr(isolation, "_attend_by_kernel", lambda *given: given[-1])
    query: Any = SimpleNamespace(is_cuda=True, dtype=torch.bfloat16, device=SimpleNamespace(type="cuda"))
    kernel: Any = len
    heads = (torch.nn.Module(), query, query, query, None)
    borders = find_borders(torch.tensor([[2]]), 2)
    for drops, expected in ((True, 0.1), (False, 0.0)):
        dropout, _ = isolation.attend_within_segments(*heads, kernel=kernel, drops=drops, dropout=0.1, borders=borders)
        assert dropout == expected
    with pytest.raises(AssertionError):
        isolation.attend_within_segments(*heads, kernel=None, drops=True, dropout=0.1, borders=borders)


def test_the_kernel_with_dropout_is_differentiable() -> None:
    """Without a GPU, on tensors without values: the private operation below the public function takes what it gets."""
    heads: Any = tuple(
        torch.empty(2, 4, 64, 32, dtype=torch.bfloat16, device="meta", requires_grad=True) for _ in range(3)
    )
    borders = find_borders(torch.tensor([[40], [64]], device="meta"), 64, torch.empty(5, device="meta"), 64)
    attended = isolation._attend_by_kernel(heads, borders, 0.3, len, None, 0.1)
    assert attended.shape == (2, 64, 4, 32) and attended.dtype == torch.bfloat16
    attended.sum().backward()
    assert all(head.grad.shape == (2, 4, 64, 32) for head in heads)


@pytest.mark.parametrize(
    ("device", "precision", "capability", "expected"),
    [
        ("cuda", "bf16", (8, 0), True), ("cuda", "fp32", (8, 0), False), ("cuda", "fp16", (7, 5), False),
        ("cpu", "bf16", (8, 0), False),
    ],
)  # fmt: skip
def test_the_kernel_needs_half_precision_and_ampere(
    monkeypatch, device: str, precision: str, capability: tuple[int, int], expected: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert has_kernel(torch.device(device), precision) is expected


def test_attention_drops_nothing(tiny) -> None:
    isolated, _, ids = two_networks(tiny, "roberta")
    for layer in isolated.base_model.encoder.layer:
        layer.attention.self.dropout.p = 0.5
    batch = packed_batch(ROWS, ids, nsp=False)
    module = PretrainingModule(isolated).train()
    assert module(*batch).mlm_loss.item() == module(*batch).mlm_loss.item()


def test_recomputed_activations_give_the_same_gradients(tiny) -> None:
    isolated, again, ids = two_networks(tiny, "roberta")
    isolate_documents(again)
    again.gradient_checkpointing_enable()
    batch = packed_batch(ROWS, ids, nsp=False)
    for network in (isolated, again):
        PretrainingModule(network).train()(*batch).mlm_loss.backward()
    torch.testing.assert_close(gradients(again), gradients(isolated), rtol=0, atol=1e-6)


def test_one_graph_serves_every_packing(tiny) -> None:
    """Compiled code is neither broken into parts nor compiled again for other borders."""
    torch._dynamo.reset()  # what other tests compiled counts as well
    isolated, _, ids = two_networks(tiny, "nsp", layers=1)
    module = PretrainingModule(isolated)
    compiled = torch.compile(module, fullgraph=True, dynamic=False, backend="eager")
    with torch._dynamo.config.patch(error_on_recompile=True):
        for rows in (ROWS, ([7, 7, 7, 7], [48], [3, 3], [40, 8])):
            batch = packed_batch(rows, ids, nsp=True)
            for got, expected in zip(compiled(*batch), module(*batch), strict=True):
                assert got.item() == pytest.approx(expected.item(), rel=1e-5)


def test_an_isolated_network_still_masks_padding_and_is_saved_as_any_other(tiny, tmp_path) -> None:
    isolated, stock, ids = two_networks(tiny, "roberta")
    ids_BL = torch.tensor([[0, 7, 8, 9, 2], [0, 9, 2, ids["pad"], ids["pad"]]])
    mask_BL = (ids_BL != ids["pad"]).long()
    got, expected = (network(ids_BL, attention_mask=mask_BL).logits[mask_BL.bool()] for network in (isolated, stock))
    torch.testing.assert_close(got, expected)
    isolated.save_pretrained(tmp_path)
    assert NAME not in (tmp_path / "config.json").read_text("utf-8")
    assert type(isolated).from_pretrained(tmp_path).config._attn_implementation != NAME

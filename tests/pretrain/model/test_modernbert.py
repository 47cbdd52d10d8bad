"""ModernBERT against the stock class of transformers: losses, gradients, local attention, the configuration on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import ModernBertConfig, ModernBertForMaskedLM
from transformers.models.modernbert.modeling_modernbert import ModernBertRotaryEmbedding, apply_rotary_pos_emb

from corpus.documents.errors import BadInput
from pretrain.batching.masking import IGNORED
from pretrain.config import PretrainConfig
from pretrain.model import families, sizes
from pretrain.model.existing_model import check_init_from
from pretrain.model.families import readable_by_older, sizes_of
from pretrain.model.isolation import _attend_by_kernel, attend_nearby, find_borders, isolate_documents
from pretrain.model.loss import PretrainingModule
from pretrain.model.networks import build_network
from pretrain.model.rotary import turned
from tests.pretrain.settings import in_sections

IDS = {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": 4}
LENGTH = 40
SIZES = {"architecture": "modernbert", "layers": 4, "hidden": 32, "intermediate": 24, "dropout": 0.0}


@pytest.fixture
def modern(tiny):
    """A configuration of four layers, the first and last of them global, that see 4 tokens on either side."""
    return lambda **changes: tiny(**SIZES | changes)


def with_large_weights(network: Any) -> Any:
    """Attention is far from uniform."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(4 if parameter.ndim > 1 else 1)
    return network


def stock_of(network: Any) -> Any:
    """The same weights in a model that transformers made, with its plainest attention."""
    stock = ModernBertForMaskedLM(ModernBertConfig.from_dict(network.config.to_dict()))
    stock.load_state_dict(network.state_dict())
    stock.set_attn_implementation("eager")
    return stock


def gradients(network: Any) -> Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in network.parameters()])


def some_batch(seed: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ids, places, targets, and the targets as labels of all positions; one place is unused."""
    generator = torch.Generator().manual_seed(seed)
    ids_BL = torch.randint(5, 50, (3, LENGTH), generator=generator)
    positions_BM = torch.stack([torch.randperm(20, generator=generator)[:6] for _ in range(3)])
    targets_BM = torch.randint(5, 50, positions_BM.shape, generator=generator)
    targets_BM[1, 5] = IGNORED
    return ids_BL, positions_BM, targets_BM, torch.full_like(ids_BL, IGNORED).scatter_(1, positions_BM, targets_BM)


@pytest.mark.parametrize("layers", [1, 3, 4])  # the last is the first as well, local, global
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("isolated", [False, True])
def test_losses_and_gradients_are_those_of_the_stock_model(modern, layers: int, padded: bool, isolated: bool) -> None:
    network = with_large_weights(build_network(modern(layers=layers), 50, IDS))
    stock = stock_of(network)
    if isolated:
        isolate_documents(network)
    ids_BL, positions_BM, targets_BM, labels_BL = some_batch()
    lengths_B1 = torch.tensor([[40], [20], [33]]) if padded else None
    attends_BL = None if lengths_B1 is None else (torch.arange(LENGTH) < lengths_B1).long()
    sums = PretrainingModule(network)(ids_BL, positions_BM, targets_BM, None, lengths_B1)
    (sums.mlm_loss / 17).backward()
    full = stock(ids_BL, attention_mask=attends_BL, labels=labels_BL)
    full.loss.backward()
    assert sums.mlm_loss.item() / 17 == pytest.approx(full.loss.item(), abs=1e-5)
    assert sums.mlm_hits.item() == (full.logits.argmax(-1) == labels_BL).sum().item()
    expected = gradients(stock)
    assert (gradients(network) - expected).norm() <= 1e-6 * expected.norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_heads_turn_to_their_positions_as_in_transformers(modern, dtype: torch.dtype) -> None:
    config = build_network(modern(), 50, IDS).config
    heads_BALD = torch.randn(2, 2, LENGTH, 16, generator=torch.Generator().manual_seed(1)).to(dtype).requires_grad_()
    places_BL = torch.stack([torch.arange(LENGTH), torch.arange(LENGTH) % 11])  # the second row is of several segments
    angles = ModernBertRotaryEmbedding(config)(heads_BALD, places_BL, "full_attention")
    weights = torch.randn(heads_BALD.shape, generator=torch.Generator().manual_seed(2)).to(dtype)
    found, exact_BALD = turned(heads_BALD, *angles), heads_BALD.detach().float().requires_grad_()
    expected = apply_rotary_pos_emb(exact_BALD, exact_BALD, *angles)[0]
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(found, expected.to(dtype))
    torch.testing.assert_close(heads_BALD.grad, exact_BALD.grad.to(dtype))


@pytest.mark.parametrize("length", [7, 24, 25, 40])  # one block and a part, three, one token more, five
@pytest.mark.parametrize("segments", [[[40]], [[11, 9, 1, 4], [25, 15, 0, 0]]])
def test_windows_see_what_is_near_and_in_the_segment(length: int, segments: list[list[int]]) -> None:
    reach, lengths_BS = 8, torch.tensor(segments)
    heads = torch.randn(3, len(segments), 2, length, 4, generator=torch.Generator().manual_seed(1)).requires_grad_()
    segments_BL = find_borders(lengths_BS, LENGTH).segments_BL[:, :length]
    places_L = torch.arange(length)
    is_seen_BLL = (places_L[:, None] - places_L).abs() <= reach
    is_seen_BLL = is_seen_BLL & (segments_BL[:, :, None] == segments_BL[:, None])
    expected = scaled_dot_product_attention(*heads, attn_mask=is_seen_BLL[:, None], scale=0.7).transpose(1, 2)
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(2))
    (expected_gradient,) = torch.autograd.grad((expected * weights).sum(), heads)
    found = attend_nearby(tuple(heads), reach, 0.7, segments_BL if len(segments[0]) > 1 else None)
    (gradient,) = torch.autograd.grad((found * weights).sum(), heads)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradient, expected_gradient)


def test_the_kernel_is_given_the_window_and_whole_rows_where_nothing_borders() -> None:
    given: dict[str, Any] = {}

    def fake_kernel(query: Tensor, key: Tensor, value: Tensor, *rest: Any, **settings: Any) -> Tensor:
        given.update(settings, starts=rest[0].tolist())
        return value

    heads = tuple(torch.randn(3, 2, 3, 10, 8))
    assert torch.equal(_attend_by_kernel(heads, None, 0.3, fake_kernel, (4, 4)), heads[2].transpose(1, 2))
    assert given == {"scale": 0.3, "window_size": (4, 4), "starts": [0, 10, 20]}


def test_weights_start_as_modernbert_does_and_depend_on_the_seed_only(modern) -> None:
    first, torch_state = build_network(modern(), 50, IDS), torch.get_rng_state()
    again, other = build_network(modern(), 50, IDS), build_network(modern(seed=2), 50, IDS)
    assert torch.equal(torch.get_rng_state(), torch_state)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])
        assert weight.ndim < 2 or not torch.equal(weight, other.state_dict()[name])
    layer = first.model.layers[0]
    for matrix, std in ((layer.attn.Wqkv, 0.02), (layer.mlp.Wo, 0.02 / (2 * 4) ** 0.5)):
        assert matrix.weight.std().item() == pytest.approx(std, rel=0.1)
        assert matrix.weight.abs().max() <= 3 * std and matrix.bias is None
    assert first.get_output_embeddings().weight is first.get_input_embeddings().weight


@pytest.mark.parametrize(
    ("sizes", "millions"),
    [
        ({"layers": 22, "hidden": 768, "heads": 12, "intermediate": 1152}, 149),
        ({"layers": 28, "hidden": 1024, "heads": 16, "intermediate": 2624}, 395),
    ],
)
def test_the_published_sizes_have_the_published_parameters(modern, sizes: dict, millions: int) -> None:
    """arXiv 2412.13663, section 2.2; 50,368 pieces."""
    with torch.device("meta"):
        network = build_network(modern(**sizes, positions=8192), 50_368, IDS)
    assert sum(parameter.numel() for parameter in network.parameters()) // 10**6 == millions


def test_half_precision_leaves_the_rotary_rates(modern) -> None:
    """In bf16 the last of 8,192 positions would be turned by another angle altogether."""
    network = build_network(modern(positions=8192), 50, IDS)
    before = dict(network.model.rotary_emb.named_buffers())
    network.to(torch.bfloat16)
    after = dict(network.model.rotary_emb.named_buffers())
    assert all(torch.equal(after[name], before[name]) for name in before) and len(before) == 4
    assert {weight.dtype for weight in network.parameters()} == {torch.bfloat16}


def test_the_configuration_says_the_same_to_transformers_4_and_5(
    modern, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "GLOBAL_EVERY", 2)
    monkeypatch.setattr(families, "ROPE_THETA", 20_000.0)
    config = build_network(modern(layers=5), 50, IDS).config
    readable_by_older(config)
    config.save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text("utf-8"))
    older = ("global_attn_every_n_layers", "local_attention", "global_rope_theta", "local_rope_theta")
    assert [saved[key] for key in older] == [2, 8, 20_000.0, 10_000.0]
    again = ModernBertConfig.from_pretrained(tmp_path)
    assert again.layer_types == [f"{kind}_attention" for kind in ("full", "sliding", "full", "sliding", "full")]
    assert again.rope_parameters["full_attention"]["rope_theta"] == 20_000.0
    ids = [getattr(again, f"{name}_token_id") for name in ("cls", "sep", "bos", "eos", "pad")]
    assert ids == [0, 2, 0, 2, 1] and again.max_position_embeddings == 48


@pytest.mark.parametrize(
    ("has_global_layer", "distance", "is_seen"), [(True, 3000, True), (False, 8, True), (False, 9, False)]
)
def test_only_global_layers_see_a_token_3000_places_away(
    modern, has_global_layer: bool, distance: int, is_seen: bool
) -> None:
    """Local layers, two here, see 4 tokens on either side each."""
    network = with_large_weights(build_network(modern(layers=2, positions=4096), 50, IDS)).eval()
    if not has_global_layer:
        network.model.layers[0].attn.sliding_window = network.model.layers[1].attn.sliding_window
    ids_BL = torch.randint(5, 50, (1, 4096), generator=torch.Generator().manual_seed(1)).repeat(2, 1)
    ids_BL[:, 500], ids_BL[:, 500 + distance] = IDS["mask"], torch.tensor([7, 8])
    with torch.no_grad():
        one_V, other_V = (network(ids_L[None]).logits[0, 500] for ids_L in ids_BL)
    assert torch.equal(one_V, other_V) != is_seen


@pytest.mark.parametrize("bare", [False, True])
def test_a_checkpoint_is_loaded_and_its_context_extended(
    modern, tmp_path: Path, bare: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "GLOBAL_EVERY", 2)
    start = build_network(modern(positions=64), 50, IDS)
    (start.model if bare else start).save_pretrained(tmp_path)
    fields = {"architecture": "modernbert", "init_from": str(tmp_path), "dropout": 0.2, "sequence_length": 64}
    plain = PretrainConfig.model_validate(in_sections(fields))
    network = build_network(plain, 50, IDS)
    after = dict(network.named_parameters())
    assert all(torch.equal(after[n], w) for n, w in start.named_parameters() if n.startswith("model.") or not bare)
    assert {module.p for module in network.modules() if isinstance(module, torch.nn.Dropout)} >= {0.2}
    counted = plain.replaced("model", **sizes_of(network.config)).model
    assert (counted.layers, counted.positions) == (4, 64) and network.config.layer_types == start.config.layer_types
    with pytest.raises(BadInput, match="at most 64 tokens"):
        check_init_from(plain.replaced("rows", sequence_length=65))
    longer = PretrainConfig.model_validate(in_sections(fields | {"positions": 256, "sequence_length": 256}))
    stretched = build_network(longer, 50, IDS)
    assert stretched.config.max_position_embeddings == 256
    assert torch.equal(
        stretched.model.rotary_emb.full_attention_inv_freq,
        build_network(modern(positions=256), 50, IDS).model.rotary_emb.full_attention_inv_freq,
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"position_init": "sinusoidal"}, "position_init is for learned positions"),
        ({"nsp": True}, "no other has a sentence-pair head"),
        ({"hidden": 30, "heads": 6}, "hidden 30 / heads 6 must be even"),
    ],
)
def test_settings_that_do_nothing_are_refused(modern, changes: dict, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        modern(**changes)

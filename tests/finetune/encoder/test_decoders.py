"""Decoders in place of encoders: special tokens around texts, attention, and the effect of adapters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, LlamaConfig, PreTrainedTokenizerFast

from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig, Lora
from finetune.encoder.loading import Encoder, name_roles, wrap_texts
from finetune.examples import Example
from finetune.heads.labels import StateLabeller
from finetune.heads.lora import add_lora
from finetune.queue.jobs import deciding
from finetune.registry import TASKS
from finetune.tasks.re.markers import MARKERS
from tests.finetune.encoder.test_kinds import DECODERS, KINDS, SIZES, end_alone, gemma_like, llama_like
from tests.finetune.tasks.dp.test_task import raws_of as trees_of
from tests.finetune.tasks.mrc.perfect_spans import make_example
from tests.finetune.tasks.mrc.perfect_spans import raws_of as spans_of
from tests.finetune.tasks.ner.test_published import example_of
from tests.finetune.tasks.wos.test_values import spoken, survivors

TOKENIZERS = pytest.mark.parametrize("make", [end_alone, llama_like, gemma_like])


def ready(make: Callable[[], PreTrainedTokenizerFast]) -> PreTrainedTokenizerFast:
    """As ``load_tokenizer`` leaves it."""
    tokenizer = make()
    assert name_roles(tokenizer) == []
    wrap_texts(tokenizer)
    tokenizer.add_tokens(list(MARKERS), special_tokens=True)
    return tokenizer


def build(name: str, **changes: Any) -> Encoder:
    torch.manual_seed(1)
    kind = KINDS[name]
    settings = {**SIZES, "vocab_size": 40, "num_hidden_layers": 2, **kind.fields, "initializer_range": 0.5, **changes}
    settings |= dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0)
    return Encoder(AutoModel.from_config(kind.config(**settings))).eval()


@TOKENIZERS
def test_a_text_and_a_pair_are_between_beginning_and_end(make: Any) -> None:
    tokenizer = ready(make)
    first, last = tokenizer.bos_token or tokenizer.eos_token, tokenizer.eos_token
    one, two = tokenizer("비", "눈"), tokenizer("비")
    assert tokenizer.decode(two["input_ids"]) == f"{first}비{last}"
    assert tokenizer.decode(one["input_ids"]) == f"{first}비{last}눈{last}"
    assert {tokenizer.padding_side, tokenizer.truncation_side} == {"right"}
    wrap_texts(tokenizer)
    assert tokenizer("비") == two


def test_a_tokenizer_that_drops_what_it_does_not_know_is_refused() -> None:
    tokenizer = gemma_like()
    assert name_roles(tokenizer) == []
    tokenizer.unk_token = None
    tokenizer.backend_tokenizer.model.byte_fallback = False
    tokenizer.backend_tokenizer.model.unk_token = None
    assert name_roles(tokenizer) == ["unk_token"]


@TOKENIZERS
def test_tags_trees_answers_and_values_come_back(make: Any) -> None:
    tokenizer = ready(make)
    sentence = example_of("김하늘은 서울까지 뷁을 보았다🙂", "Ppp.Ll..Gg....")
    features = TASKS["klue-ner"].featurize([sentence], tokenizer, 510, False)
    scores = [np.eye(13)[[max(tag, -1) % 13 for tag in feature["tags"]]] for feature in features]
    assert TASKS["klue-ner"].decode([sentence], features, scores)[0].value == sentence.gold
    gold = {"heads": [3, 3, 0], "types": ["NP_SBJ", "NP_OBJ", "VP"]}
    tree = Example("0", gold, {"words": ["민지는", "서울에서", "걸었다."], "pos": ["JX", "JKB", "SF"]})
    features = TASKS["klue-dp"].featurize([tree], tokenizer, 510, False)
    assert TASKS["klue-dp"].decode([tree], features, list(trees_of(features)))[0].value == gold
    for answer in ("서울", "민지", "1987년에", "부산에서 태어나"):
        question = make_example("민지 는 1987년에 부산에서 태어나 서울 로 이사했다.", answer)
        features = TASKS["klue-mrc"].featurize([question], tokenizer, 510, False)
        assert TASKS["klue-mrc"].decode([question], features, list(spans_of(features)))[0].value == answer
    turns = spoken([["숙소-지역-서울"], ["식당-예약 시간-18:30"]], ("", "서울로 18:30 예약"), {"서울": ""})
    assert survivors(turns, tokenizer) == [turn.gold for turn in turns]


@TOKENIZERS
def test_markers_are_whole_and_the_text_between_them_is_as_it_was(make: Any) -> None:
    tokenizer = ready(make)
    inputs = {"sentence": "민지는 서울에서 산다", "subject": (0, 2), "object": (4, 6)}
    (feature,) = TASKS["klue-re"].featurize([Example("0", None, inputs)], tokenizer, 64, False)
    text = "<subj>민지</subj>는 <obj>서울</obj>에서 산다"
    assert tokenizer.decode(feature["input_ids"][1:-1]).replace("> ", ">").replace(" <", "<") == text.replace(" <", "<")


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("padding", [0, 3])
def test_a_position_does_not_see_what_is_to_its_right(name: str, padding: int) -> None:
    encoder = build(name)
    ids = torch.tensor([[3, 4, 5, 6, 7, last] + [0] * padding for last in (8, 9)])
    mask = torch.tensor([[1] * 6 + [0] * padding] * 2)
    with torch.inference_mode():
        states = encoder.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    changes = (states[0] - states[1]).abs().amax(dim=-1) > 1e-5  # by more than rows of a batch round apart
    assert changes[:6].tolist() == [False] * 5 + [True]


def test_a_decoder_that_was_trained_to_read_both_ways_is_refused() -> None:
    config = LlamaConfig(**SIZES, vocab_size=40, num_key_value_heads=1, is_causal=False)
    with pytest.raises(BadInput, match="attention in both directions, which was removed"):
        Encoder(AutoModel.from_config(config))


def test_state_0_of_a_decoder_is_that_of_the_last_token() -> None:
    encoder = build("llama")
    ids, mask = torch.tensor([[3, 8, 4, 0, 0], [3, 7, 7, 9, 4]]), torch.tensor([[1, 1, 1, 0, 0], [1] * 5])
    with torch.inference_mode():
        states = encoder.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        read = encoder(ids, mask).last_hidden_state
    assert torch.allclose(read[:, 0], torch.stack([states[0, 2], states[1, 4]]), atol=1e-6)
    assert torch.equal(read[:, 1:], states[:, 1:])


def adapted(added: list[int]) -> tuple[StateLabeller, Any, dict[str, torch.Tensor]]:
    """A head that was trained a little, its adapters, and its weights before."""
    torch.manual_seed(1)
    encoder = Encoder(AutoModel.from_config(LlamaConfig(**SIZES, vocab_size=40, num_key_value_heads=1)))
    model = StateLabeller(encoder, "label", 3)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    adapters = add_lora(model, Lora(rank=2), added)
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], 1e-2)
    ids = torch.tensor([[3, 8, 38, 4], [3, 7, 39, 4]])
    for _ in range(3):
        model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=torch.tensor([0, 2]))["loss"].backward()
        optimizer.step()
    return model.eval(), adapters, before


def test_adapters_are_merged_into_their_weights_and_nothing_else_is_trained() -> None:
    model, adapters, before = adapted([38, 39])
    batch = {"input_ids": torch.tensor([[3, 9, 38, 8, 4]]), "attention_mask": torch.ones(1, 5, dtype=torch.int64)}
    expected = model.predict(**batch)[0]
    adapters.merge_and_unload()
    assert np.allclose(model.predict(**batch)[0], expected, atol=1e-6)
    after = dict(model.named_parameters())
    assert after.keys() == before.keys()
    changed = {name.rpartition("layers.0.")[2] for name in before if not torch.equal(after[name], before[name])}
    embeddings = "encoder.encoder.embed_tokens.weight"
    linear = [f"self_attn.{name}_proj.weight" for name in "qkvo"] + [
        f"mlp.{n}_proj.weight" for n in ("gate", "up", "down")
    ]
    assert changed == {*linear, "outputs.weight", "outputs.bias", embeddings}
    assert (after[embeddings] != before[embeddings]).any(dim=1).nonzero()[:, 0].tolist() == [38, 39]


def test_adapters_decide_a_result_and_their_absence_is_not_recorded() -> None:
    plain, lora = (deciding("ynat", FinetuneConfig(lora=asked), "fp32", {}) for asked in (None, Lora()))
    assert plain == {}
    assert lora == {"lora": {"rank": 16, "alpha": 32}}
    assert FinetuneConfig(settings={"lora": {"lora": {"rank": 4}}}).with_settings("lora").lora == Lora(rank=4)

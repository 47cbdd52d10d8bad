"""The dialogue state generator against a straightforward one: every slot its own row, every word its own score."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
    DebertaV2Config,
    DebertaV2Model,
    ElectraConfig,
    ElectraModel,
    ModernBertConfig,
    ModernBertModel,
    RobertaConfig,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

import finetune.heads.dialogue as dialogue
from finetune.encoder.loading import Encoder
from finetune.examples import IGNORED
from finetune.heads.dialogue import Design, StateGenerator

WORDS, END, SPELLS = 40, 3, 2
SLOTS = {"식당-이름": [5, 6], "식당-지역": [5, 7, 8, 0], "택시-종류": [9]}
SIZES = {
    "vocab_size": WORDS,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "initializer_range": 0.3,
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
PUBLISHED = Design(starts_pooled=True, gate_sees_state=False, is_scaled=False, teacher_forcing=0.5, max_steps=5)
OURS = Design(max_steps=5)


def build(design: Design, kind=BertModel, **changes) -> StateGenerator:
    torch.manual_seed(1)
    config = {
        BertModel: BertConfig,
        RobertaModel: RobertaConfig,
        XLMRobertaModel: XLMRobertaConfig,
        ElectraModel: ElectraConfig,
        DebertaV2Model: DebertaV2Config,
        ModernBertModel: ModernBertConfig,
    }[kind]
    if kind is ModernBertModel:
        changes |= {"bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
    encoder = Encoder(kind(config(**{**SIZES, **changes})))
    return StateGenerator(encoder, SLOTS, gates=5, spell_gate=SPELLS, ends=[END], spell=list, design=design).eval()


def make_batch(turns: int = 4, length: int = 9, steps: int = 4) -> dict[str, torch.Tensor]:
    """Turns of falling length; a value for slots 2 and 0, of which some are shorter and some are not to be spelt."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(5, WORDS, (turns, length), generator=generator)
    mask = torch.ones_like(ids)
    targets = torch.randint(5, WORDS, (turns, 2, steps), generator=generator)
    for row in range(turns):
        mask[row, length - row :] = ids[row, length - row :] = 0
        targets[row, 0, steps - row % 2 :] = IGNORED
    targets[1, 1] = IGNORED
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "gates": torch.randint(0, 5, (turns, 3), generator=generator),
        "slots": torch.tensor([[2, 0]] * turns),
        "targets": targets,
    }


def straightforward(
    model: StateGenerator, batch: dict[str, torch.Tensor], is_published: bool, is_taught: bool
) -> torch.Tensor:
    """Loss from states repeated for each slot and the whole (rows, steps, words) distribution."""
    output = model.encoder(batch["input_ids"], batch["attention_mask"])
    states, table = output.last_hidden_state, model.encoder.encoder.get_input_embeddings().weight
    norm, query = (lambda x: x, lambda x: x) if is_published else (model.norm, lambda x: model.query(x) / 32**0.5)
    slots = torch.stack([norm(table[pieces].sum(0)) for pieces in SLOTS.values()])
    hidden = (output.pooler_output if is_published else states[:, 0])[None]

    def look(hidden, states, mask):
        attention = ((states @ query(hidden)[:, :, None])[:, :, 0]).masked_fill(mask == 0, -1e9).softmax(-1)
        return attention, (attention[:, :, None] * states).sum(1)

    loss = []
    for slot in range(3):
        after = model.decoder(slots[slot].expand(len(states), 1, -1), hidden)[1]
        seen = [look(after[0], states, batch["attention_mask"])[1]]
        seen = seen if is_published else [after[0], *seen]
        loss.append(torch.nn.functional.cross_entropy(model.gate(torch.cat(seen, -1)), batch["gates"][:, slot]))
    wanted = batch["targets"].shape[1]
    repeated, ids, mask = (
        values.repeat_interleave(wanted, 0) for values in (states, batch["input_ids"], batch["attention_mask"])
    )
    hidden, given = hidden.repeat_interleave(wanted, 1), slots[batch["slots"].flatten()]
    targets, words = batch["targets"].flatten(0, 1), []
    for step in range(targets.shape[1]):
        hidden = model.decoder(given[:, None], hidden)[1]
        attention, context = look(hidden[0], repeated, mask)
        share = model.generate(torch.cat([hidden[0], context, given], -1)).sigmoid()
        p = share * (hidden[0] @ table.T).softmax(-1)
        p = p.scatter_add(1, ids, (1 - share) * attention)
        words.append(-p.gather(1, targets[:, step, None].clamp(min=0))[:, 0].log())
        given = norm(table[targets[:, step].clamp(min=0) if is_taught else p.argmax(-1)])
    real = targets != IGNORED
    return torch.stack(loss).mean() + torch.stack(words, 1)[real].mean()


@pytest.mark.parametrize(("design", "is_taught"), [(OURS, True), (PUBLISHED, True), (PUBLISHED, False)])
@pytest.mark.parametrize("scores_at_once", [1 << 24, 3 * WORDS])
def test_loss_and_gradients_equal_the_straightforward_ones(monkeypatch, design, is_taught, scores_at_once):
    monkeypatch.setattr(dialogue, "SCORES_AT_ONCE", scores_at_once)
    model, batch = build(design, **NO_DROPOUT), make_batch()
    model.end_ids = torch.arange(WORDS)  # whatever is written, training writes on
    slow = straightforward(model, batch, design is PUBLISHED, is_taught)
    slow.backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    model.design = design._replace(teacher_forcing=float(is_taught))
    fast = model.train()(**batch)["loss"]
    fast.backward()
    torch.testing.assert_close(fast, slow, atol=1e-5, rtol=1e-6)
    torch.testing.assert_close([p.grad for p in model.parameters() if p.grad is not None], gradients,
                               atol=1e-5, rtol=1e-4)  # fmt: skip


def test_half_of_the_published_batches_are_taught_by_seed():
    model, batch = build(PUBLISHED, **NO_DROPOUT).train(), make_batch()
    torch.manual_seed(4)
    losses = [round(model(**batch)["loss"].item(), 4) for _ in range(40)]
    torch.manual_seed(4)
    assert losses == [round(model(**batch)["loss"].item(), 4) for _ in range(40)]
    assert len(set(losses)) == 2
    assert 10 < losses.count(losses[0]) < 30


def said(raw: dict[str, Any]) -> tuple[Any, Any]:
    """Gates and values; scores differ by rounding."""
    return raw["gates"], raw["values"]


@pytest.mark.parametrize("design", [OURS, PUBLISHED])
@pytest.mark.parametrize("kind", [BertModel, RobertaModel])
def test_gates_and_values_depend_on_neither_batch_mates_nor_padding(design, kind):
    model, batch = build(design, kind), make_batch()
    model.gate.bias.data[SPELLS] += 5.0  # some values are spelt
    order = torch.tensor([2, 0, 3, 1])
    longer = {
        name: torch.nn.functional.pad(values[order], (0, 7)) if values.shape[1] == 9 else values[order]
        for name, values in batch.items()
    }
    slots = model.embed_slots()
    gates, again = (model.score_gates(model.encode(b), slots) for b in (batch, longer))
    torch.testing.assert_close(again, gates[order], atol=1e-5, rtol=0)
    raws, others = model.predict(**batch), model.predict(**longer)
    assert [said(raws[i]) for i in order] == list(map(said, others))
    assert any(raw["values"] for raw in raws)


def spell_slowly(model: StateGenerator, ids: torch.Tensor, mask: torch.Tensor, slot: list[int], end: int) -> list[int]:
    """One value of one turn, word by word until the end, from the formulas of the paper."""
    table = model.encoder.encoder.get_input_embeddings().weight
    states = model.encoder(ids[None], mask[None]).last_hidden_state[0]
    hidden, given, value = states[0], model.norm(table[slot].sum(0)), []
    while len(value) < model.design.max_steps:
        hidden = model.decoder(given[None, None], hidden[None, None])[1][0, 0]
        attention = (states @ model.query(hidden) / 32**0.5).masked_fill(mask == 0, -torch.inf).softmax(0)
        share = model.generate(torch.cat([hidden, attention @ states, given])).sigmoid()
        p = share * (table @ hidden).softmax(0)
        for word, weight in zip(ids, (1 - share) * attention, strict=True):
            p[word] += weight
        if (word := int(p.argmax())) == end:
            break
        value.append(word)
        given = model.norm(table[word])
    return value


@pytest.mark.parametrize("end", [END, 15, 28, 36])
@pytest.mark.parametrize("scores_at_once", [1 << 24, 1])
@torch.no_grad()
def test_values_are_those_written_one_by_one_and_stay_ended(monkeypatch, end, scores_at_once):
    monkeypatch.setattr(dialogue, "SCORES_AT_ONCE", scores_at_once)
    model, batch = build(Design(max_steps=8)), make_batch()
    for weight in model.decoder.parameters():
        weight *= 4  # or one word would be repeated for ever
    model.gate.weight.zero_()
    model.gate.bias[SPELLS] = 1.0  # every slot is spelt
    model.ends, model.end_ids = {end}, torch.tensor([end])
    turns = list(zip(batch["input_ids"], batch["attention_mask"], strict=True))
    slow = [[spell_slowly(model, *turn, slot, end) for slot in SLOTS.values()] for turn in turns]
    assert [list(raw["values"].values()) for raw in model.predict(**batch)] == slow
    lengths = {len(value) for row in slow for value in row}
    assert lengths == {8} if end == END else min(lengths) < 5 and max(lengths) == 8  # some end, some do not


@pytest.mark.parametrize("kind", [XLMRobertaModel, ElectraModel, DebertaV2Model, ModernBertModel])
@pytest.mark.parametrize("design", [OURS, PUBLISHED])
def test_every_layout_of_encoder_trains_and_predicts(kind, design):
    model, batch = build(design, kind, **({"embedding_size": 16} if kind is ElectraModel else {})), make_batch()
    sums = torch.stack([model.embeddings[pieces].sum(0) for pieces in SLOTS.values()])
    sums = sums if model.widen is None else model.widen(sums)
    torch.testing.assert_close(model.embed_slots(), sums if model.norm is None else model.norm(sums))
    loss = model.train()(**batch)["loss"]
    loss.backward()
    assert torch.isfinite(loss)
    assert all(p.grad is not None for p in (model.embeddings, model.generate.weight, model.gate.weight))
    assert (model.widen is None) == (kind is not ElectraModel)
    assert len(model.eval().predict(**batch)) == 4
    assert set(model.state_dict()) == set(dict(model.named_parameters()))  # what can be rebuilt is not saved


@torch.no_grad()
def test_an_encoder_without_dropout_trains_without():
    model, batch = build(OURS, ModernBertModel), make_batch()
    assert model.eval()(**batch)["loss"] == model.train()(**batch)["loss"]


@torch.no_grad()
def test_a_value_that_does_not_end_is_cut_at_64_tokens():
    model = build(Design())
    model.gate.weight.zero_()
    model.gate.bias[SPELLS] = 1.0  # every slot is spelt
    model.ends, model.end_ids = {WORDS}, torch.tensor([WORDS])  # which no word is
    (raw,) = model.predict(**{name: values[:1] for name, values in make_batch().items()})
    assert [len(value) for value in raw["values"].values()] == [64] * 3


def test_a_batch_without_values_has_a_loss_and_predictions():
    model, batch = build(OURS), make_batch()
    batch["targets"][:] = IGNORED
    assert 0 < model(**batch)["loss"].item() < 10
    model.gate.weight.data.zero_()
    model.gate.bias.data[0] = 1.0  # no slot is spelt
    assert list(map(said, model.predict(**batch))) == [([0, 0, 0], {})] * 4


@pytest.mark.parametrize("design", [OURS, PUBLISHED._replace(teacher_forcing=0.0)])
def test_half_precision_changes_the_loss_little_and_predicts(design):
    model, batch = build(design, **NO_DROPOUT), make_batch()
    model.gate.bias.data[SPELLS] += 5.0  # some values are spelt
    with torch.no_grad():
        whole = model(**batch)["loss"].item()
    with torch.autocast("cpu", torch.bfloat16):
        half = model(**batch)["loss"]
        half.backward()
        model.train()(**batch)["loss"].backward()
        assert len(model.eval().predict(**batch)) == 4
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(whole, rel=0.05)


def gradients_of_the_gates(model: StateGenerator, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Largest gradient of the gates' loss at each position's state, (L,)."""
    turns = model.encode(batch)
    states = turns.states_BLH.detach().requires_grad_()
    turns = turns._replace(states_BLH=states, start_BH=turns.start_BH.detach())
    scores = model.score_gates(turns, model.embed_slots())
    torch.nn.functional.cross_entropy(scores.flatten(0, 1), batch["gates"].flatten()).backward()
    return states.grad.abs().amax(dim=(0, 2))


@pytest.mark.parametrize("width", [384, 768])
def test_gates_learn_from_every_position_at_the_widths_of_real_encoders(width):
    sizes = {"hidden_size": width, "num_attention_heads": 6, "initializer_range": 0.02, "max_position_embeddings": 130}
    batch = make_batch(length=120)
    of_cls, *of_others = gradients_of_the_gates(build(OURS, RobertaModel, **sizes), batch)
    assert min(of_others[:100]) > 0.01 * of_cls > 0  # the last ones are padding of some turns
    assert max(of_others) > 0.1 * of_cls
    bare = gradients_of_the_gates(build(OURS._replace(is_scaled=False), RobertaModel, **sizes), batch)
    assert max(bare[1:]) < 1e-4 * bare[0]  # what the scale is for


@torch.no_grad()
def test_every_slot_is_heard_at_the_widths_of_real_encoders():
    sizes = {"hidden_size": 384, "num_attention_heads": 6, "initializer_range": 0.02}
    spread = []
    for is_scaled in (True, False):
        model = build(OURS._replace(is_scaled=is_scaled), RobertaModel, **sizes)
        turns, slots = model.encode(make_batch()), model.embed_slots()
        hidden = model.run_decoder(slots.expand(4, -1, -1)[:, :, None], turns.start_BH[:, None].expand(4, 3, -1))
        spread.append(float(hidden[:, :, 0].std(dim=1).mean() / hidden.std()))
    assert spread[0] > 0.2 > 0.02 > spread[1]

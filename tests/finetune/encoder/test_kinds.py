"""Every kind of encoder under every task: it learns, predicts, takes its longest input, and hears no padding."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, Unigram, WordPiece
from transformers import (
    AlbertConfig,
    AutoModel,
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    EuroBertConfig,
    Gemma2Config,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    ModernBertConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
    RobertaConfig,
    XLMRobertaConfig,
)

from finetune.encoder.loading import (
    check_encoder,
    has_segments,
    load_config,
    load_encoder,
    load_tokenizer,
    max_input_tokens,
)
from finetune.examples import Example, Feature
from finetune.registry import TASKS
from finetune.task import Task
from finetune.train.batched_prediction import predict, to_tensors

NER_LINES = [f"{character}\t{tag}" for character, tag in zip("서울에 비", ("B-LC", "I-LC", "O", "O", "O"), strict=True)]
DP_LINES = ["1\t비가\t비 가\tNNG+JKS\t2\tNP_SBJ", "2\t온다\t오 ㄴ다\tVV+EF\t0\tVP"]
ENTITIES = {
    "subject_entity": {"word": "한빛사", "start_idx": 0, "end_idx": 2, "type": "ORG"},
    "object_entity": {"word": "서울", "start_idx": 5, "end_idx": 6, "type": "LOC"},
}
RECORDS: dict[str, Any] = {
    "ynat": {"guid": "y", "title": "서울에 비", "label": "사회"},
    "klue-sts": {"guid": "s", "sentence1": "비가 온다", "sentence2": "비다", "labels": {"real-label": 3.5}},
    "klue-nli": {"guid": "n", "premise": "비가 온다", "hypothesis": "안 온다", "gold_label": "contradiction"},
    "klue-re": {"guid": "r", "sentence": "한빛사는 서울에 있다", "label": "org:place_of_headquarters", **ENTITIES},
    "wos": {
        "guid": "w",
        "dialogue": [{"role": "user", "text": "서울 식당", "state": ["식당-지역-서울"]}],
    },
}
QUESTION = {
    "guid": "m", "question": "어디에 비?", "is_impossible": False, "answers": [{"text": "서울", "answer_start": 0}],
    "question_type": 1,
}  # fmt: skip


def read_example(task: str, folder: Path) -> Example:
    """One invented example of a task, read from a file in the official layout."""
    path = folder / Path(TASKS[task].files.dev).name
    if task == "klue-ner":
        text = "## ner-1\t<서울:LC>에 비\n" + "\n".join(NER_LINES) + "\n\n"
    elif task == "klue-dp":
        text = "## dp-1\t비가 온다\n" + "\n".join(DP_LINES) + "\n\n"
    elif task == "klue-mrc":
        text = json.dumps({"data": [{"paragraphs": [{"context": "서울에 비가 온다", "qas": [QUESTION]}]}]})
    else:
        text = json.dumps([RECORDS[task]])
    path.write_text(text, "utf-8")
    return TASKS[task].read(path)[0]


class Kind(NamedTuple):
    """How an encoder of one kind is made: configuration class, its own fields, tokenizer, and its longest input."""

    config: type[PreTrainedConfig]
    fields: dict[str, Any]
    tokenizer: Callable[[], PreTrainedTokenizerFast]
    longest: int


CHARACTERS = sorted(set("서울에비가온다안한빛사는있식당어디지역관광경치좋은이름?0123456789"))
BERT_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
PAIR = "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"


def wrap(tokenizer: Tokenizer, pair: str, cls: str, sep: str, pad: str, unk: str) -> PreTrainedTokenizerFast:
    ids = [(token, tokenizer.token_to_id(token)) for token in (cls, sep)]
    tokenizer.post_processor = processors.TemplateProcessing(f"{cls}:0 $A:0 {sep}:0", pair, ids)
    roles = {"cls_token": cls, "sep_token": sep, "pad_token": pad, "unk_token": unk}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles)


def wordpiece() -> PreTrainedTokenizerFast:
    pieces = [*BERT_TOKENS, *CHARACTERS, *(f"##{character}" for character in CHARACTERS)]
    tokenizer = Tokenizer(WordPiece({piece: id_ for id_, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    return wrap(tokenizer, PAIR, "[CLS]", "[SEP]", "[PAD]", "[UNK]")


def unigram(specials: tuple[str, ...], *roles: str) -> PreTrainedTokenizerFast:
    """SentencePiece-like: a word begins with "▁"."""
    pieces = [*specials, "▁", *CHARACTERS, *(f"▁{character}" for character in CHARACTERS)]
    unknown = next(id_ for id_, piece in enumerate(pieces) if "unk" in piece.lower())
    tokenizer = Tokenizer(Unigram([(piece, -1.0 - id_ / 100) for id_, piece in enumerate(pieces)], unk_id=unknown))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    tokenizer.add_special_tokens(list(specials))
    return wrap(tokenizer, *roles)


def xlm_r() -> PreTrainedTokenizerFast:
    return unigram(ROBERTA_TOKENS, "<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0", "<s>", "</s>", "<pad>", "<unk>")


def deberta() -> PreTrainedTokenizerFast:
    return unigram(BERT_TOKENS, PAIR, "[CLS]", "[SEP]", "[PAD]", "[UNK]")


def byte_level() -> PreTrainedTokenizerFast:
    pieces = [*BERT_TOKENS, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(BPE({piece: id_ for id_, piece in enumerate(pieces)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(BERT_TOKENS))
    return wrap(tokenizer, PAIR.replace("$B:1 [SEP]:1", "$B:0 [SEP]:0"), "[CLS]", "[SEP]", "[PAD]", "[UNK]")


def bytes_with(*specials: str, template: str = "", **roles: str) -> PreTrainedTokenizerFast:
    """Byte-level BPE of a decoder, "울에" in one piece; ``template`` wraps a text, and one text of a pair."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges, whole = [], ""
    for byte in pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str("울에")[0][0]:
        merges += [(whole, byte)] if whole else []
        whole += byte
    pieces = [*specials, *alphabet, *("".join(merge) for merge in merges)]
    tokenizer = Tokenizer(BPE({piece: id_ for id_, piece in enumerate(pieces)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(specials))
    trim = processors.ByteLevel(trim_offsets=True)
    ids = [(token, tokenizer.token_to_id(token)) for token in specials]
    pair = f"{template} {template.replace('$A', '$B')}"
    tokenizer.post_processor = (
        processors.Sequence([trim, processors.TemplateProcessing(template, pair, ids)]) if template else trim
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles)


def end_alone() -> PreTrainedTokenizerFast:
    """As GPT-2, Qwen and GPT-NeoX: one token, and nothing is put around a text."""
    return bytes_with("<|endoftext|>", eos_token="<|endoftext|>")


def llama_like() -> PreTrainedTokenizerFast:
    """A beginning is put before a text, an end is only named; no padding."""
    return bytes_with("<|begin|>", "<|end|>", template="<|begin|> $A", bos_token="<|begin|>", eos_token="<|end|>")


def eurobert_like() -> PreTrainedTokenizerFast:
    roles = {"bos_token": "<|begin|>", "eos_token": "<|end|>", "pad_token": "<|pad|>"}
    return bytes_with(*roles.values(), template="<|begin|> $A <|end|>", **roles)


def gemma_like() -> PreTrainedTokenizerFast:
    """BPE that writes a space as "▁" and an unknown character as bytes; mmBERT has it, too."""
    specials = ("<pad>", "<eos>", "<bos>", "<unk>")
    pieces = [*specials, *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *CHARACTERS]
    model = BPE({piece: id_ for id_, piece in enumerate(pieces)}, [], unk_token="<unk>", byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(list(specials))
    template = processors.TemplateProcessing("<bos> $A", "<bos> $A <bos> $B", [("<bos>", 2)])
    tokenizer.post_processor = template
    roles = {"pad_token": "<pad>", "eos_token": "<eos>", "bos_token": "<bos>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles)


SIZES = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
    "max_position_embeddings": 128,
}  # fmt: skip
DEBERTA = {
    "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False, "position_buckets": 16,
    "share_att_key": True, "norm_rel_ebd": "layer_norm",
}  # fmt: skip
MODERN = {"bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3, "pad_token_id": 0}
DISTILLED = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
KINDS = {
    "bert": Kind(BertConfig, {}, wordpiece, 128),
    "bert-style roberta": Kind(RobertaConfig, {"type_vocab_size": 1, "pad_token_id": 0}, wordpiece, 127),
    "xlm-r": Kind(XLMRobertaConfig, {"type_vocab_size": 1, "pad_token_id": 1}, xlm_r, 126),
    "electra": Kind(ElectraConfig, {"embedding_size": 8}, wordpiece, 128),
    "deberta-v2": Kind(DebertaV2Config, DEBERTA, deberta, 128),
    "modernbert": Kind(ModernBertConfig, MODERN, byte_level, 128),
    "albert": Kind(AlbertConfig, {"embedding_size": 8}, wordpiece, 128),
    "distilbert": Kind(DistilBertConfig, DISTILLED, wordpiece, 128),
    "eurobert": Kind(EuroBertConfig, {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}, eurobert_like, 128),
    "mmbert": Kind(ModernBertConfig, {**MODERN, "bos_token_id": 2, "eos_token_id": 1}, gemma_like, 128),
    "causal bert": Kind(BertConfig, {"is_decoder": True}, wordpiece, 128),
    "gpt2": Kind(GPT2Config, {}, end_alone, 128),
    "gpt-neox": Kind(GPTNeoXConfig, {}, end_alone, 128),
    "qwen3": Kind(Qwen3Config, {"num_key_value_heads": 1, "head_dim": 8}, end_alone, 128),
    "llama": Kind(LlamaConfig, {"num_key_value_heads": 1}, llama_like, 128),
    "gemma2": Kind(Gemma2Config, {"num_key_value_heads": 1, "head_dim": 8, "sliding_window": 8}, gemma_like, 128),
}
LIKE_OTHERS = {"causal bert", "gpt-neox", "qwen3", "gemma2"}  # another kind has the same tokenizer
DECODERS = ("causal bert", "gpt2", "gpt-neox", "qwen3", "llama", "gemma2")


@pytest.fixture
def folder_of(tmp_path: Path) -> Callable[[str], str]:
    """Name of a kind to a folder with random weights."""

    def build(name: str) -> str:
        kind, tokenizer = KINDS[name], KINDS[name].tokenizer()
        torch.manual_seed(1)
        model = AutoModel.from_config(kind.config(**{**SIZES, "vocab_size": len(tokenizer), **kind.fields}))
        folder = tmp_path / name.replace(" ", "-")
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return str(folder)

    return build


def two_losses(task: Task, model: torch.nn.Module, features: list[Feature], pad_id: int) -> list[float]:
    """The loss before and after a step; a loop of the Trainer would be the same for every kind."""
    optimizer, losses = torch.optim.SGD(model.parameters(), 1e-3), []
    for _ in range(2):
        loss = model(**to_tensors(task.collate(features, pad_id)))["loss"]
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.matrix] * (name in LIKE_OTHERS)) for name in KINDS]
)
def test_every_task_learns_and_predicts_with_every_kind_of_encoder(name: str, folder_of, tmp_path: Path) -> None:
    folder = folder_of(name)
    check_encoder(folder)
    for task in TASKS.values():
        tokenizer = load_tokenizer(folder, task.special_tokens)
        pad_id, examples = int(tokenizer.pad_token_id), [read_example(task.name, tmp_path)] * 2
        features = task.featurize(examples, tokenizer, 64, True)
        model = task.model(folder, tokenizer).eval()
        before, after = two_losses(task, model, features, pad_id)
        assert after < before, task.name
        raws = predict(task, model, features, pad_id)
        assert len(task.decode(examples, features, raws)) == 2, task.name


@pytest.mark.parametrize("name", KINDS)
def test_the_longest_input_that_is_allowed_runs(name: str, folder_of) -> None:
    folder = folder_of(name)
    longest = max_input_tokens(load_config(folder))
    assert longest == KINDS[name].longest
    ids = torch.full((1, longest), 7)
    assert load_encoder(folder)(ids, torch.ones_like(ids)).last_hidden_state.shape == (1, longest, 16)


@pytest.mark.parametrize("name", KINDS)
def test_neither_the_batch_nor_longer_padding_changes_a_state(name: str, folder_of) -> None:
    encoder = load_encoder(folder_of(name)).eval()
    pad_id = int(encoder.config.pad_token_id or 0)
    rows = [[2, 7, 9, 11, 3], [2, 8, 3], [2, 12, 7, 7, 9, 8, 3]]

    def states(rows: list[list[int]], width: int) -> list[torch.Tensor]:
        ids = torch.tensor([row + [pad_id] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        with torch.inference_mode():
            found = encoder(ids, mask).last_hidden_state
        return [state[: len(row)] for state, row in zip(found, rows, strict=True)]

    permuted = states(rows[::-1], 40)[::-1]
    for row, state, other in zip(rows, states(rows, 7), permuted, strict=True):
        assert torch.allclose(state, other, atol=1e-5)
        assert torch.allclose(state, states([row], len(row))[0], atol=1e-5)


def test_only_encoders_with_segments_get_segment_ids(folder_of) -> None:
    assert has_segments(BertConfig())
    assert has_segments(ElectraConfig())
    assert not has_segments(RobertaConfig(type_vocab_size=1))
    assert not has_segments(DebertaV2Config())
    ids, types = torch.tensor([[2, 7, 3, 8, 3]]), torch.tensor([[0, 0, 0, 1, 1]])
    for name, hears_segments in (("bert", True), ("bert-style roberta", False), ("modernbert", False)):
        encoder = load_encoder(folder_of(name)).eval()
        states = [encoder(ids, torch.ones_like(ids), x).last_hidden_state for x in (types, 0 * types)]
        assert torch.equal(*states) != hears_segments


def test_a_pair_has_the_layout_of_its_tokenizer(folder_of) -> None:
    pair = load_tokenizer(folder_of("xlm-r"))("비", "눈")
    assert [ROBERTA_TOKENS[i] for i in pair["input_ids"] if i < 3] == ["<s>", "</s>", "</s>", "</s>"]

"""Loading encoders (BERT, RoBERTa, XLM-R, ELECTRA, DeBERTa, ModernBERT …) and decoders (GPT-2, Llama, Qwen, Gemma …),
their tokenizers and their limits; the encoder as a torch module, and networks as ONNX.

Weights are read from safetensors only, as float32; code in a model folder is never executed. Segment ids are passed on
only if the encoder has segments: a RoBERTa has one segment type and would fail on the second. Other model types, and
models without weights, are refused: random weights would give plausible but wrong scores.

Heads read what a text says from state 0: that of [CLS], which in a decoder has seen nothing, so there it is replaced by
the state of the last token. Legend: ``B`` texts, ``L`` positions, ``H`` hidden.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from tokenizers import processors
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    BertTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES

from corpus.documents import model_files
from corpus.documents.errors import BadInput
from finetune.config import FRESH, MODEL_INFO_NAME
from finetune.data.files import in_one_sentence

# These count positions from the padding id plus one, so they hold fewer tokens than positions.
_POSITIONS_AFTER_PADDING = {
    "roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "longformer", "data2vec-text",
    "roberta-prelayernorm", "xmod",
}  # fmt: skip
_ENCODER_KINDS = frozenset(MODEL_FOR_MASKED_LM_MAPPING_NAMES)  # what fills masks reads in both directions
_DECODER_KINDS = frozenset(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) - _ENCODER_KINDS - {"xlnet"}  # whose [CLS] comes last
_JAMO = re.compile("[\u1100-\u1112][\u1161-\u1175]")  # a syllable in NFD
_ROLES = ("pad_token", "cls_token", "sep_token")
_NO_WEIGHTS = "its weights cannot be loaded", "; give a whole checkpoint"
_RARE = "\ue000"  # in no vocabulary
# of offset_sentences: words, and what is between two of them
_WORDS = ("가람이", "서울에서", "KLUE", "BERT는", "3월", "12000원", "값", "한국어", "AI", "새봄")
_BETWEEN = (
    " ", "  ", ", ", ". ", "? ", "! ", "·", "-", "~", "/", " (", "(", ") ", ' "', "'", "“", "…", "😀", " 👩‍💻 ", " 🇰🇷",
)  # fmt: skip
_WORD, _LETTERS = re.compile(r"\w+"), re.compile("[가-힣A-Za-z]+")
_MADE_FRESH = ("pooler", "position_ids")  # parts of an encoder that a checkpoint may lack
ONNX_NAME = "model.onnx"  # in a folder that `malmoi model export` wrote


def check_encoder(name: str) -> None:
    """Check configuration, tokenizer and file names, so that a long run does not fail late. ``BadInput`` if it is no
    encoder, or its tokenizer or weights cannot be used."""
    config, tokenizer = load_config(name), load_tokenizer(name)
    _refuse_other_padding(name, config, tokenizer)
    check_offsets(name, tokenizer)
    if len(tokenizer) > int(config.vocab_size):
        raise BadInput(
            f"{name}: its tokenizer has {len(tokenizer):,} pieces, but config.json {config.vocab_size:,} embeddings; "
            "give the tokenizer that the model was trained with"
        )
    if not name.startswith(FRESH) and Path(name).is_dir():
        model_files.check_model_files(Path(name), name)


def offset_sentences() -> list[str]:
    """200 short sentences of Hangul, Latin, digits, punctuation and emoji, every word before and after every mark."""
    pairs = [(first, mark) for first in range(len(_WORDS)) for mark in range(len(_BETWEEN))]
    return [f"{_WORDS[n]}{_BETWEEN[m]}{_WORDS[(n + m + 1) % len(_WORDS)]}." for n, m in pairs]


def check_offsets(name: str, tokenizer: PreTrainedTokenizerBase) -> None:
    """Round trip of character offsets: tokens must cover each word, and a token of letters has its own letters in the
    text. Otherwise answers and entities lose characters: ``BadInput`` with the first word."""
    texts, backend, wrong = offset_sentences(), tokenizer.backend_tokenizer, []
    for text, encoding in zip(texts, backend.encode_batch(texts, add_special_tokens=False), strict=True):
        covered = {place for span in encoding.offsets for place in range(*span)}
        pairs = [(w[0], "".join(text[n] for n in range(*w.span()) if n in covered)) for w in _WORD.finditer(text)]
        tokens = [(backend.decode([id_]).strip().removeprefix("##"), text[slice(*span)].strip())
                  for id_, span in zip(encoding.ids, encoding.offsets, strict=True)]  # fmt: skip
        pairs += [pair for pair in tokens if all(map(_LETTERS.fullmatch, pair))]
        wrong += [(text, *pair) for pair in pairs if pair[0].casefold() != pair[1].casefold()][:1]
    if wrong:
        text, word, back = wrong[0]
        raise BadInput(
            f"{name}: wrong character offsets of its tokenizer in {len(wrong)} of {len(texts)} sentences; {word!r} in "
            f'{text!r} comes back as {back!r}; correct its tokenizer.json, for example "trim_offsets": false'
        )


def load_config(name: str) -> PreTrainedConfig:
    """The configuration of an encoder folder or Hub name; ``BadInput`` if there is none, or the model is no encoder."""
    name = name.removeprefix(FRESH)
    if Path(name).is_dir():
        model_files.refuse_links(Path(name), name)
    if Path(name).exists():
        model_files.check_sizes(Path(name), name)
    elif name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise BadInput(f"{name}: no such folder; give the folder of a model, or its name on the Hub")
    with in_one_sentence(name, "not an encoder that transformers can load"):
        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
    kind = config.model_type
    if config.is_encoder_decoder or not (kind in _ENCODER_KINDS or reads_one_way(config)):
        raise BadInput(
            f"{name}: a model of type {kind!r} is not an encoder; give a BERT, RoBERTa, ELECTRA or the like, or a "
            "decoder of text such as GPT-2, Llama, Qwen or Gemma"
        )
    return config


def reads_one_way(config: PreTrainedConfig) -> bool:
    """Whether the model is a text decoder with a causal mask; a BERT or RoBERTa can be one too."""
    if config.model_type in _ENCODER_KINDS:
        return bool(getattr(config, "is_decoder", False))
    return config.model_type in _DECODER_KINDS and config.get_text_config() is config


def load_tokenizer(name: str, special_tokens: Sequence[str] = ()) -> PreTrainedTokenizerBase:
    """The fast tokenizer of an encoder with ``special_tokens`` added; ``BadInput`` if there is none, it gives no
    character offsets, or it lacks a special token that inputs need."""
    name = name.removeprefix(FRESH)
    tokenizer = _read_vocabulary(Path(name)) if name.endswith(".txt") else _read_tokenizer(name)
    if not tokenizer.is_fast:
        raise BadInput(f"{name}: no character offsets: save a fast tokenizer (tokenizer.json) in this folder")
    if missing := name_roles(tokenizer):
        raise BadInput(f"{name}: its tokenizer has no {', '.join(missing)}; name them in its tokenizer_config.json")
    wrap_texts(tokenizer)
    if special_tokens:
        tokenizer.add_tokens(list(special_tokens), special_tokens=True)
    return tokenizer


def _read_tokenizer(name: str) -> PreTrainedTokenizerBase:
    if Path(name).is_dir():
        model_files.refuse_links(Path(name), name)
    with in_one_sentence(name, "no tokenizer that transformers can load"):
        return AutoTokenizer.from_pretrained(name, trust_remote_code=False)


def _read_vocabulary(path: Path) -> PreTrainedTokenizerBase:
    """Cased WordPiece over the entries of a ``vocab.txt``, as in klue/bert-base."""
    if not path.is_file():
        raise BadInput(f"{path}: no such file; give a vocab.txt or the folder of a tokenizer")
    if _JAMO.search(path.read_text("utf-8", "ignore")):
        raise BadInput(f"{path}: its pieces are in NFD and need the other tokenizer files; give the folder")
    with in_one_sentence(str(path), "not one piece a line in UTF-8", "; give a vocab.txt"):
        return BertTokenizer(vocab=str(path), do_lower_case=False, strip_accents=False)


def name_roles(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Use the begin and end tokens for missing roles (pad, cls, sep); returns the roles without any token."""
    end = tokenizer.eos_token
    for role, token in zip(_ROLES, (end, tokenizer.bos_token or end, end), strict=True):
        if getattr(tokenizer, role) is None and token is not None:
            setattr(tokenizer, role, token)
    missing = [role for role in _ROLES if getattr(tokenizer, role) is None]
    drops = tokenizer.unk_token is None and not tokenizer.backend_tokenizer.encode(_RARE, add_special_tokens=False).ids
    return [*missing, "unk_token"] if drops else missing


def wrap_texts(tokenizer: PreTrainedTokenizerBase) -> None:
    """Put special tokens around texts if the tokenizer has no [CLS] and [SEP]; truncate and pad on the right.

    ```
    BERT            [CLS] A [SEP]    [CLS] A [SEP] B [SEP]
    bos and eos     <bos> A <eos>    <bos> A <eos> B <eos>
    eos only        <eos> A <eos>    <eos> A <eos> B <eos>
    ```
    Padding is masked, so the end token can be the padding token: no head reads it.
    """
    if not _wraps(tokenizer):
        backend, (first, last) = tokenizer.backend_tokenizer, (tokenizer.cls_token, tokenizer.sep_token)
        vocabulary = tokenizer.get_vocab()
        ids = [(token, vocabulary[token]) for token in dict.fromkeys((first, last))]
        single = [first, "$A", last]
        template = processors.TemplateProcessing(single=single, pair=[*single, "$B", last], special_tokens=ids)
        state = json.loads(backend.to_str())
        cutter, before = json.dumps(state["pre_tokenizer"]), json.dumps(state["post_processor"])
        # takes the space off a token's offsets, except where the tokenizer adds spaces of its own and says not to
        trims = '"add_prefix_space": true' not in cutter or '"trim_offsets": false' not in before
        trimmed = processors.Sequence([processors.ByteLevel(trim_offsets=trims), template])
        backend.post_processor = trimmed if "ByteLevel" in before else template
    for side in ("padding_side", "truncation_side"):
        setattr(tokenizer, side, "right")


def _wraps(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether there is a special token before, after and between texts."""
    text = "가 a"
    one, two = (tokenizer(*texts).sequence_ids() for texts in ((text,), (text, text)))
    return 1 in two and all(side is None for side in (one[0], one[-1], two[0], two[-1], two[two.index(1) - 1]))


def load_pretrained(kind: Any, name: str, tokenizer: PreTrainedTokenizerBase | None = None, **settings: Any) -> Any:
    """``kind.from_pretrained`` (an Auto class) under the rules above. Missing heads are initialized randomly without a
    warning; the head of a saved model is replaced. With prefix ``FRESH`` all weights are random. The embeddings are
    enlarged if ``tokenizer`` has more tokens (markers of a task)."""
    config = load_config(name)
    if tokenizer is not None:
        _refuse_other_padding(name, config, tokenizer)
    if name.startswith(FRESH):
        with in_one_sentence(name, *_NO_WEIGHTS):
            config.update(settings)
            model = kind.from_config(config, dtype=torch.float32)
    else:
        model = read_weights(kind, name, **settings)
        if (Path(name) / MODEL_INFO_NAME).is_file():  # its head is another task's, also where its size would fit
            for part in model.children():
                if part is not model.base_model is not model:
                    draw_again(part, model)
    if tokenizer is not None and len(tokenizer) > model.get_input_embeddings().num_embeddings:
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    return model


@torch.no_grad()
def draw_again(part: nn.Module, model: Any) -> None:
    """Initialize a part of a transformers model randomly, in place, as its architecture does."""
    for weight in part.parameters():
        vars(weight)["_is_hf_initialized"] = False  # what was loaded would be spared
    part.apply(model._init_weights)


def read_weights(kind: Any, name: str, *, is_whole: bool = False, **settings: Any) -> Any:
    """``kind.from_pretrained`` of safetensors only; ``BadInput`` if weights of the encoder are missing, or any weight
    with ``is_whole``."""
    if Path(name).is_dir():
        model_files.check_model_files(Path(name), name)
    elif index := _index_on_hub(name):
        model_files.check_weight_index(index, name)
    with in_one_sentence(name, *_NO_WEIGHTS), model_files.quiet_transformers():
        model, loading_info = kind.from_pretrained(
            name, dtype=torch.float32, use_safetensors=True, trust_remote_code=False, output_loading_info=True,
            ignore_mismatched_sizes=True, **settings,
        )  # fmt: skip
    _refuse_random_weights(name, model, loading_info, is_whole)
    return model


def _index_on_hub(name: str) -> Path | None:
    """The weight index of a Hub model; None if it has none or the Hub cannot be reached (loading reports that)."""
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(name, model_files.INDEX_NAME))
    except Exception:  # the Hub's client raises many kinds
        return None


def _refuse_other_padding(name: str, config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> None:
    """These encoders give the padding id no position; with another padding id a text token would get none."""
    if config.model_type in _POSITIONS_AFTER_PADDING and config.pad_token_id != tokenizer.pad_token_id:
        raise BadInput(
            f"{name}: pad_token_id is {config.pad_token_id} in config.json, but the tokenizer pads with "
            f"{tokenizer.pad_token_id}; correct the one that is wrong"
        )


def _refuse_random_weights(name: str, model: Any, loading_info: Mapping[str, Any], is_whole: bool) -> None:
    """A head may be missing unless the model ``is_whole``; weights of the encoder may not."""
    keys = [*loading_info["missing_keys"], *(entry[0] for entry in loading_info["mismatched_keys"])]
    inside = f"{model.base_model_prefix}." if model.base_model is not model else ""
    absent = [key for key in sorted(keys) if key.startswith(inside) and not any(part in key for part in _MADE_FRESH)]
    if absent := sorted(keys) if is_whole else absent:
        part = "model" if is_whole else "encoder"
        raise BadInput(
            f"{name}: {len(absent)} weights of the {part} are missing or of another size, the first is {absent[0]}; "
            "config.json and model.safetensors do not belong together"
        )


def has_segments(config: PreTrainedConfig) -> bool:
    """Whether the encoder takes segment ids 0 and 1."""
    return int(getattr(config, "type_vocab_size", 0) or 0) > 1


def max_input_tokens(config: PreTrainedConfig) -> int | None:
    """Maximum input length in tokens; None without a limit. With relative or rotary positions: the configured
    length."""
    positions = int(getattr(config, "max_position_embeddings", None) or 0)
    unused = int(config.pad_token_id or 0) + 1 if config.model_type in _POSITIONS_AFTER_PADDING else 0
    return positions - unused if positions > 0 else None


class Encoder(nn.Module):
    """An encoder that ignores ``token_type_ids`` where it has no segments; the output has ``last_hidden_state``."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        config: Any = encoder.config
        self.config = config
        self.is_decoder = reads_one_way(config)
        if self.is_decoder and not getattr(config, "is_causal", True):
            raise BadInput("a decoder with attention in both directions, which was removed; train it again")

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Any:
        """Token ids, mask and segments, each (B, L), padding on the right, to the encoder's own output."""
        more: dict[str, Any] = {"token_type_ids": token_type_ids} if has_segments(self.config) else {}
        if not self.is_decoder:
            return self.encoder(input_ids=input_ids, attention_mask=attention_mask, **more)
        output = self.encoder(input_ids=input_ids, attention_mask=attention_mask, use_cache=False, **more)
        states_BLH = output.last_hidden_state
        row_B = torch.arange(len(states_BLH), device=states_BLH.device)
        last_BH = states_BLH[row_B, attention_mask.sum(dim=1) - 1]
        output.last_hidden_state = torch.cat([last_BH[:, None], states_BLH[:, 1:]], dim=1)
        return output


def load_encoder(name: str, tokenizer: PreTrainedTokenizerBase | None = None) -> Encoder:
    """The encoder alone, without a task's head."""
    return Encoder(load_pretrained(AutoModel, name, tokenizer))


def find_encoder(model: nn.Module) -> Any:
    """The encoder inside a task's model, without the head."""
    return next(part for part in model.modules() if isinstance(part, PreTrainedModel)).base_model


class OnnxNetwork(nn.Module):
    """The graph in ``path``, on as many threads as torch uses; ``config``: of the model that it is of.

    ``BadInput``: onnxruntime is missing, or the file is no graph.
    """

    def __init__(self, path: Path, config: Any) -> None:
        super().__init__()
        try:
            import onnxruntime
        except ImportError:
            raise BadInput(f"{path}: needs onnxruntime; run: pip install 'malmoi[onnx]'") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        try:
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the classes of onnxruntime derive from Exception alone
            raise BadInput(f"{path}: cannot be read ({str(error)[:100]}); export the model again") from None
        self.config = config
        self.device = nn.Parameter(torch.empty(0))  # predictions ask a parameter where the model is

    def run(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The one output; inputs that the graph does not have are left out, and missing segment ids are 0."""
        wanted = [value.name for value in self.session.get_inputs()]
        zeros_BL = torch.zeros_like(inputs["input_ids"])
        (output,) = self.session.run(None, {name: inputs.get(name, zeros_BL).numpy() for name in wanted})
        return torch.from_numpy(output)

    def forward(self, **inputs: Tensor) -> SimpleNamespace:
        """The one output as ``logits``."""
        return SimpleNamespace(logits=self.run(inputs))

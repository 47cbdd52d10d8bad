"""KLUE-DP: dependency parsing of eojeols (KLUE paper 3.6, 5.1).

A word's vector is its first and its last sub-word and its last part-of-speech tag. Decoding finds the best tree among
those that Korean allows here: projective, every head to the right, one root, as all 2,000 sentences of dev are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from finetune.config import BadInput
from finetune.files import read_blocks
from finetune.heads.tree import best_right_headed_tree
from finetune.metrics.dp import DP_LABELS, score
from finetune.padding import IGNORED, pad_inputs, pad_rows
from finetune.task import Example, Feature, Files, Hyperparameters, Prediction, Task

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerBase

# Sejong tags; the root and a tag that is not among them (spreadsheets left "#NAME?" in some rows) have their own ids.
POS_TAGS = (
    "NNG", "NNP", "NNB", "NP", "NR", "VV", "VA", "VX", "VCP", "VCN", "MMA", "MMD", "MMN", "MAG", "MAJ", "IC", "JKS",
    "JKC", "JKG", "JKO", "JKB", "JKV", "JKQ", "JX", "JC", "EP", "EF", "EC", "ETN", "ETM", "XPN", "XSN", "XSV", "XSA",
    "XR", "SF", "SP", "SS", "SE", "SO", "SL", "SH", "SW", "SN", "NA",
)  # fmt: skip
POS_IDS = {tag: number for number, tag in enumerate(POS_TAGS)}
ROOT_POS, UNKNOWN_POS = len(POS_TAGS), len(POS_TAGS) + 1
COLUMNS = ("INDEX", "WORD_FORM", "LEMMA", "POS", "HEAD", "DEPREL")


def parse_word(line: str, place: str, index: int, words: int) -> tuple[str, str, int, str]:
    """Form, last tag, head and type of one row; ``index`` is the number that the row must have."""
    columns = line.split("\t")
    if len(columns) != len(COLUMNS):
        raise BadInput(f"{place}: expected {len(COLUMNS)} columns {', '.join(COLUMNS)}; found {len(columns)}")
    number, form, _, pos, head, relation = columns
    if number != str(index):
        raise BadInput(f"{place}: expected INDEX {index}, found {number!r}; words count from 1 without gaps")
    if not form.strip():
        raise BadInput(f"{place}: WORD_FORM is empty")
    if not head.isdecimal() or int(head) > words or int(head) == index:
        raise BadInput(f"{place}: HEAD must be 0 (root) or another word 1..{words}; found {head!r}")
    if relation not in DP_LABELS:
        raise BadInput(f"{place}: unknown relation {relation!r} in DEPREL; expected one of {', '.join(DP_LABELS)}")
    return form, pos.rsplit("+", 1)[-1], int(head), relation


def read_klue_dp(path: Path) -> list[Example]:
    """Sentences of an official file; ``inputs``: ``words`` and their last ``pos`` tags."""
    examples = []
    for header, lines in read_blocks(path):
        guid = header.split("\t")[0].strip()
        parsed = [
            parse_word(line, f"{path}, line {number}, {guid}", index, len(lines))
            for index, (number, line) in enumerate(lines, start=1)
        ]
        words, pos, heads, types = (list(column) for column in zip(*parsed, strict=True))
        examples.append(Example(guid, {"heads": heads, "types": types}, {"words": words, "pos": pos}))
    return examples


def locate_words(words: Sequence[str], offsets: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """First and last token of each word of a sentence whose words are joined by one space.

    A word without a token of its own (only invisible characters) gets position 0, [CLS].
    """
    bounds = np.cumsum([0] + [len(word) + 1 for word in words])
    first, last = [0] * len(words), [0] * len(words)
    for position, (begin, end) in enumerate(offsets):
        if end > begin:
            word = int(np.searchsorted(bounds, end - 1, side="right")) - 1
            first[word] = first[word] or position
            last[word] = position
    return first, last


def featurize_klue_dp(
    examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, max_tokens: int, is_training: bool
) -> list[Feature]:
    """One feature a sentence. Words behind ``max_tokens`` are left out; a gold head that cannot be (behind the cut, or
    to the left of its word) is no target."""
    texts = [" ".join(example.inputs["words"]) for example in examples]
    encoded = tokenizer(texts, return_offsets_mapping=True, return_token_type_ids=False)
    features = []
    for number, example in enumerate(examples):
        ids, words = encoded["input_ids"][number], example.inputs["words"]
        first, last = locate_words(words, encoded["offset_mapping"][number])
        kept = len(words)
        if len(ids) > max_tokens:
            kept = next((w for w, end in enumerate(last) if end >= max_tokens - 1), kept)
            ids = [*ids[: max_tokens - 1], ids[-1]]
        tags = [POS_IDS.get(tag, UNKNOWN_POS) for tag in example.inputs["pos"][:kept]]
        heads = [
            head if head == 0 or word < head <= kept else IGNORED
            for word, head in enumerate(example.gold["heads"][:kept], start=1)
        ]
        types = [DP_LABELS.index(name) for name in example.gold["types"][:kept]]
        if is_training and all(head == IGNORED for head in heads):
            continue
        features.append(
            {
                "input_ids": ids,
                "example": number,
                "first": [0, *first[:kept]],
                "last": [0, *last[:kept]],
                "pos": [ROOT_POS, *tags],
                "heads": heads,
                "types": [IGNORED if head == IGNORED else t for head, t in zip(heads, types, strict=True)],
            }
        )
    return features


def collate_klue_dp(features: Sequence[Feature], pad_id: int) -> dict[str, NDArray[Any]]:
    """Batch as ``BiaffineParser.forward`` describes it."""
    fillers = {"first": 0, "last": 0, "pos": ROOT_POS, "heads": IGNORED, "types": IGNORED}
    return {
        **pad_inputs(features, pad_id),
        **{key: pad_rows([feature[key] for feature in features], filler) for key, filler in fillers.items()},
        "lengths": np.array([len(feature["heads"]) for feature in features]),
    }


def build_klue_dp(encoder: str, tokenizer: PreTrainedTokenizerBase) -> nn.Module:
    """Encoder and parser."""
    from finetune.encoder import load_encoder
    from finetune.heads.biaffine import BiaffineParser

    return BiaffineParser(load_encoder(encoder), len(DP_LABELS), len(POS_TAGS) + 2)


def decode_klue_dp(examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]) -> list[Prediction]:
    """The best tree of each sentence. Words cut off by ``max_tokens`` hang on their right neighbour."""
    predictions = [chain_words(example, "NP", "VP") for example in examples]
    for feature, raw in zip(features, raws, strict=True):
        kept = len(raw["arcs"])
        if not kept:
            continue
        heads = best_right_headed_tree(raw["arcs"])
        types = [DP_LABELS[raw["types"][word, head]] for word, head in enumerate(heads)]
        value = predictions[feature["example"]].value
        if kept < len(value["heads"]):
            heads[-1] = kept + 1
        value["heads"][:kept], value["types"][:kept] = heads, types
    return predictions


def chain_words(example: Example, inner: str, last: str) -> Prediction:
    words = len(example.inputs["words"])
    return Prediction({"heads": [*range(2, words + 1), 0], "types": [*[inner] * (words - 1), last]})


def predict_trivially(train: Sequence[Example], examples: Sequence[Example]) -> list[Prediction]:
    """Every word hangs on its right neighbour, the last one is the root; types are the commonest of each of the two."""
    inner = Counter(name for example in train for name in example.gold["types"][:-1])
    last = Counter(example.gold["types"][-1] for example in train)
    commonest = [max(sorted(counts), key=counts.__getitem__, default=DP_LABELS[0]) for counts in (inner, last)]
    return [chain_words(example, *commonest) for example in examples]


KLUE_DP = Task(
    name="klue-dp",
    files=Files(train="klue-dp-v1.1/klue-dp-v1.1_train.tsv", dev="klue-dp-v1.1/klue-dp-v1.1_dev.tsv"),
    read=read_klue_dp,
    featurize=featurize_klue_dp,
    collate=collate_klue_dp,
    model=build_klue_dp,
    decode=decode_klue_dp,
    score=score,
    trivial=predict_trivially,
    select_by="las_macro_f1",
    defaults=Hyperparameters(lr=5e-5, epochs=10, batch_size=32, warmup_share=0.1, max_tokens=256),
    paper_dev={
        "klue/bert-base": {"uas_macro_f1": 93.07, "las_macro_f1": 87.25},
        "klue/roberta-small": {"uas_macro_f1": 92.45, "las_macro_f1": 86.61},
        "klue/roberta-base": {"uas_macro_f1": 93.22, "las_macro_f1": 87.56},
        "klue/roberta-large": {"uas_macro_f1": 93.74, "las_macro_f1": 87.91},
    },
)

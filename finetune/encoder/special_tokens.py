"""Special tokens around texts for tokenizers without [CLS] and [SEP]: decoders, EuroBERT, mmBERT.

```
BERT            [CLS] A [SEP]    [CLS] A [SEP] B [SEP]
bos and eos     <bos> A <eos>    <bos> A <eos> B <eos>
eos only        <eos> A <eos>    <eos> A <eos> B <eos>
```
So every task has a token before and after its text, and one between two texts. Padding is on the right and masked, so
the end token can serve as padding token: no head reads it, and no embedding is added.
"""

from __future__ import annotations

import json

from tokenizers import processors
from transformers import PreTrainedTokenizerBase

ROLES = ("pad_token", "cls_token", "sep_token")
RARE = "\ue000"  # in no vocabulary


def name_roles(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Use the begin and end tokens for missing roles (pad, cls, sep); returns the roles without any token."""
    end = tokenizer.eos_token
    for role, token in zip(ROLES, (end, tokenizer.bos_token or end, end), strict=True):
        if getattr(tokenizer, role) is None and token is not None:
            setattr(tokenizer, role, token)
    missing = [role for role in ROLES if getattr(tokenizer, role) is None]
    drops = tokenizer.unk_token is None and not tokenizer.backend_tokenizer.encode(RARE, add_special_tokens=False).ids
    return [*missing, "unk_token"] if drops else missing


def wrap_texts(tokenizer: PreTrainedTokenizerBase) -> None:
    """Put these tokens around texts if the tokenizer does not; truncate and pad inputs on the right."""
    if not _wraps(tokenizer):
        backend, (first, last) = tokenizer.backend_tokenizer, (tokenizer.cls_token, tokenizer.sep_token)
        vocabulary = tokenizer.get_vocab()
        ids = [(token, vocabulary[token]) for token in dict.fromkeys((first, last))]
        single = [first, "$A", last]
        template = processors.TemplateProcessing(single=single, pair=[*single, "$B", last], special_tokens=ids)
        before = json.loads(backend.to_str())["post_processor"]
        is_byte_level = "ByteLevel" in json.dumps(before)  # it takes the space off a token's offsets
        backend.post_processor = (
            processors.Sequence([processors.ByteLevel(trim_offsets=True), template]) if is_byte_level else template
        )
    for side in ("padding_side", "truncation_side"):
        if getattr(tokenizer, side) != "right":
            setattr(tokenizer, side, "right")


def _wraps(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether there is a special token before, after and between texts."""
    text = "가 a"
    one, two = (tokenizer(*texts).sequence_ids() for texts in ((text,), (text, text)))
    return 1 in two and all(side is None for side in (one[0], one[-1], two[0], two[-1], two[two.index(1) - 1]))

"""What stands around a text for an encoder whose tokenizer knows no [CLS] and [SEP]: a decoder, EuroBERT, mmBERT.

```
BERT            [CLS] A [SEP]    [CLS] A [SEP] B [SEP]
bos and eos     <bos> A <eos>    <bos> A <eos> B <eos>
eos alone       <eos> A <eos>    <eos> A <eos> B <eos>
```
So every task has a token before and after its text, and one between two texts. Padding stands on the right and is
masked, so where there is no padding token the end token does: no head looks for it, and no embedding is added.
"""

from __future__ import annotations

import json

from tokenizers import processors
from transformers import PreTrainedTokenizerBase

ROLES = ("pad_token", "cls_token", "sep_token")
RARE = "\ue000"  # in no vocabulary


def name_roles(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Give the tokens of beginning and end the roles that inputs are made with, where these are not taken; returns the
    roles that no token has."""
    end = tokenizer.eos_token
    for role, token in zip(ROLES, (end, tokenizer.bos_token or end, end), strict=True):
        if getattr(tokenizer, role) is None and token is not None:
            setattr(tokenizer, role, token)
    missing = [role for role in ROLES if getattr(tokenizer, role) is None]
    drops = tokenizer.unk_token is None and not tokenizer.backend_tokenizer.encode(RARE, add_special_tokens=False).ids
    return [*missing, "unk_token"] if drops else missing


def wrap_texts(tokenizer: PreTrainedTokenizerBase) -> None:
    """Put these tokens around texts, where the tokenizer itself does not; inputs lose their end and are filled up at
    their end."""
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
    """Whether a special token stands before, after and between texts."""
    text = "가 a"
    one, two = (tokenizer(*texts).sequence_ids() for texts in ((text,), (text, text)))
    return 1 in two and all(side is None for side in (one[0], one[-1], two[0], two[-1], two[two.index(1) - 1]))

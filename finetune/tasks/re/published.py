"""KLUE-RE as the published code converts it; decoding and metrics are the same under both protocols.

The published code crashes on some sentences, none of them in the official dev set; this conversion handles them.
Source: KLUE-baseline at 8a03c94, ``data/klue_re.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from finetune.examples import Example, Feature, Tokenizer
from finetune.tasks.re import markers
from finetune.tasks.re.markers import Span


def featurize(examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool) -> list[Feature]:
    """``[CLS] sentence with four markers [SEP]``, with the published bugs.

    - A Hangul piece after an end marker gets ``##`` even if the vocabulary lacks that form: the piece becomes [UNK]
    (469 times in the dev set: 에게, 까지, 로부터 …).
    - A long sentence is truncated, and markers are lost with its end.
    - Entities that overlap double text, see ``mark_as_published``.
    - Not reproduced: the IndexError for a sentence that ends in an end marker.
    """
    model = tokenizer.backend_tokenizer.model
    is_wordpiece = getattr(model, "continuing_subword_prefix", None) == "##"

    def continue_word(token: str, next_character: str, vocabulary: Mapping[str, int]) -> list[int] | None:
        if is_wordpiece and markers.is_hangul(token[0]):
            return [vocabulary.get("##" + token, vocabulary[str(tokenizer.unk_token)])]
        return markers.inside_word(token, next_character, vocabulary)

    def keep(ids: Sequence[int], marker_ids: Sequence[int], size: int) -> list[int]:
        return list(range(size))

    return markers.featurize_marked(mark_as_published, continue_word, keep, examples, tokenizer, max_tokens)


def mark_as_published(sentence: str, subject: Span, object_: Span) -> str:
    """The sentence with its four markers. The entity that begins first (of two the shorter) is marked first and written
    completely, so the common text of two entities appears twice, as does the rest of a longer entity after a shorter
    one inside it. Equal spans, a ValueError as published, are marked with the subject outside."""
    if subject == object_:
        return markers.mark_entities(sentence, subject, object_)
    (one, begin, end), (other, other_begin, other_end) = sorted(
        [(subject, markers.SUBJECT, markers.SUBJECT_END), (object_, markers.OBJECT, markers.OBJECT_END)]
    )
    return "".join(
        [
            sentence[: one[0]], begin, sentence[slice(*one)], end,
            sentence[one[1] : other[0]], other_begin, sentence[slice(*other)], other_end,
            sentence[other[1] :],
        ]
    )  # fmt: skip

"""KLUE-RE as the published code converts it; decoding and metrics are the same under both protocols.

It crashes on some sentences, and none of the official dev set is one of them; there this conversion does the natural
thing instead, so that every file can be converted. Source: KLUE-baseline at 8a03c94, ``data/klue_re.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from finetune.examples import Example, Feature, Tokenizer
from finetune.tasks.re import markers
from finetune.tasks.re.markers import Span


def featurize(examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool) -> list[Feature]:
    """``[CLS] sentence with four markers [SEP]``, faults included.

    - A Hangul piece after an end marker gets ``##`` even where the vocabulary lacks that form: the piece becomes
      [UNK] (469 times in the dev set: 에게, 까지, 로부터 …).
    - A long sentence loses its end, and markers with it.
    - Entities that overlap double text, see ``mark_as_published``.
    - Not reproduced: a sentence that ends in an end marker (IndexError as published) has nothing after it to mend.
    """
    model = tokenizer.backend_tokenizer.model
    is_wordpiece = getattr(model, "continuing_subword_prefix", None) == "##"

    def mend(token: str, next_character: str, vocabulary: Mapping[str, int]) -> list[int] | None:
        if is_wordpiece and markers.is_hangul(token[0]):
            return [vocabulary.get("##" + token, vocabulary[str(tokenizer.unk_token)])]
        return markers.inside_word(token, next_character, vocabulary)

    def keep(ids: Sequence[int], marker_ids: Sequence[int], size: int) -> list[int]:
        return list(range(size))

    return markers.featurize_marked(mark_as_published, mend, keep, examples, tokenizer, max_tokens)


def mark_as_published(sentence: str, subject: Span, object_: Span) -> str:
    """The sentence with its four markers, the entity that begins first (of two the shorter) marked first and written
    out whole, so what two entities share stands there twice, and what a longer one has after the shorter one inside it
    as well. Equal spans, a ValueError as published, are marked subject outside."""
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

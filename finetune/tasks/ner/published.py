"""KLUE-NER as published (KLUE-baseline, data/klue_ner.py and its character-level evaluation), with its quirks.

Tags are aligned word by word by the lengths of token texts, without offsets; [CLS] and [SEP] learn O. Perfect token
labels give 94.08 entity F1 on dev; with offsets they give 98.34. Where the published code would stop with an error, it
is fixed here, and the docstring says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

from corpus.documents.errors import BadInput
from finetune.examples import Example, Feature, Prediction, Tokenizer
from finetune.tasks.ner.alignment import Alignment, Read, Sentence, encode_sentences, make_features
from finetune.tasks.ner.metrics import NER_TAGS, OUTSIDE

Decode = Callable[[Sequence[Example], Sequence[Feature], Sequence[Any]], list[Prediction]]

_MARKS = {"WordPiece": "##", "Unigram": "▁"}  # kinds of tokenizer for which the published code has a rule


def featurize(examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool) -> list[Feature]:
    """One feature per sentence, the published tags and the published way back to the characters.

    Quirks: in a word that contains an [UNK] every token has the tag of the word's first character; a character that the
    tokenizer drops shifts the tags of all later words of the sentence; a long sentence is truncated; [CLS] and [SEP]
    are in the loss with tag O (padding is not: transformers 3.5.1 masked it). Fixes: if token texts are longer than the
    text (NFKC), the tags ran out; the last one is used again. If a tokenizer splits syllables, its tokens have the
    length of their characters in the text, not of their jamo.
    """
    kind = type(tokenizer.backend_tokenizer.model).__name__
    if kind not in _MARKS:
        raise BadInput(
            f"klue-ner: protocol klue-baseline has no rule for {kind} tokenizers, only for WordPiece and "
            "SentencePiece; use protocol malmoi"
        )
    sentences, unknown = encode_sentences(examples, tokenizer), tokenizer.unk_token_id
    text_of = lru_cache(maxsize=None)(lambda id_: str(tokenizer.convert_ids_to_tokens(id_)).replace(_MARKS[kind], ""))
    normalizer = tokenizer.backend_tokenizer.normalizer
    in_jamo = normalizer is not None and "가" not in normalizer.normalize_str("가")  # it splits syllables (NFD)
    alignments = [
        _align(
            sentence,
            own_letters(sentence) if in_jamo else [text_of(id_) for id_ in sentence.ids],
            [id_ == unknown for id_ in sentence.ids],
        )
        for sentence in sentences
    ]
    return make_features(sentences, alignments, tokenizer, max_tokens, special_tag=OUTSIDE, windows=False)


def own_letters(sentence: Sentence) -> list[str]:
    """The characters that each token is the first to cover; none for a token inside the syllable of another."""
    letters = "".join(sentence.words)
    before = [0, *(end for _, end in sentence.spans)]
    return [letters[max(begin, done) : end] for (begin, end), done in zip(sentence.spans, before, strict=False)]


def decode_with_ends(
    decode: Decode, examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]
) -> list[Prediction]:
    """Predictions of ``decode`` with ``scores`` for what the published metrics also count.

    Quirks: characters without a tag are cut from the gold's end, so ``scores["characters"]`` counts those with one (the
    others are O in the value); the predictions for [CLS] and for the last position are scored against O:
    ``scores["ends"]``. Published inputs have a fixed length, so their last position is padding, which is not trained;
    here batches are as long as their longest sentence, and the prediction for [SEP], which is trained, takes its place.
    """
    ends = [[NER_TAGS[int(raw_LK[end].argmax())] for end in (0, -1)] for raw_LK in raws]
    return [
        Prediction(prediction.value, {"ends": both, "characters": len(feature["reads"])})
        for prediction, feature, both in zip(decode(examples, features, raws), features, ends, strict=True)
    ]


def _align(sentence: Sentence, texts: Sequence[str], unknown: Sequence[bool]) -> Alignment:
    """Word by word; ``place`` and ``cursor`` are the character and the token at which the published code is.

    ``texts``: of the tokens, without the continuation mark; ``unknown``: whether each is [UNK].
    """
    tokens_of: list[list[int]] = [[] for _ in sentence.words]
    for token, (start, _) in enumerate(sentence.spans):
        tokens_of[sentence.word_of[min(start, len(sentence.word_of) - 1)]].append(token)
    tags, produced, place, cursor = list[int](), list[tuple[int, bool]](), 0, 0
    for word, tokens in zip(sentence.words, tokens_of, strict=True):
        own, own_unknown = [texts[token] for token in tokens], [unknown[token] for token in tokens]
        lengths = [len(text) for text in own]
        if any(own_unknown):
            reads, begins, steps = spread_unknown(word, own, own_unknown)
            places, after = [place] * len(own), place + len(word)
        else:
            reads = [token for token, length in enumerate(lengths) for _ in range(length)]
            begins, steps = [k == 0 for length in lengths for k in range(length)], len(own)
            *places, after = accumulate(lengths, initial=place)
        golds = [sentence.gold[min(at, len(sentence.gold) - 1)] for at in places]
        tags += [gold if length else OUTSIDE for gold, length in zip(golds, lengths, strict=True)]
        produced += [(cursor + token, is_first) for token, is_first in zip(reads, begins, strict=True)]
        place, cursor = after, cursor + steps
    by_letter = enumerate(produced[: len(sentence.gold)])
    return Alignment(tags, [Read(letter, token, is_first) for letter, (token, is_first) in by_letter])


def spread_unknown(word: str, texts: Sequence[str], unknown: Sequence[bool]) -> tuple[list[int], list[bool], int]:
    """The tokens that the published code reads for the characters of a word with an [UNK].

    Quirks: a known token yields one tag, however long it is; of several consecutive [UNK] all but the last yield one;
    the token after an [UNK] is read once more for the next character, which is therefore one late; an [UNK] at the end
    is never passed, so every later word of the sentence is read one token early. Fix: characters that the tokenizer
    drops, which stop the published code or keep it running forever, belong to the token before them.

    Returns:
        for each tag the token (0 is the first) and whether the tag is used unchanged (otherwise I- of its type); then
            the number of tokens passed.
    """
    reads, begins = list[int](), list[bool]()
    token, letter, after_unknown = 0, 0, False
    for number, (text, is_unknown) in enumerate(zip(texts, unknown, strict=True)):
        if after_unknown and not is_unknown:
            token += 1
        reads.append(token)
        begins.append(True)
        letter += 1 if is_unknown else len(text)
        if not is_unknown and not after_unknown:
            token += 1
        after_unknown = is_unknown
        rest = _letters_until_next(word, letter, texts, unknown, number)
        reads += [reads[-1]] * rest
        begins += [False] * rest
        letter += rest
    return reads, begins, token


def _letters_until_next(word: str, letter: int, texts: Sequence[str], unknown: Sequence[bool], number: int) -> int:
    """Characters of the word from ``letter`` on that belong to token ``number`` but not to its own text."""
    if number == len(texts) - 1:
        return max(len(word) - letter, 0)
    if not unknown[number] or unknown[number + 1]:
        return 0
    return max(word.find(texts[number + 1][:1], letter) - letter, 0)

"""KLUE-NER as published (KLUE-baseline, data/klue_ner.py and its character-level evaluation), with what is odd in it.

Tags are aligned word by word with lengths of token texts, without offsets; [CLS] and [SEP] learn O. Perfect token
labels give back 94.08 entity F1 on dev, where offsets give 98.34: that is the price of comparable figures.
Where the published code would stop with an error, it is repaired here, and the docstring says so.
Legend: ``C`` characters without spaces, ``N`` tokens, ``W`` words, ``R`` tags that are produced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpus.documents.errors import BadInput
from finetune.task import Example, Feature, Prediction, Tokenizer
from finetune.tasks.ner.align import Alignment, Sentences, encode_sentences, make_features
from finetune.tasks.ner.metrics import NER_TAGS, OUTSIDE

Decode = Callable[[Sequence[Example], Sequence[Feature], Sequence[Any]], list[Prediction]]
Ints = NDArray[np.int64]

_MARKS = {"WordPiece": "##", "Unigram": "▁"}  # kinds of tokenizer for which the published code has a rule


def featurize(examples: Sequence[Example], tokenizer: Tokenizer, max_tokens: int, is_training: bool) -> list[Feature]:
    """One feature a sentence, the published tags and the published way back to the characters.

    Oddities: in a word that holds an [UNK] every token has the tag of the word's first character; a character that
    the tokenizer drops shifts the tags of all later words of the sentence; a long sentence loses its end; [CLS] and
    [SEP] are in the loss with tag O (padding is not: transformers 3.5.1 left it out by the attention mask).
    Repaired: where token texts are longer than the text (NFKC), the tags ran out; the last one is used again.

    Raises:
        BadInput: the tokenizer is neither WordPiece nor SentencePiece; the published code stops there too.
    """
    kind = type(tokenizer.backend_tokenizer.model).__name__
    if kind not in _MARKS:
        raise BadInput(
            f"klue-ner: protocol klue-baseline has no rule for {kind} tokenizers, only for WordPiece and "
            "SentencePiece; use protocol malmoi"
        )
    sentences = encode_sentences(examples, tokenizer)
    alignment = _align(sentences, tokenizer, _MARKS[kind])
    return make_features(sentences, alignment, tokenizer, max_tokens, special_tag=OUTSIDE, windows=False)


def decode_with_ends(
    decode: Decode, examples: Sequence[Example], features: Sequence[Feature], raws: Sequence[Any]
) -> list[Prediction]:
    """Predictions of ``decode`` whose ``scores`` say what the published metrics look at beside the tags.

    Oddities: characters without a tag are cut from the gold's end, so ``scores["characters"]`` counts those with one
    (the others are O in the value); the predictions for [CLS] and for the last position are scored, both against O:
    ``scores["ends"]``. Published inputs have a fixed length, so their last position is padding, which nothing trains;
    here batches are as long as their longest sentence, so the prediction for [SEP], which is trained, stands for it.
    """
    ends = [[NER_TAGS[raw[0]], NER_TAGS[raw[-1]]] for raw in raws]
    return [
        Prediction(prediction.value, {"ends": both, "characters": len(feature["positions"])})
        for prediction, feature, both in zip(decode(examples, features, raws), features, ends, strict=True)
    ]


class _Words(NamedTuple):
    """The words of all sentences, and the tokens seen from them."""

    sentence_W: Ints
    characters_W: Ints  # first character of each word, and after the last word
    tokens_W: Ints  # first token of each word, and after the last word
    word_N: Ints
    has_unknown_W: NDArray[np.bool_]
    texts: list[str]  # of the tokens, without the mark of continuation
    lengths_N: Ints  # of the texts


def _align(sentences: Sentences, tokenizer: Tokenizer, mark: str) -> Alignment:
    words = _find_words(sentences, tokenizer, mark)
    words_R, reads_R, begins_R, steps_W = _spread(sentences, words, sentences.ids_N == tokenizer.unk_token_id)
    tokens_W = _within(steps_W, words.sentence_W) + sentences.bounds_N[words.sentence_W]
    sentence_R = words.sentence_W[words_R]
    rank_R = _within(np.ones_like(words_R), sentence_R)
    kept_R = rank_R < np.diff(sentences.bounds_C)[sentence_R]
    return Alignment(
        tags_N=_tags(sentences, words),
        characters_R=(sentences.bounds_C[sentence_R] + rank_R)[kept_R],
        tokens_R=(tokens_W[words_R] + reads_R)[kept_R],
        begins_R=begins_R[kept_R],
    )


def _find_words(sentences: Sentences, tokenizer: Tokenizer, mark: str) -> _Words:
    count = int(sentences.words_C[-1]) + 1
    characters_W = np.searchsorted(sentences.words_C, np.arange(count + 1))
    last_N = np.repeat(sentences.bounds_C[1:] - 1, np.diff(sentences.bounds_N))
    word_N = sentences.words_C[np.minimum(sentences.starts_N, last_N)]
    used, which_N = np.unique(sentences.ids_N, return_inverse=True)
    texts = [token.replace(mark, "") for token in tokenizer.convert_ids_to_tokens(used.tolist())]
    return _Words(
        sentence_W=np.searchsorted(sentences.bounds_C, characters_W[:-1], side="right") - 1,
        characters_W=characters_W,
        tokens_W=np.searchsorted(word_N, np.arange(count + 1)),
        word_N=word_N,
        has_unknown_W=np.bincount(word_N[sentences.ids_N == tokenizer.unk_token_id], minlength=count) > 0,
        texts=np.array(texts, dtype=object)[which_N].tolist(),
        lengths_N=np.array([len(text) for text in texts])[which_N],
    )


def _tags(sentences: Sentences, words: _Words) -> Ints:
    """The tag of the character at which each token is thought to begin."""
    lengths_W = np.bincount(words.word_N, words.lengths_N, minlength=len(words.sentence_W)).astype(np.int64)
    lengths_W = np.where(words.has_unknown_W, np.diff(words.characters_W), lengths_W)
    starts_W = sentences.bounds_C[words.sentence_W] + _within(lengths_W, words.sentence_W)
    inside_N = np.where(words.has_unknown_W[words.word_N], 0, _within(words.lengths_N, words.word_N))
    last_N = sentences.bounds_C[words.sentence_W + 1][words.word_N] - 1
    tags_N = sentences.gold_C[np.minimum(starts_W[words.word_N] + inside_N, last_N)]
    return np.where(words.lengths_N == 0, OUTSIDE, tags_N)


def _spread(sentences: Sentences, words: _Words, unknown_N: NDArray[np.bool_]) -> tuple[Ints, Ints, Any, Ints]:
    """The tags that are produced: word, token counted from the word's first and "as it is", and the tokens passed."""
    plain_N = np.flatnonzero(~words.has_unknown_W[words.word_N])
    plain_R = np.repeat(plain_N, words.lengths_N[plain_N])
    word_R = words.word_N[plain_R]
    produced = [(word_R, plain_R - words.tokens_W[word_R], np.diff(plain_R, prepend=-1) != 0)]
    steps_W = np.diff(words.tokens_W)
    for word in np.flatnonzero(words.has_unknown_W).tolist():
        tokens = slice(*words.tokens_W[word : word + 2])
        text = sentences.characters[slice(*words.characters_W[word : word + 2])]
        reads, begins, steps_W[word] = spread_unknown(text, words.texts[tokens], unknown_N[tokens].tolist())
        produced.append((np.full(len(reads), word), np.array(reads), np.array(begins)))
    word_R, reads_R, begins_R = (np.concatenate(column) for column in zip(*produced, strict=True))
    order = np.argsort(word_R, kind="stable")
    return word_R[order], reads_R[order], begins_R[order], steps_W


def spread_unknown(word: str, texts: Sequence[str], unknown: Sequence[bool]) -> tuple[list[int], list[bool], int]:
    """Which tokens the published code reads for the characters of a word that holds an [UNK].

    Oddities: a known token yields one tag, however long it is; of several [UNK] side by side all but the last yield
    one; the token after an [UNK] is read once more for the next, which therefore comes one late; an [UNK] at the end
    is never passed, so every later word of the sentence is read one token early.
    Repaired: letters that the tokenizer drops, which stop the published code or keep it running for ever, count as
    parts of what stands before them.

    Args:
        texts: of the word's tokens, without the mark of continuation.
        unknown: whether each token is [UNK].

    Returns:
        for each tag produced the token (0 is the first) and whether the tag is taken as it is (else as what follows
        it: I- of its type); then the number of tokens passed.
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
    """Letters of the word from ``letter`` on that belong to token ``number`` but not to its own text."""
    if number == len(texts) - 1:
        return max(len(word) - letter, 0)
    if not unknown[number] or unknown[number + 1]:
        return 0
    return max(word.find(texts[number + 1][:1], letter) - letter, 0)


def _within(steps: Ints, group: Ints) -> Ints:
    """The sum of the steps before each place, counted again in each group of equal neighbours."""
    before = np.cumsum(steps) - steps
    return before - before[np.searchsorted(group, group)]

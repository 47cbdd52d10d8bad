"""PERSON by a model: any Hugging Face token classifier with the labels B-PS and I-PS of KLUE-NER.

```
text ─ sentences ─ tokens ─ windows ─ batches of one length ─▶ P(B-PS) + P(I-PS) of each token ─ threshold ─▶ names
```
The model reads each sentence separately, so results do not depend on context. Batches are only for speed: after
loading, a sentence is read alone and in batches, and if the results differ by rounding, batches have one row. Each
process uses one core. A model with three layers of 192 takes 200 times as long as the rules.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from corpus.documents.accelerator import DeviceName, find_device
from corpus.documents.errors import BadInput, first_line
from corpus.documents.model_files import check_model_files, check_sizes, load_classifier, max_model_tokens
from corpus.pii.types import ALL_TYPES
from corpus.sentences.split import split_sentences

if TYPE_CHECKING:
    import torch
    from tokenizers import Encoding
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

BEGIN, INSIDE = "B-PS", "I-PS"
OPTIONS = "--names", "--names-device"
THRESHOLD = 0.5
WINDOW_TOKENS, MARGIN_TOKENS = 128, 16
BATCH_TOKENS = 2048
LENGTH_STEP = 8
CONTINUE_SHARE = 0.2  # of the threshold, for further tokens of a name; half a name is worse than an extra word
KEPT_SENTENCES = 20_000
PROBE_TOKENS, PROBE_ROWS = 16, (1, 3, 8, 32)

_LETTER = re.compile("[A-Za-z一-龥가-힣]")
_SYLLABLES = re.compile("[가-힣]{1,3}$")
_TAG = re.compile(rf"\[(?:{'|'.join(ALL_TYPES)})\]")  # the output of mode "tag"


class NameSpan(NamedTuple):
    """``text[start:end]`` is a name; ``score`` is the highest probability of its tokens."""

    start: int
    end: int
    score: float


class NameTagger:
    """A model that tags names, with a cache of its results for recent sentences.

    Args:
        columns: output columns of B-PS and I-PS.
        threshold: minimum probability of at least one token of a name, 0..1.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, columns: tuple[int, int], threshold: float
    ) -> None:
        self._model, self._columns, self._threshold = model, columns, threshold
        self._backend = tokenizer.backend_tokenizer
        self._backend.no_padding()
        self._ends = int(tokenizer.cls_token_id), int(tokenizer.sep_token_id)
        self._size = min(WINDOW_TOKENS, max_model_tokens(model.config, tokenizer.model_max_length)) - 2
        self._margin = min(MARGIN_TOKENS, self._size // 4)
        self._backend.enable_truncation(self._size, stride=2 * self._margin)  # cuts into overlapping windows
        self._known: dict[str, list[NameSpan]] = {}
        self._has_batches = self._agrees_with_itself()

    def find(self, text: str) -> list[NameSpan]:
        """Names in a text: sorted, without overlaps and particles; offsets are ``str`` indices."""
        places = list(_sentences(text))
        self.prepare([text], [sentence for _, sentence in places])
        hidden = [tag.span() for tag in _TAG.finditer(text)] if "[" in text else []
        names = []
        for start, sentence in places:
            for name in self._known[sentence]:
                name = name._replace(start=start + name.start, end=start + name.end)
                if all(end <= name.start or name.end <= begin for begin, end in hidden):
                    names.append(name)
        return names

    def prepare(self, texts: Iterable[str], sentences: Iterable[str] | None = None) -> None:
        """Read many texts in common batches before ``find`` is called.

        Args:
            sentences: sentences of the texts, if already known.
        """
        if sentences is None:
            sentences = (sentence for text in texts for _, sentence in _sentences(text))
        requested = dict.fromkeys(sentences)
        unread = [sentence for sentence in requested if sentence not in self._known]
        if len(self._known) + len(unread) > KEPT_SENTENCES:
            self._known = {sentence: self._known[sentence] for sentence in requested if sentence in self._known}
        self._known |= zip(unread, self._read(unread), strict=True)

    def _read(self, sentences: Sequence[str]) -> list[list[NameSpan]]:
        encodings = self._backend.encode_batch(list(sentences), add_special_tokens=False)
        windows = [[whole, *whole.overflowing] for whole in encodings]
        rows = [window.ids for of_sentence in windows for window in of_sentence]
        shares_L2: dict[int, np.ndarray] = {}
        for batch in self._batches(list(map(len, rows))):
            shares_L2 |= zip(batch, self._run([rows[n] for n in batch]), strict=True)
        in_order = (shares_L2[n] for n in range(len(rows)))
        return [self._join_windows(*read, in_order) for read in zip(sentences, windows, strict=True)]

    def _batches(self, lengths: Sequence[int]) -> Iterator[Sequence[int]]:
        """Numbers of rows that are read together, the shortest first, given the lengths of all rows."""
        order, start = sorted(range(len(lengths)), key=lengths.__getitem__), 0
        while start < len(order):
            length = _padded(lengths[order[start]] + 2)
            most = max(1, BATCH_TOKENS // length) if self._has_batches else 1
            end = bisect_left(order, length + 1, start, key=lambda n: _padded(lengths[n] + 2))
            end = min(end, start + most)
            yield order[start:end]
            start = end

    def _join_windows(self, text: str, windows: Sequence[Encoding], shares: Iterator[np.ndarray]) -> list[NameSpan]:
        """The names of a sentence; results near a cut come from the neighboring window."""
        offsets, parts_L2 = list[tuple[int, int]](), list[np.ndarray]()
        for number, (window, share_L2) in enumerate(zip(windows, shares, strict=False), 1):
            end = len(window.ids) - (self._margin if number < len(windows) else 0)
            used = slice(self._margin if number > 1 else 0, end)
            offsets += window.offsets[used]
            parts_L2.append(share_L2[used])
        return _join(text, offsets, np.concatenate(parts_L2), self._threshold)

    def _run(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """Probabilities of B-PS and I-PS, float32 ``[rows, tokens, 2]``, of rows padded to one length.

        On accelerators, batches are filled with copies of the first row, because kernels depend on the shape.
        """
        import torch

        first, last = self._ends
        device, length = self._model.device, _padded(max(map(len, rows)) + 2)
        count = len(rows) if device.type == "cpu" or not self._has_batches else max(1, BATCH_TOKENS // length)
        ids_BL = np.full((count, length), self._model.config.pad_token_id or 0, np.int64)
        mask_BL = np.zeros((count, length), np.int64)
        for number in range(count):
            ids = rows[number if number < len(rows) else 0]
            ids_BL[number, : len(ids) + 2] = first, *ids, last
            mask_BL[number, : len(ids) + 2] = 1
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # parallelism is by processes, and sums must not depend on the number of threads
        try:
            with torch.inference_mode():
                inputs = (torch.from_numpy(array).to(device) for array in (ids_BL, mask_BL))
                logits_BLK = self._model(*inputs).logits.float()
                shares_BL2 = logits_BLK.softmax(dim=-1)[:, 1:-1, list(self._columns)]
        finally:
            torch.set_num_threads(threads)
        return np.asarray(shares_BL2[: len(rows)].cpu().numpy())

    def _agrees_with_itself(self) -> bool:
        """Whether results of a row are identical in batches of any size, at any place."""
        self._has_batches = True
        size = min(PROBE_TOKENS, self._size) - 2
        drawn = np.random.default_rng(1).integers(0, self._model.config.vocab_size, (max(PROBE_ROWS), size)).tolist()
        results = [self._run([*drawn[1:rows], drawn[0]])[-1] for rows in PROBE_ROWS]
        if not np.isfinite(results).all():
            raise ValueError("its outputs are not finite numbers")
        return all(np.array_equal(shares, results[0]) for shares in results)


def _padded(length: int) -> int:
    return -(-length // LENGTH_STEP) * LENGTH_STEP


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Sentences with a letter, and their start positions."""
    position = 0
    for sentence in split_sentences(text):
        start = text.index(sentence, position)
        position = start + len(sentence)
        if _LETTER.search(sentence):
            yield start, sentence


def _join(text: str, offsets: Sequence[tuple[int, int]], shares_L2: np.ndarray, threshold: float) -> list[NameSpan]:
    """Join tokens to names: runs of likely tokens of which at least one reaches the threshold.

    After a space, B-PS starts another name; inside a word it does not, so no half of a name remains.
    """
    begin_L, inside_L = shares_L2.T
    share_L = begin_L + inside_L
    names: list[NameSpan] = []
    previous = -2
    for token in np.flatnonzero(share_L >= threshold * CONTINUE_SHARE).tolist():
        (start, end), score = offsets[token], round(float(share_L[token]), 3)
        if token == previous + 1 and (inside_L[token] >= begin_L[token] or start == names[-1].end):
            names[-1] = NameSpan(names[-1].start, end, max(score, names[-1].score))
        else:
            names.append(NameSpan(start, end, score))
        previous = token
    return _from_word_starts(text, [name for name in names if name.score >= threshold])


def _from_word_starts(text: str, names: Sequence[NameSpan]) -> list[NameSpan]:
    """Names extended to the start of their word, where 99.5 % of the names of KLUE-NER start: by up to two syllables
    (루토 of 나루토); other names inside words are dropped, and so are names of one syllable, such as a surname."""
    whole: list[NameSpan] = []
    for name in names:
        before = _SYLLABLES.search(text, max(0, name.start - 3), name.start)
        skipped = len(before[0]) if before and _SYLLABLES.match(text, name.start, name.start + 1) else 0
        start = name.start - skipped
        if skipped > 2:
            continue
        if whole and start <= whole[-1].end and skipped:
            whole[-1] = NameSpan(whole[-1].start, name.end, max(name.score, whole[-1].score))
        else:
            whole.append(NameSpan(start, name.end, name.score))
    whole = [name._replace(end=_before_particle(text, name)) for name in whole]
    return [name for name in whole if len(_LETTER.findall(text, name.start, name.end)) > 1]


def _before_particle(text: str, name: NameSpan) -> int:
    """The end of a name without an attached particle; only particles in which names hardly ever end."""
    value, after = text[name.start : name.end], text[name.end : name.end + 1]
    if len(value) < 3 or not _SYLLABLES.search(value[-2:]) or _SYLLABLES.match(after):
        return name.end
    particles = "과을" if (ord(value[-2]) - ord("가")) % 28 else "와를는"
    return name.end - (value[-1] in particles and "가" <= value[-2] <= "힣")


def load_tagger(
    folder: Path, threshold: float = THRESHOLD, device: DeviceName = "auto", keys: tuple[str, str] = OPTIONS
) -> NameTagger:
    """Load the model in ``folder``, once per process; ``keys`` are the settings for folder and device.

    Raises:
        BadInput: the folder is missing, or has no token classifier with safetensors weights, a fast tokenizer, and the
            labels B-PS and I-PS.
    """
    name = f"{keys[0]} {folder}"
    if not folder.is_dir():
        raise BadInput(f"{name}: no such folder; expected a fine-tuned KLUE-NER model, such as `malmoi finetune` saves")
    check_model_files(folder, name)
    check_sizes(folder, name)
    state = tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(folder.iterdir()))
    return _load(folder, threshold, find_device(device, keys[1]), name, state)


@lru_cache(maxsize=1)
def _load(folder: Path, threshold: float, device: torch.device, name: str, state: Any) -> NameTagger:
    """``state`` is part of the cache key, for models saved in the same folder."""
    from transformers import AutoModelForTokenClassification

    model, tokenizer = load_classifier(AutoModelForTokenClassification, folder, name, "model for names")
    try:
        columns = _columns(model.config.id2label)
        _check_tokenizer(tokenizer, model)
        return NameTagger(model.float().to(device).eval(), tokenizer, columns, threshold)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None
    except Exception as error:
        raise BadInput(f"{name}: the model cannot be used ({first_line(error)}); fine-tune it for KLUE-NER") from None


def _columns(labels: dict[int, str]) -> tuple[int, int]:
    numbers = {label: number for number, label in labels.items()}
    if not {BEGIN, INSIDE} <= numbers.keys():
        raise BadInput(
            f"labels {BEGIN} and {INSIDE} are missing (found: {', '.join(map(str, numbers))[:100]}); use a model "
            "fine-tuned for KLUE-NER"
        )
    return numbers[BEGIN], numbers[INSIDE]


def _check_tokenizer(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> None:
    if not tokenizer.is_fast:
        raise BadInput("its tokenizer has no character offsets; save a fast tokenizer (tokenizer.json) in the folder")
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise BadInput("its tokenizer has no [CLS] or [SEP]; set them in tokenizer_config.json")
    if len(tokenizer) > model.config.vocab_size:
        raise BadInput(
            f"the tokenizer has {len(tokenizer):,} tokens, the model {model.config.vocab_size:,}; use the tokenizer of "
            "the model"
        )

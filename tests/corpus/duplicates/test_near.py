"""Near-duplicates by MinHash against Jaccard shares counted out, and against datasketch's own index."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from pydantic import ValidationError

from corpus.config import NearConfig
from corpus.duplicates import near
from corpus.duplicates.near import PERMUTATIONS, SHINGLE_CHARS, band_keys, near_duplicates, signatures
from corpus.sentences.folding import fold

datasketch = pytest.importorskip("datasketch", minversion="2.0")

CONFIG = NearConfig(enabled=True)
SYLLABLES = [chr(code) for code in range(0xAC00, 0xAC00 + 1200)]


def invented(rng: Random, words: int) -> list[str]:
    return ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 5))) for _ in range(words)]


def changed(words: list[str], share: float, rng: Random) -> list[str]:
    return [invented(rng, 1)[0] if rng.random() < share else word for word in words]


def jaccard(first: str, second: str) -> float:
    a, b = (
        {text[at : at + SHINGLE_CHARS] for at in range(len(text) - SHINGLE_CHARS + 1)}
        for text in (fold(first), fold(second))
    )
    return len(a & b) / len(a | b)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Originals among copies changed by 0 to 20 percent of the words."""
    rng = Random(1)
    originals = [invented(rng, 120) for _ in range(40)]
    copies = [
        changed(rng.choice(originals), share, rng) for share in (0, 0.002, 0.01, 0.03, 0.1, 0.2) for _ in range(25)
    ]
    mixed = [*originals, *copies]
    rng.shuffle(mixed)
    return [" ".join(words) + "." for words in mixed]


def find(texts: list[str], threshold: float = CONFIG.threshold, unit: int = 1000) -> list[bool]:
    parts = [signatures(texts[at : at + unit]) for at in range(0, len(texts), unit)]
    return near_duplicates(parts, [band_keys(part, threshold) for part in parts], threshold).tolist()


def test_copies_go_and_the_rest_stays_as_counted_jaccard_says(texts: list[str]) -> None:
    """Between .7 and .96 the estimate and the bands leave it to chance."""
    found = find(texts)
    kept: list[str] = []
    likely = unlikely = 0
    for text, is_duplicate in zip(texts, found, strict=True):
        best = max((jaccard(text, other) for other in kept), default=0.0)
        if best >= 0.96:
            likely += 1
            assert is_duplicate
        if best < 0.7:
            unlikely += 1
            assert not is_duplicate
        if not is_duplicate:
            kept.append(text)
    assert likely > 40 and unlikely > 70


def test_decisions_equal_datasketch_index(texts: list[str]) -> None:
    """Its index of the documents that stayed, asked document by document."""
    rows = signatures(texts)
    index = datasketch.MinHashLSH(threshold=CONFIG.threshold, num_perm=PERMUTATIONS, weights=(0.1, 0.9))
    kept: dict[str, object] = {}
    expected = []
    for number, row in enumerate(rows):
        sketch = datasketch.MinHash(hashvalues=row, scheme="affine32")
        near = [other for other in index.query(sketch) if sketch.jaccard(kept[other]) >= CONFIG.threshold]
        expected.append(bool(near))
        if not near:
            kept[str(number)] = sketch
            index.insert(str(number), sketch)
    assert sum(expected) > 40
    assert find(texts) == expected


def test_signatures_estimate_jaccard(texts: list[str]) -> None:
    rows = signatures(texts)
    assert rows.shape == (len(texts), PERMUTATIONS) and rows.dtype == np.uint32
    rng = Random(2)
    errors = []
    for _ in range(400):
        a, b = rng.sample(range(len(texts)), 2)
        errors.append(float((rows[a] == rows[b]).mean()) - jaccard(texts[a], texts[b]))
    assert abs(float(np.mean(errors))) < 0.02
    assert max(map(abs, errors)) < 5 * (0.25 / PERMUTATIONS) ** 0.5


@pytest.mark.parametrize("unit", [1, 7, 64])
@pytest.mark.parametrize("pairs", [1, 7, 1 << 17])
def test_units_and_memory_change_nothing(
    texts: list[str], unit: int, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = texts[:90]
    found = find(some)
    assert any(found)
    monkeypatch.setattr(near, "PAIRS_AT_ONCE", pairs)
    assert find(some, unit=unit) == found


def test_signatures_may_be_memory_mapped_and_units_empty(texts: list[str], tmp_path: Path) -> None:
    rows = signatures(texts)
    np.save(tmp_path / "signatures.npy", rows)
    np.save(tmp_path / "keys.npy", band_keys(rows, CONFIG.threshold))
    mapped = np.load(tmp_path / "signatures.npy", mmap_mode="r"), np.load(tmp_path / "keys.npy", mmap_mode="r")
    none = signatures([])
    found = near_duplicates([none, mapped[0]], [band_keys(none, CONFIG.threshold), mapped[1]], CONFIG.threshold)
    assert found.tolist() == find(texts)
    assert near_duplicates([], [], CONFIG.threshold).tolist() == []


def test_a_duplicate_of_a_dropped_document_may_stay() -> None:
    """A chain: each is near the one before, the last is far from the first; only what stays is compared with."""
    rng = Random(3)
    words = invented(rng, 200)
    second = words[45:] + invented(rng, 45)
    chain = [words, second, second[45:] + invented(rng, 45)]
    assert find([" ".join(text) for text in chain[:2]], 0.5) == [False, True]
    assert find([" ".join(text) for text in chain[1:]], 0.5) == [False, True]
    assert find([" ".join(text) for text in chain], 0.5) == [False, True, False]


def test_short_documents_are_left_to_the_exact_comparison() -> None:
    assert (
        find(["네.", "네.", "", "", "감사합니다", "감사합니다", "감사합니다 여러분", "감사합니다 여러분"])
        == [False] * 8
    )
    assert find(["오늘도 감사합니다 여러분", "오늘도 감사합니다, 여러분!"]) == [False, True]


def test_many_copies_of_one_text_are_no_work() -> None:
    """3,000 copies would be 4.5 million pairs in each band."""
    rows = np.repeat(signatures(["봄비가 내리는 골목에서 고양이가 졸고 있었다."]), 3000, axis=0)
    found = near_duplicates([rows], [band_keys(rows, CONFIG.threshold)], CONFIG.threshold)
    assert found.tolist() == [False] + [True] * 2999


@pytest.mark.parametrize("bad", [{"threshold": 1.0}, {"shingles": 5}])
def test_settings_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        NearConfig(**bad)


def test_most_pairs_at_the_threshold_share_a_band(texts: list[str]) -> None:
    bands = band_keys(signatures(texts[:1]), CONFIG.threshold).shape[1]
    rows = PERMUTATIONS // bands
    assert 1 - (1 - CONFIG.threshold**rows) ** bands > 0.85

"""Hard-wrapped text is joined again, and nothing else is."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from corpus.noise.remove import remove_noise
from corpus.reading.files import read_blocks
from corpus.sentences.wrapping import find_wrapping, rejoin_lines

WORDS = [
    "강가의",
    "오래된",
    "도서관에서",
    "소년이",
    "책을",
    "천천히",
    "읽고",
    "나서",
    "바람이",
    "부는",
    "들판을",
    "지나",
]
WORDS += ["고양이", "두", "마리가", "시장", "골목으로", "달아나는", "저녁", "구름이", "산을", "넘어오자", "아이들은"]


def paragraph(rng: Random, sentences: int = 12) -> str:
    return " ".join(" ".join(rng.choices(WORDS, k=rng.randint(5, 14))) + " 걸었다." for _ in range(sentences))


@pytest.mark.parametrize("width", [20, 28, 40, 72])
@pytest.mark.parametrize("seed", range(5))
def test_wrapped_paragraphs_are_whole_again(width: int, seed: int) -> None:
    text = paragraph(Random(seed), 30)
    wrapped = "\n".join(textwrap.wrap(text, width))
    joined, ends = rejoin_lines(wrapped)
    assert " ".join(joined.split()) == text
    assert all(line.endswith("걸었다.") for line in joined.split("\n"))
    assert ends == wrapped.count("\n") - joined.count("\n") > 0


@pytest.mark.parametrize("width", [20, 40])
def test_words_that_were_cut_are_whole_again(width: int) -> None:
    text = paragraph(Random(3), 30)
    wrapped = "\n".join(text[at : at + width].rstrip() for at in range(0, len(text), width))
    joined = rejoin_lines(wrapped)[0]
    assert find_wrapping(wrapped.split("\n")) == (width, False, True)
    assert joined.replace("\n", "").replace(" ", "") == text.replace(" ", "")
    assert joined.count("\n") <= wrapped.count("\n") // 4


def test_a_heading_and_a_list_between_wrapped_paragraphs_stay() -> None:
    rng = Random(8)
    one, two = ("\n".join(textwrap.wrap(paragraph(rng), 40)) for _ in range(2))
    lines = rejoin_lines(f"{one}\n- 첫째 항목\n- 둘째 항목\n{two}")[0].split("\n")
    assert [line for line in lines if line.startswith("-")] == ["- 첫째 항목", "- 둘째 항목"]


UNWRAPPED = {
    "poem": "\n".join(["나의 오래된 노래는", "강을 따라 흐르고", "바람은 말이 없어", "밤새 길을 걸었네"] * 6),
    "verse of even lines": "\n".join(["강가의 오래된 노래를 부르며", "들판의 바람을 따라서 걷다가"] * 10),
    "list": "\n".join(f"{word} {n}번" for n, word in enumerate(WORDS)),
    "chat": "\n".join(["밥 먹었어", "아니 아직", "그럼 같이 먹으러 갈래", "좋아 어디로 갈까", "시장 골목"] * 8),
    "code": "\n".join(["for word in words:", "    count += 1", "    print(word. upper())", "return count"] * 8),
    "a sentence a line": "\n".join(paragraph(Random(n), 1) for n in range(20)),
    "a paragraph a line": "\n".join(paragraph(Random(n), 6) for n in range(20)),
}


@pytest.mark.parametrize("name", UNWRAPPED)
def test_lines_that_were_written_as_lines_stay(name: str) -> None:
    assert rejoin_lines(UNWRAPPED[name]) == (UNWRAPPED[name], 0)


CORPORA = ["kowiki", "law", "techdocs", "book_reviews", "fairytales", "nsmc_reviews", "news_comments", "wikinews"]


@pytest.mark.parametrize("corpus", CORPORA)
def test_no_line_of_real_text_is_joined(shared: Callable[[str], Path], corpus: str) -> None:
    """About 10,000 lines of each, where it has as many; none of these corpora is wrapped."""
    lines = 0
    for record in b"".join(read_blocks(shared(f"data/corpora/{corpus}.jsonl.zst"))).splitlines():
        text = remove_noise(json.loads(record)["text"], Counter())
        assert rejoin_lines(text)[1] == 0, text[:500]
        lines += text.count("\n") + 1
        if lines > 10_000:
            break
    assert lines > 2_000

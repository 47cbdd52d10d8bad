"""Shares and lengths of benchmark sentences at exactly their limits."""

from __future__ import annotations

import pytest

from corpus.decontamination.index import build_index
from corpus.decontamination.match_rule import MatchRule
from corpus.sentences.folding import fold

LETTERS = MatchRule(ngram=1, min_item_chars=1, min_item_words=1)


@pytest.mark.parametrize(
    ("item", "document", "held"),
    [
        ("ABCDEFGHIJ", ["xABCDEFy"], [0]),  # 0.6 of it in one sentence
        ("ABCDEFGHIJ", ["xABCDEy"], []),
        ("ABCDEFGHIJ", ["xABCD", "EFGy"], [0, 1]),  # 0.7 over the end of a sentence
        ("ABCDEFGHIJ", ["xABC", "DEFy"], []),
        ("ABCDEFGHIJ", ["ABCDEF", "GHyy"], [0, 1]),  # half of the second sentence is covered
        ("ABCDEFGHIJ", ["ABCDEF", "GHyyy"], [0]),
        ("ABCDEFGH", ["ABCDE", "FGzzzzzz"], [0, 1]),  # the second sentence bears a quarter of the item
        ("ABCDEFGHIJ", ["ABCDEF", "GHzzzzzz"], [0]),
    ],
)
def test_a_share_is_enough_from_exactly_its_limit_on(item: str, document: list[str], held: list[int]) -> None:
    """One letter a token, all of one weight, so that shares are exact."""
    index, _ = build_index([item], LETTERS)
    assert [hit.sentence for hit in index.find_in_documents([document])] == held


def test_lengths_of_items_are_limits_from_exactly_their_number_on() -> None:
    twelve, eleven = "가나다라마바 사아자차카타", "거너더러머버 서어저처커"
    _, numbers = build_index([twelve, eleven, twelve.replace(" ", "")], MatchRule())
    assert numbers == [0, -1, 0]  # too few letters; the third equals the first but has one word
    assert build_index([twelve.replace(" ", "")], MatchRule())[1] == [-1]


@pytest.mark.parametrize("where", ["within", "across", "apart"])
def test_an_item_is_found_at_any_place(where: str) -> None:
    """At every place of the blocks in which sentences are searched; its ratio is that of the letters it has."""
    item = "강가의오래된도서관에서소년이책을천천히읽었다바람이불고푸른구름"
    config = MatchRule(min_item_words=1)
    index, _ = build_index(
        ["전혀다른글인데도오래된도서관이나온다고한다", item, "또하나의서로다른문장이다아무도모른다"], config
    )
    other = "zyxwvutsrqponmlkjihgfedcba0123456789" * 80
    for before in [*range(0, 192, 3), *range(176, 64 * 40, 32)]:  # blocks of 64, in 32 cells of the first filter
        middle = {"within": "", "across": "|", "apart": other[:25]}[where]
        document = (other[:before] + item[:16] + middle + item[16:] + other[:40]).split("|")
        hits = index.find_in_documents([document])
        expected = 27 / 29 if where == "apart" else 1.0  # two trigrams of 29 are cut
        assert [hit[:2] for hit in hits] == [(n, 1) for n in range(len(document))], before
        assert [hit.ratio for hit in hits] == pytest.approx([expected] * len(document), abs=0.01)


def test_the_ratio_of_an_item_is_the_share_of_it_that_is_held() -> None:
    index, _ = build_index(["ABCDEFGHIJ"], LETTERS)
    for document, ratio in ((["xABCDEFy"], 0.6), (["xABCD", "EFGy"], 0.7), (["ABCDEF", "GHyy"], 0.8)):
        hits = index.find_in_documents([document])
        assert max(hit.ratio for hit in hits) == hits[-1].ratio == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("item", "is_searched"),
    [
        ("smile smile smile", False),
        ("좋아요 좋아요 좋아요 좋아요 좋아요", False),
        ("ㅋㅋㅋㅋㅋㅋㅋㅋㅋ ㅋㅋㅋㅋㅋㅋㅋㅋㅋ", False),
        ("정말 좋아요 참 좋아요 늘 좋아요", True),
    ],
)
def test_items_that_repeat_themselves_are_not_searched(item: str, is_searched: bool) -> None:
    assert MatchRule().is_long_enough(item, fold(item)) is is_searched


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("긴 글을 끝까지 읽어 주셔서 감사드립니다.", False),  # nine of its twelve letters
        ("저희 가게를 이용해 주셔서 감사드립니다.", True),
        ("저희 가게를 이용해주셔서 감사 드립니다!", True),
        ("노인은 오래된 도서관에서 책을 천천히 읽었다.", True),  # of a longer one, a part is enough
    ],
)
def test_a_common_phrase_of_a_short_item_is_not_enough(text: str, is_found: bool) -> None:
    index, _ = build_index(["이용해 주셔서 감사드립니다.", "소년은 강가의 오래된 도서관에서 책을 천천히 읽었다."])
    assert bool(index.find([text])) == is_found

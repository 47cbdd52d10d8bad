"""A mix of 3,000 web documents, each with the verdict that follows from its construction: keep, drop or repair.

Half is good Korean of eleven kinds, cut from real corpora. The other half is made by rule: mojibake of real text,
link spam, lists, English, source code, boilerplate, rows of numbers, and endless lines. ``web_mix(folder)`` takes the
folder of real data; the same seed gives the same mix, except that English and code come from the standard library.
``summarize`` compares what a set of rules leaves of each document with the verdicts.
"""

from __future__ import annotations

import ast
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Literal, TypeVar

import zstandard

Verdict = Literal["keep", "drop", "repair"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WebDocument:
    """``expected`` is the text that should be left; empty for the verdict "drop"."""

    kind: str
    text: str
    verdict: Verdict
    expected: str = ""


GOOD = {
    "news": 150, "news_with_footer": 100, "wiki": 250, "reviews": 200, "chat": 150, "law": 150, "poems": 90,
    "recipes": 90, "dialogues": 150, "petitions": 100, "manuals": 70,
}  # fmt: skip
MOJIBAKE: dict[str, tuple[int, Verdict]] = {
    "utf8_as_latin1": (100, "repair"), "utf8_as_windows1252": (80, "repair"), "latin1_without_controls": (40, "drop"),
    "encoded_twice": (90, "repair"), "utf8_as_cp949": (30, "repair"), "utf8_as_cp949_with_losses": (120, "drop"),
    "cp949_as_latin1": (40, "drop"),
}  # fmt: skip
BAD = {
    "link_spam": 200, "lists": 200, "english": 150, "code": 150, "boilerplate": 150, "numbers": 100, "endless_line": 50,
}  # fmt: skip
SECTIONS = re.findall(r"== (\w+)\n((?:.+\n)+)", Path(__file__).with_suffix(".txt").read_text("utf-8"))
WORDS = {name: re.split(r"[|\n]", body.strip()) for name, body in SECTIONS}
"""Words and lines of the generated documents, by name. A slash parts lines of a poem; the poems are by Kim Sowol, Yun
Dongju, Yi Yuksa and Kim Yeongnang and in the public domain."""

REPAIRED, KEPT, DROPPED = 0.95, 0.5, 0.1
"""Shares of words: at least, at least and at most which one must be left for the three verdicts."""


def web_mix(shared: Path, seed: int = 0) -> list[WebDocument]:
    """The mix in random order; ``shared`` is the folder that holds ``data/corpora`` and ``data/klue``."""
    rng = Random(seed)
    sources = read_sources(shared)
    mix: list[WebDocument] = []
    for kind, count in GOOD.items():
        texts = distinct(lambda kind=kind: good_text(kind, sources, rng), count)
        footer = "\n" + "\n".join(WORDS["footer"]) if kind == "news_with_footer" else ""
        mix += [WebDocument(kind, text + footer, "keep", text) for text in texts]
    for kind, (count, verdict) in MOJIBAKE.items():
        pairs = distinct(lambda kind=kind: mojibake(kind, sources, rng), count)
        mix += [WebDocument(kind, text, verdict, original * (verdict == "repair")) for text, original in pairs]
    for kind, count in BAD.items():
        mix += [
            WebDocument(kind, text, "drop") for text in distinct(lambda kind=kind: MAKERS[kind](sources, rng), count)
        ]
    rng.shuffle(mix)
    return mix


def distinct(draw: Callable[[], T], count: int) -> list[T]:
    """``count`` different results of ``draw``."""
    drawn: dict[T, None] = {}
    for _ in range(100 * count):
        drawn[draw()] = None
        if len(drawn) == count:
            return list(drawn)
    raise ValueError(f"only {len(drawn)} different documents of {count}")


def share_left(expected: str, left: str) -> float:
    """The share of the words of ``expected`` that occur in ``left``."""
    words, found = Counter(expected.split()), Counter(left.split())
    return (words & found).total() / max(1, words.total())


def is_right(document: WebDocument, left: str | None) -> bool:
    """Whether ``left``, what a set of rules makes of the document (None: dropped), is as its verdict says.

    A document to drop is right, too, if it was repaired: nothing of the given text is left.
    """
    if document.verdict == "drop":
        return share_left(document.text, left or "") <= DROPPED
    return share_left(document.expected, left or "") >= (KEPT if document.verdict == "keep" else REPAIRED)


def summarize(documents: Sequence[WebDocument], left: Sequence[str | None]) -> dict[str, float]:
    """Share of right documents over all and for each kind; ``good_lost`` is the share of good Korean that is lost."""
    right: dict[str, list[bool]] = {"all": []}
    for document, text in zip(documents, left, strict=True):
        right["all"].append(is_right(document, text))
        right.setdefault(document.kind, []).append(right["all"][-1])
    good = [flag for kind in GOOD for flag in right.get(kind, [])]
    shares = {kind: sum(flags) / len(flags) for kind, flags in right.items()}
    return shares | {"good_lost": 1 - sum(good) / max(1, len(good))}


def read_corpus(shared: Path, name: str, count: int) -> Iterator[str]:
    """The first ``count`` texts of a corpus."""
    path = shared / f"data/corpora/{name}.jsonl.zst"
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        for line in islice(io.TextIOWrapper(stream, encoding="utf-8"), count):
            yield json.loads(line)["text"]


Sources = dict[str, list[str]]


@cache
def read_sources(shared: Path) -> Sources:
    """Real texts by source: documents, or lines of ``reviews`` and ``titles``, or whole dialogues."""
    packed = (shared / "data/klue/derived/wos-v1.1/wos-v1.1_dev.json.zst").read_bytes()
    dialogues = json.loads(zstandard.ZstdDecompressor().decompress(packed, max_output_size=1 << 26))
    articles = list(read_corpus(shared, "kowiki", 6000))
    wiki = [text for text in articles if is_prose(text)]
    pages = read_corpus(shared, "nsmc_reviews", 1200)
    reviews = [line for page in pages for line in dict.fromkeys(page.split("\n")) if len(line) >= 12]
    return {
        "news": [text for text in read_corpus(shared, "wikinews", 700) if is_prose(text)],
        "wiki": wiki[1000:],
        "damaged": wiki[:1000],
        "reviews": [line for line in reviews if hangul_share(line) > 0.6 and not re.search(r"(.)\1{4}", line)],
        "law": list(read_corpus(shared, "law", 1100)),
        "tales": [text for text in read_corpus(shared, "fairytales", 64) if is_prose(text)],
        "petitions": [text for text in read_corpus(shared, "petitions", 1500) if is_plain(text)],
        "manuals": [text for text in read_corpus(shared, "msdocs_business", 1200) if is_prose(text)],
        "titles": [text.partition("(")[0].strip() for text in articles],
        "dialogues": ["\n".join(turn["text"] for turn in one["dialogue"]) for one in dialogues],
    }


def hangul_share(text: str) -> float:
    """The share of Hangul syllables in all characters except blanks."""
    characters = "".join(text.split())
    return len(re.findall("[가-힣]", characters)) / max(1, len(characters))


def is_prose(text: str) -> bool:
    """Whether 70 % of a document of 300 to 6,000 characters lies in whole sentences of Korean."""
    if not 300 <= len(text) <= 6000:
        return False
    sentences = [line for line in text.split("\n") if len(line) > 30 and re.search(r"[.!?。”\"’')]\s*$", line)]
    return sum(map(len, sentences)) > 0.7 * len(text) and hangul_share(text) > 0.6


def is_plain(text: str) -> bool:
    """Whether a document of one line has no links, no runs of one character, and Korean sentences."""
    return 300 <= len(text) <= 6000 and hangul_share(text) > 0.7 and not re.search(r"http|www|(.)\1{4}", text)


def beginning(text: str, size: int) -> str:
    """Whole lines from the beginning, about ``size`` characters."""
    cut = text.find("\n", size)
    return text if cut < 0 else text[:cut]


def good_text(kind: str, sources: Sources, rng: Random) -> str:
    """A document of good Korean."""
    if kind in ("chat", "poems", "recipes", "dialogues"):
        return {"chat": chat, "poems": poem, "recipes": recipe, "dialogues": dialogue}[kind](sources, rng)
    if kind == "reviews":
        at = rng.randrange(len(sources["reviews"]) - 40)
        return "\n".join(sources["reviews"][at : at + rng.randint(12, 40)])
    text = rng.choice(sources["news" if kind == "news_with_footer" else kind])
    return beginning(text, rng.randint(1000, 4000)) if kind in ("law", "manuals") else text


def chat(sources: Sources, rng: Random) -> str:
    """Short lines of reviews as the messages of two to four people."""
    people = rng.sample(WORDS["names"], rng.randint(2, 4))
    frame = rng.choice(["[{name}] [오후 {hour}:{minute:02}] {line}", "{name} : {line}", "{line}"])
    short = [line for line in rng.sample(sources["reviews"], 120) if len(line) <= 40][: rng.randint(15, 40)]
    return "\n".join(
        frame.format(name=rng.choice(people), hour=1 + number // 20, minute=number * 3 % 60, line=line)
        for number, line in enumerate(short)
    )


def poem(sources: Sources, rng: Random) -> str:
    """A poem, or sentences of a fairy tale, each a stanza of lines of two or three words."""
    if rng.random() < 0.2:
        return rng.choice(WORDS["poems"]).replace(" / ", "\n")
    sentences = re.split(r"(?<=[.!?])\s+", rng.choice(sources["tales"]))
    at = rng.randrange(max(1, len(sentences) - 12))
    text = " ".join(sentence + "\n" for sentence in sentences[at : at + rng.randint(6, 12)])
    return re.sub(r"(\S+ \S+(?: \S+)?) (?=\S)", r"\1\n", text).replace("\n ", "\n\n").strip()


def recipe(sources: Sources, rng: Random) -> str:
    """An introduction, a list of ingredients, numbered steps and a tip."""
    dish, mark = rng.choice(WORDS["dishes"]), rng.choice(["- ", "• ", "", "· "])
    steps = sorted(rng.sample(range(len(WORDS["recipe_steps"])), rng.randint(6, 10)))
    return "\n".join(
        [
            f"{dish} 만들기",
            rng.choice(WORDS["recipe_introductions"]).format(dish=dish),
            f"재료({rng.randint(2, 4)}인분)",
            *(mark + name for name in rng.sample(WORDS["ingredients"], rng.randint(6, 11))),
            "만드는 법",
            *(f"{number}. {WORDS['recipe_steps'][step]}" for number, step in enumerate(steps, 1)),
            rng.choice(WORDS["recipe_tips"]),
        ]
    )


def dialogue(sources: Sources, rng: Random) -> str:
    """A dialogue, with or without speakers."""
    speakers = rng.choice([("", ""), ("A: ", "B: "), ("손님: ", "직원: "), ("- ", "- ")])
    turns = rng.choice(sources["dialogues"]).split("\n")
    return "\n".join(speakers[number % 2] + turn for number, turn in enumerate(turns))


def mojibake(kind: str, sources: Sources, rng: Random) -> tuple[str, str]:
    """Damaged text and its original; ``utf8_as_cp949`` has only words of real text that are read without losses."""
    text = beginning(rng.choice(sources[rng.choice(["damaged", "petitions", "law"])]), rng.randint(300, 2000))[:6000]
    if kind == "utf8_as_cp949":
        words = " ".join(rng.sample(sources["damaged"], 3)).split()
        text = " ".join(word for word in words if survives_cp949(word))
    raw = text.encode()
    if kind == "utf8_as_cp949":
        return raw.decode("cp949"), text
    if kind == "utf8_as_cp949_with_losses":
        return raw.decode("cp949", "replace").replace("\ufffd", rng.choice("\ufffd?")), text
    if kind == "utf8_as_windows1252":
        return "".join(windows_1252(byte) for byte in raw), text
    if kind == "cp949_as_latin1":
        return text.encode("cp949", "ignore").decode("latin-1"), text
    once = raw.decode("latin-1")
    if kind == "latin1_without_controls":
        return re.sub("[\x80-\x9f]", "", once).replace("\xa0", " "), text
    return once.encode().decode("latin-1") if kind == "encoded_twice" else once, text


@cache
def survives_cp949(word: str) -> bool:
    """Whether the UTF-8 bytes of a word read as CP949 are characters, and the same bytes again."""
    try:
        return word.encode().decode("cp949").encode("cp949") == word.encode()
    except UnicodeError:
        return False


def windows_1252(byte: int) -> str:
    """The character that browsers show for a byte: a control character for the five bytes without one."""
    return bytes([byte]).decode("latin-1" if byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else "cp1252")


def link_spam(sources: Sources, rng: Random) -> str:
    """Advertisements for services in cities, with links; in half of the documents a real sentence after a few lines."""
    cities, services = rng.sample(WORDS["cities"], rng.randint(1, 6)), rng.sample(WORDS["services"], rng.randint(1, 4))
    lines = []
    for number in range(rng.randint(10, 40)):
        code = "".join(rng.choices("abcdefghijkmnpqrstuvwxyz23456789", k=6))
        filled = rng.choice(WORDS["spam_lines"]).format(
            url=rng.choice(["http://{}.example.com/{}", "www.{}.example.net/?p={}"]).format(code, number),
            city=rng.choice(cities), service=rng.choice(services), tail=rng.choice(WORDS["spam_tails"]), code=code,
        )  # fmt: skip
        lines.append(filled)
    if rng.random() < 0.5:
        lines[5:5] = [rng.choice(sources["reviews"])]
    return "\n".join(lines)


def word_list(sources: Sources, rng: Random) -> str:
    """Titles, prices, menus or tags without a sentence."""
    count = rng.randint(40, 150)
    style = rng.randrange(4)
    if style == 0:
        return "\n".join(title[:20] for title in rng.sample(sources["titles"], count))
    if style == 1:
        prices = (
            f"{rng.choice(WORDS['products'])} {rng.randint(9, 999)},{rng.choice(['000', '900'])}원"
            for _ in range(count)
        )
        return "\n".join(prices)
    if style == 2:
        return "\n".join(" > ".join(rng.sample(WORDS["menu"], 3)) for _ in range(count))
    tags = [rng.choice(WORDS["cities"]) + rng.choice(WORDS["services"]) for _ in range(count)]
    return rng.choice([", ", " ", " | ", " #"]).join(tags)


@cache
def library() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """English documentation and source code of modules of the standard library."""
    prose: dict[str, None] = {}
    code: list[str] = []
    for path in islice(sorted(Path(json.__file__).parent.parent.glob("[a-t]*.py")), 150):
        text = path.read_text("utf-8", errors="replace")
        code.append(text)
        for node in documented(ast.parse(text)):
            words = ast.get_docstring(node) or ""
            if len(words) > 300 and ">>>" not in words and sum(map(str.isalpha, words)) > 0.7 * len(words):
                prose[words] = None
    return tuple(prose), tuple(code)


def documented(tree: ast.Module) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef]:
    """The module, its classes and functions; expressions, most of a tree, contain none."""
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield node
        nodes += [inner for inner in ast.iter_child_nodes(node) if not isinstance(inner, ast.expr)]


def source_code(sources: Sources, rng: Random) -> str:
    """Thirty to eighty lines of a module, in a third of the documents with Korean comments."""
    lines = rng.choice(library()[1]).split("\n")
    at = rng.randrange(max(1, len(lines) - 80))
    lines = lines[at : at + rng.randint(30, 80)]
    if rng.random() < 0.33:
        for number in sorted(rng.sample(range(len(lines)), min(5, len(lines))), reverse=True):
            lines.insert(number, f"    # {rng.choice(WORDS['code_comments'])}")
    return "\n".join(lines)


def boilerplate(sources: Sources, rng: Random) -> str:
    """A sentence, two paragraphs, lines of menus between short titles, or notices, again and again."""
    style = rng.randrange(4)
    if style == 0:
        return "\n".join([rng.choice(sources["reviews"])] * rng.randint(8, 40))
    if style == 1:
        return " ".join(rng.sample(sources["reviews"], 2) * rng.randint(5, 20))
    if style == 2:
        buttons = " ".join(rng.sample(WORDS["menu"], 8))
        return "\n".join(f"{title[:20]}\n{buttons}" for title in rng.sample(sources["titles"], rng.randint(15, 40)))
    return "\n".join(rng.sample(WORDS["boilerplate"], 2) * rng.randint(3, 8))


def numbers(sources: Sources, rng: Random) -> str:
    """A table of numbers, with a heading or without."""
    columns, head = (
        rng.randint(3, 8),
        rng.choice(["", "날짜 시가 고가 저가 종가 거래량\n", "회차 번호 당첨금\n", "위도 경도 고도\n"]),
    )
    shapes: Sequence[Callable[[], str]] = (
        lambda: f"{rng.randint(1, 99999):,}",
        lambda: f"{rng.uniform(-100, 200):.{rng.randint(1, 6)}f}",
        lambda: str(rng.randint(1, 45)),
        lambda: f"20{rng.randint(10, 25)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
    )
    row = rng.choices(shapes, k=columns)
    mark = rng.choice([" ", "\t", ",", " | "])
    return head + "\n".join(mark.join(shape() for shape in row) for _ in range(rng.randint(20, 100)))


def endless_line(sources: Sources, rng: Random) -> str:
    """Real text in one line without any punctuation, in half of the documents without blanks."""
    size = rng.choice([20_000, 50_000, 100_000, 200_000])
    texts: list[str] = []
    while sum(map(len, texts)) < size:
        texts.append(re.sub(r"[^\w\s]|_", "", rng.choice(sources["damaged"])))
    return rng.choice([" ", ""]).join(" ".join(texts).split())[:size]


MAKERS: dict[str, Callable[[Sources, Random], str]] = {
    "link_spam": link_spam,
    "lists": word_list,
    "english": lambda sources, rng: rng.choice(library()[0]),
    "code": source_code,
    "boilerplate": boilerplate,
    "numbers": numbers,
    "endless_line": endless_line,
}

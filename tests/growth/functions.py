"""Every public function that takes text, and how to call it with any text.

Found by signature: public, in a module of the packages, its first argument annotated as text. Each is either called
(alone, or as ``CALLS`` says) or named in ``LEFT_OUT`` with the reason.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

from corpus.noise import SentenceLimits
from corpus.pii.detect import find_pii
from corpus.pii.protect import Protection
from corpus.reading.containers import SCANNERS
from corpus.reading.quarantine import mask
from tests.growth.patterns import sources

TEXT = {"str", "bytes"}
TEXTS = {"list[str]", "Sequence[str]", "Iterable[str]", "Iterator[str]", "tuple[str, ...]"}
BLOCK_BYTES = 1 << 12

NAMES = "a name, a path or a pattern of paths of the person who runs it"
OWN = "fed from our own templates, tables or documents in the repository"
MODEL = "names or feeds a model; the tokenizer of the model sets the time"
SMALL = "a word, a character or a digit string whose length the caller bounds"
LEFT_OUT: dict[str, str] = {
    r"launch\.(?!sample\.(?:grammar|josa)\b).*": NAMES,
    r"launch\.sample\..*": OWN,
    r"corpus\.card\.page\.(?:name|render)": OWN,
    r"corpus\.card\.page\.mark_(?:change|replaced)": "difflib is not linear; it gets samples",
    r"corpus\.reading\.files\..*|corpus\.reading\.inputs\.find_inputs|corpus\.decontamination\.benchmarks\..*": NAMES,
    r"corpus\.decontamination\.index\.build_index|corpus\.near\.signatures|corpus\.toxicity\..*": MODEL,
    r"corpus\.folding\.fold_all|corpus\.decontamination\.ngrams\.batch_texts": "array code, measured by bench corpus",
    r"corpus\.pii\.checks\..*|corpus\.pii\.shapes\.(?:widen_like|refill)|corpus\.pii\.replace\.canonical": SMALL,
    r"corpus\.pii\.key\..*|corpus\.noise\.rules_without|corpus\.splitters\.load_splitter": NAMES,
    r"corpus\.reading\.hub\.parse_hub_name": NAMES,
    r"tokenizer\.morphemes\.morphemes_of": "mecab's own search over brackets in a row is not linear; it gets words",
    r"tokenizer\.(?:count|export|fit|run)\..*|tokenizer\.pruning\.(?:prune|uses_in_file|count_uses)": OWN,
    r"tokenizer\.(?:boundaries\.locate_\w+|pruning\.is_character|train\.join|unknowns\.\w+)": SMALL,
    r"tokenizer\.(?:morphemes\.split_words)": "words of a vocabulary",
    r"finetune\.(?:encoder|export|features|hyperparameters|registry|score|heads|hub|forms)\..*": MODEL,
    r"finetune\.(?:errors|klue_baseline)\..*": "examples of the published benchmark files",
    r"finetune\.metrics\.classification\..*": OWN,
    r"finetune\.tasks\.(?:dp_words|klue_\w+|labels|re_markers|wos|wos_turns|mrc_windows\.tokenize)\b.*": MODEL,
    r"finetune\.tasks\.wos_values\.(?:cut_readably|find_unknown)": MODEL,
}


def _blocks(text: str) -> Iterable[bytes]:
    raw = text.encode("utf-8", "surrogatepass")
    return (raw[start : start + BLOCK_BYTES] for start in range(0, len(raw), BLOCK_BYTES))


def _scan(kind: str, opening: str, text: str) -> None:
    for _ in SCANNERS[kind](iter(_blocks(opening + text)), None):
        pass


def _hide(mode: Any, text: str) -> None:
    Protection(mode, 1).hide(text, "document")


def _called(place: str) -> Callable[..., Any]:
    module, _, name = place.rpartition(".")
    return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]


CALLS: dict[str, Callable[[str], object]] = {
    "corpus.noise.remove_noise": lambda text: _called("corpus.noise.remove_noise")(text, Counter()),
    "corpus.noise.is_too_short": lambda text: _called("corpus.noise.is_too_short")(text, SentenceLimits(5, 10)),
    "corpus.noise.has_too_many_han_or_kana": lambda text: _called("corpus.noise.has_too_many_han_or_kana")(
        text, SentenceLimits(5, 10)
    ),
    "corpus.noise.failed_rule": lambda text: _called("corpus.noise.failed_rule")(text, SentenceLimits(5, 10)),
    "corpus.pii.detect.find_pii_in_sentences": lambda text: _called("corpus.pii.detect.find_pii_in_sentences")(
        [text[start : start + 40] for start in range(0, len(text), 40)]
    ),
    "corpus.pii.protect.cover": lambda text: _called("corpus.pii.protect.cover")(text, find_pii(text), "mask"),
    "corpus.reading.namumark.cut_spans": lambda text: _called("corpus.reading.namumark.cut_spans")(text, "(", ")", 9),
    "corpus.reading.quarantine.mask": lambda text: mask(text.encode("utf-8", "surrogatepass")),
    "corpus.reading.quarantine.quarantine_line": lambda text: None,
    "corpus.splitters.aligned_starts": lambda text: list(
        _called("corpus.splitters.aligned_starts")(text, text.split("\n"))
    ),
    "corpus.pii.protect: replace": partial(_hide, "replace"),
    "corpus.pii.protect: mask": partial(_hide, "mask"),
    "corpus.pii.protect: tag": partial(_hide, "tag"),
    "corpus.pii.protect: drop": partial(_hide, "drop"),
    "finetune.tasks.wos_values.restore_value": lambda text: _called("finetune.tasks.wos_values.restore_value")(
        text, {}, [text]
    ),
    **{f"corpus.reading.containers: {kind}": partial(_scan, kind, "[" * (kind == "array")) for kind in SCANNERS},
    "corpus.reading.containers: array of objects": partial(_scan, "array", '[{"a":"'),
}
"""Functions with further arguments, and methods that are a public door for text ("module: what")."""


@cache
def text_functions() -> list[str]:
    """ "module.name" of every public function whose first argument is annotated as text."""
    found = []
    for module, tree in sources().items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.args.args:
                annotation = node.args.args[0].annotation
                if annotation is not None and ast.unparse(annotation) in TEXT | TEXTS:
                    found.append(f"{module}.{node.name}")
    return found


def calls() -> dict[str, Callable[[str], object]]:
    """How to call each text function that is not left out.

    Raises:
        AssertionError: a function with further arguments that neither table names.
    """
    known = dict(CALLS)
    for place in text_functions():
        if place in known or any(re.fullmatch(pattern, place) for pattern in LEFT_OUT):
            continue
        module, _, name = place.rpartition(".")
        node = next(n for n in sources()[module].body if isinstance(n, ast.FunctionDef) and n.name == name)
        required = len(node.args.args) - len(node.args.defaults)
        assert required == 1, f"{place} takes {required} arguments: say in CALLS how to call it, or leave it out"
        known[place] = _called(place)
    return known


def unused_reasons() -> list[str]:
    """Patterns of ``LEFT_OUT`` that no function of today fits."""
    return [pattern for pattern in LEFT_OUT if not any(re.fullmatch(pattern, place) for place in text_functions())]

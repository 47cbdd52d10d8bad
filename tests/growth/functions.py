"""Every public function that takes text, and how to call it with any text.

Found by signature: public, in a module of the packages, its first argument annotated as text. Each is either called
(alone, or as ``CALLS`` says) or named in ``LEFT_OUT`` with the reason.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from itertools import chain
from typing import Any

from corpus.decontamination.index import ContaminationIndex, build_index
from corpus.decontamination.match_rule import MatchRule
from corpus.documents.errors import BadInput
from corpus.pii.detect import find_pii
from corpus.pii.fold import fold_disguises, fold_signs
from corpus.pii.hide import PiiHider
from corpus.pii.replace import Originals
from corpus.pii.types import ALL_TYPES
from corpus.reading.containers import SCANNERS, UnreadableRecord
from corpus.reading.read import mask_record
from finetune.annotation.check.items import Item
from finetune.examples import Example
from finetune.generative.kr_eval import metrics as kr_metrics
from finetune.generative.prompts import PROMPTS
from launch.pii.json_text import Walker, change_document, change_record
from launch.pii.plain_text import change_blocks, spans_by_line
from launch.pii.streams import line_blocks, peek
from launch.pii.table_text import change_rows
from launch.pii.work import EVERYTHING, Finding, Hiding, paths_of
from tests.growth.patterns import sources

TEXT = {"str", "bytes"}
TEXTS = {"list[str]", "Sequence[str]", "Iterable[str]", "Iterator[str]", "tuple[str, ...]"}
BLOCK_BYTES = 1 << 12
SECRET = bytes(32)
HIDING, FINDING = Hiding(PiiHider("replace", SECRET)), Finding(is_flat=True)

NAMES = "a name, a path or a pattern of paths of the person who runs it"
OWN = "fed from our own templates, tables or documents in the repository"
MODEL = "names or feeds a model; the tokenizer of the model sets the time"
SMALL = "a word, a character or a digit string whose length the caller bounds"
LEFT_OUT: dict[str, str] = {
    r"launch\.(?!sample\.|pii\.|plain_yaml\.).*": NAMES,
    r"launch\.sample\..*": OWN,
    r"launch\.pii\.(?:run\.(?:plan_jobs|process)|work\.read_protection)": NAMES,
    r"launch\.pii\.streams\.explain_problem|launch\.pii\.streams\.print_note": "our own messages",
    r"corpus\.card\.page\.render|corpus\.documents\.templates\.load_templates": OWN,
    r"corpus\.reading\.files\..*|corpus\.reading\.inputs\.find_inputs": NAMES,
    r"finetune\.annotation\.split\.distances_from_uniform": "n-grams of scikit-learn, limited in length",
    r"finetune\.annotation\.tools\.reader_of": NAMES,
    r"finetune\.embed\.embedder\.(?:build_net|export_embedder)": NAMES,
    r"finetune\.generative\.client\.ask\.check_cut": NAMES,
    r"finetune\.generative\.prompts\.answers\.any_of": OWN,
    r"finetune\.generative\.prompts\.ner\.count_claims": "the parts of parse, which is called",
    r"finetune\.tasks\.similarity\.score_ranking": NAMES,
    r"finetune\.embed\.evaluate\.tfidf_cosines": "counts of the bigrams, which is called",
    r"finetune\.embed\.embedder\.tokenize": "the tokenizers of transformers, as in finetune.examples",
    r"corpus\.decontamination\.(?:benchmarks\..*)": NAMES,
    r"corpus\.decontamination\.index\.build_index": MODEL,
    r"corpus\.quality\.toxicity\..*": MODEL,
    r"corpus\.quality\.characters\.read_characters": "array code",
    r"corpus\.sentences\.folding\.fold_all|corpus\.decontamination\.ngrams\.batch_texts": "array code",
    r"corpus\.pii\.formats\.\w+\.(?:resident|business|luhn)_check_digit": SMALL,
    r"corpus\.pii\.formats\.shapes\.(?:is_birth_date|looks_typed|widen_like|refill)": SMALL,
    r"corpus\.pii\.replace\.canonical_form": SMALL,
    r"corpus\.noise\.remove\.rules_except|corpus\.documents\.section\.warn_once": NAMES,
    r"corpus\.pii\.key\..*": NAMES,
    r"corpus\.reading\.containers\.parse_object": "parse_json, which is called",
    r"corpus\.pii\.cover\.drop_texts": "part of hide in mode drop, which is called",
    r"corpus\.reading\.hub\.parse_hub_name": NAMES,
    r"corpus\.documents\.accelerator\..*|corpus\.documents\.model_files\.part_name": NAMES,
    r"corpus\.quality\.length\.min_sentence_chars": NAMES,
    r"corpus\.documents\.mecab\..*": "its own search over brackets is not linear; it gets words",
    r"tokenizer\.(?:building\.(?:count|export)|run)\..*": OWN,
    r"tokenizer\.building\.pruning\.(?:prune|uses_in_file|count_uses)": OWN,
    r"tokenizer\.measuring\.(?:boundaries\.locate_|gold\.cut_at_)\w+": SMALL,
    r"tokenizer\.building\.(?:pruning\.count_parts|merges\.join)": SMALL,
    r"tokenizer\.words\.split_words": "words of a vocabulary",
    r"finetune\.(?:encoder\.\w+|registry|train|heads|saved_models|data\.hub|score\.scores)\..*": MODEL,
    r"finetune\.(?:task_names\..*|task\.published_facts)": NAMES,
    r"finetune\.data\.(?:files\.in_one_sentence|public_sets\..*)": NAMES,
    r"finetune\.generative\.prompts\.(?:labels\.(?:make_label_prompt|fields_renderer)|prompt\.korean_texts)": NAMES,
    r"finetune\.generative\.client\.(?:ask|likelihood)\..*": NAMES,
    r"finetune\.generative\.klue\..*|finetune\.generative\.(?:exports|kr_eval\.run)\..*": NAMES,
    r"finetune\.generative\.kr_eval\.metrics\.(?:measure\w*|count_ngrams)": "names and lists of answers",
    r"finetune\.generative\.kr_eval\.metrics\.(?:score_as_published|published_bleu)": NAMES,
    r"finetune\.generative\.kr_eval\.metrics\.published_char_f1": "as published: quadratic",
    r"finetune\.generative\.mt_bench\.judge\.fence": NAMES,
    r"finetune\.queue\..*": "names, settings and processes",
    r"finetune\.score\.bootstrap\.(?:draw|number_groups)": "names of groups, a look-up each",
    r"tokenizer\.measuring\.(?:statistics|unknown)\..*": SMALL,
    r"finetune\.score\.scores\.export_predictions|finetune\.inference\.onnx_export\..*": MODEL,
    r"finetune\.(?:score\.errors|tasks\.\w+\.published)\..*": "examples of the published benchmark files",
    r"finetune\.tasks\.(?:labels|\w+\.task|\w+\.reader|re\.markers)\b.*": MODEL,
    r"finetune\.tasks\.(?:mrc\.windows\.tokenize|ner\.metrics\.score_entities)": MODEL,
    r"finetune\.tasks\.wos\.values\.(?:cut_readably|find_unknown)": MODEL,
    r"finetune\.tasks\.wos\.values\.merge": "begins with a word of the protocol",
}


def _blocks(text: str) -> Iterable[bytes]:
    raw = _raw(text)
    return (raw[start : start + BLOCK_BYTES] for start in range(0, len(raw), BLOCK_BYTES))


def _scan(kind: str, opening: str, text: str) -> Any:
    return list(SCANNERS[kind](iter(_blocks(opening + text)), None))


def _hide(mode: Any, text: str) -> Any:
    return PiiHider(mode, SECRET).hide(text, "document")


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@cache
def _originals() -> Originals:
    originals = Originals()
    for length in range(1, 100, 9):
        originals.add("URL", "가나다라마"[length % 5] * length)
    return originals


def _called(place: str) -> Callable[..., Any]:
    module, _, name = place.rpartition(".")
    return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]


def _hide_in_sentences(mode: Any, text: str) -> Any:
    return PiiHider(mode, SECRET, types=ALL_TYPES).hide_in_sentences(_pieces(text), "document")


def _pieces(text: str) -> list[str]:
    return [text[start : start + 40] for start in range(0, len(text), 40)]


def _record(text: str, second: str = "") -> str:
    return json.dumps({"id": "1", "text": text, "more": {second or "전화": [text]}}, ensure_ascii=False)


def _walk(path: str, text: str) -> Any:
    """Change the strings of a record as the ``pii`` commands do."""
    return change_record(_record(text), Walker(paths_of([path])), HIDING, 0)


def _walk_broken(text: str) -> Any:
    """A document that need not be JSON, in pieces."""
    changed = []
    for work in (HIDING, FINDING):
        with suppress(UnreadableRecord):
            changed += change_document(_parts(text), EVERYTHING, work, _meet)
    return changed


def _change_table(delimiter: str, text: str) -> Any:
    return [list(change_rows(_parts(text), delimiter, EVERYTHING, work, _meet)) for work in (HIDING, FINDING)]


def _change_plain(text: str) -> Any:
    lines = list(chain.from_iterable(line_blocks(_parts(text))))
    return [list(change_blocks(iter(lines), work, _meet, refuses_json=False)) for work in (HIDING, FINDING)]


def _meet(place: str, reason: str, raw: str) -> None:
    """Records that cannot be read are passed over."""


def _parts(text: str) -> list[str]:
    return [text[start : start + BLOCK_BYTES] for start in range(0, len(text), BLOCK_BYTES)]


@cache
def _index() -> ContaminationIndex:
    items = ["윤슬동 도서관은 매주 월요일에 문을 닫는다.", "가 " * 30, "010-1234-5678 " * 3, "1-" * 30, "ab " * 20]
    return build_index(items, MatchRule(min_item_words=1))[0]


def _unless(errors: type[Exception], call: str, text: str, *further: Any) -> Any:
    """Call a function that refuses most texts."""
    with suppress(errors):
        return _called(call)(text, *further)


ASKED = {"text": "윤슬 가 1.", "words": ["가", "1."], "context": "윤슬 가 1.", "turns": ["", "가 1."], "ontology": {}}


def _answer(task: str, text: str) -> Any:
    """A model's answer is read."""
    return PROMPTS[task].parse(
        text, Example("a", None, ASKED | {"title": "은행 금리 오른다", "sentence1": "가", "sentence2": "나"})
    )


CALLS: dict[str, Callable[[str], object]] = {
    "corpus.noise.remove.remove_noise": lambda text: _called("corpus.noise.remove.remove_noise")(text, Counter()),
    "corpus.quality.rules.failed_by_documents": lambda text: _called("corpus.quality.rules.failed_by_documents")(
        [text], [_pieces(text)], [()]
    ),
    "corpus.quality.rules.failed_by_sentences": lambda text: _called("corpus.quality.rules.failed_by_sentences")(
        _pieces(text), [()] * len(_pieces(text))
    ),
    "corpus.quality.length.is_too_short": lambda text: _called("corpus.quality.length.is_too_short")(text, 200),
    "corpus.pii.detect.find_pii_in_sentences": lambda text: _called("corpus.pii.detect.find_pii_in_sentences")(
        _pieces(text)
    ),
    "corpus.pii.detect: all types, a label": lambda text: find_pii(text, ALL_TYPES, "전화"),
    "corpus.pii.detect: table below a head": lambda text: find_pii(f"이름,전화,계좌\n{text}"),
    "corpus.pii.cover.cover_spans": lambda text: _called("corpus.pii.cover.cover_spans")(text, find_pii(text), "mask"),
    "corpus.pii.fold: disguises": lambda text: fold_disguises(fold_signs(text).text),
    "corpus.pii.replace.normal_forms": lambda text: _called("corpus.pii.replace.normal_forms")("EMAIL", text),
    "corpus.pii.replace: a long replacement": lambda text: _originals().occur_in("URL", text),
    "corpus.documents.encoding.decodes": lambda text: _called("corpus.documents.encoding.decodes")(_raw(text), "cp949"),
    "corpus.documents.encoding.line_to_utf8": lambda text: _called("corpus.documents.encoding.line_to_utf8")(
        _raw(text), "cp949"
    ),
    "corpus.documents.encoding.detect_encoding": lambda text: _called("corpus.documents.encoding.detect_encoding")(
        _raw(text)
    ),
    "corpus.documents.encoding: cp949": lambda text: _called("corpus.documents.encoding.detect_encoding")(
        text.encode("cp949", "ignore")
    ),
    "finetune.annotation.draw.problem_of": lambda text: _called("finetune.annotation.draw.problem_of")(
        text, 1, len(text), is_premise=True
    ),
    "finetune.annotation.matching.rouge": lambda text: _called("finetune.annotation.matching.rouge")(text, text[::-1]),
    "finetune.annotation.matching.match_sentences": lambda text: _called(
        "finetune.annotation.matching.match_sentences"
    )([text, text[::-1]], 1),
    "finetune.annotation.forms.to_python_offsets": lambda text: _unless(
        BadInput, "finetune.annotation.forms.to_python_offsets", text, (1, 2, ""), text[:1], ""
    ),
    "finetune.tasks.ner.task.find_entities": lambda text: _called("finetune.tasks.ner.task.find_entities")(
        text, ["B-PS", "I-PS", "O"] * len(text)
    ),
    "finetune.tasks.re.markers.read_markers": lambda text: _unless(
        BadInput, "finetune.tasks.re.markers.read_markers", text, "line 1"
    ),
    "corpus.reading.containers.parse_json": lambda text: _unless(
        UnreadableRecord, "corpus.reading.containers.parse_json", text.encode("utf-8", "surrogatepass")
    ),
    "corpus.reading.parquet.read_page_header": lambda text: _unless(
        ValueError, "corpus.reading.parquet.read_page_header", _raw(text)
    ),
    "corpus.card.page.first_difference": lambda text: _called("corpus.card.page.first_difference")(text, text + "."),
    "corpus.card.page.excerpts": lambda text: _called("corpus.card.page.excerpts")(text, text[::-1]),
    "corpus.sentences.wrapping.find_wrapping": lambda text: _called("corpus.sentences.wrapping.find_wrapping")(
        _pieces(text)
    ),
    "corpus.sentences.wrapping: every line": lambda text: _called("corpus.sentences.wrapping.rejoin_lines")(
        "\n".join(_pieces(text))
    ),
    "corpus.decontamination.index: one sentence": lambda text: _index().find([text]),
    "corpus.decontamination.index: many sentences": lambda text: _index().find_in_documents([_pieces(text)]),
    "corpus.reading.namumark.cut_spans": lambda text: _called("corpus.reading.namumark.cut_spans")(text, "(", ")", 9),
    "corpus.reading.read.mask_record": lambda text: mask_record(text.encode("utf-8", "surrogatepass")),
    "corpus.reading.read.quarantine_line": lambda text: None,
    "corpus.pii.hide: replace": partial(_hide, "replace"),
    "corpus.pii.hide: mask": partial(_hide, "mask"),
    "corpus.pii.hide: tag": partial(_hide, "tag"),
    "corpus.pii.hide: drop": partial(_hide, "drop"),
    "finetune.tasks.dp.alignment.locate_words": lambda text: _called("finetune.tasks.dp.alignment.locate_words")(
        text.split(" "), [(place, place + 1) for place in range(len(text))]
    ),
    "finetune.generative.prompts.choices.find_choice": partial(_answer, "ynat"),
    "finetune.generative.kr_eval.metrics.multiset_f1": lambda text: kr_metrics.multiset_f1(text, text),
    "finetune.generative.kr_eval.metrics.clean_as_published": lambda text: kr_metrics.clean_as_published(
        text, "kmmlu_Law"
    ),
    "finetune.generative.kr_eval.metrics.published_set_f1": lambda text: kr_metrics.published_set_f1(text, "한 줄"),
    **{
        f"finetune.generative.prompts.{name.removeprefix('klue-')}.parse": partial(_answer, name)
        for name in ("klue-ner", "klue-dp", "klue-mrc", "wos")
    },
    "finetune.generative.prompts.labels.parse_similarity": partial(_answer, "klue-sts"),
    "finetune.tasks.wos.values.restore_value": lambda text: _called("finetune.tasks.wos.values.restore_value")(
        text, {}, [text]
    ),
    "corpus.pii.hide: sentences replaced": partial(_hide_in_sentences, "replace"),
    "corpus.pii.hide: sentences dropped": partial(_hide_in_sentences, "drop"),
    "corpus.documents.atomic_files.parse_json": partial(
        _unless, ValueError, "corpus.documents.atomic_files.parse_json"
    ),
    "finetune.annotation.check.cells.damage_of_cell": lambda text: _called(
        "finetune.annotation.check.cells.damage_of_cell"
    )(text, text[1:]),
    "finetune.annotation.check.cells: all damage": lambda text: list(
        _called("finetune.annotation.check.cells.check_texts")([Item("1", "dev", {"text": text})])
    ),
    "finetune.annotation.check.records.check_answers": lambda text: _called(
        "finetune.annotation.check.records.check_answers"
    )(text, [text[:9]], [3]),
    "finetune.annotation.check.tagged.check_spans": lambda text: _called(
        "finetune.annotation.check.tagged.check_spans"
    )(text, [[0, 1, "PS"]]),
    "finetune.annotation.check.tagged.check_edges": lambda text: list(
        _called("finetune.annotation.check.tagged.check_edges")(text, [(0, 9)])
    ),
    "launch.plain_yaml.parse_yaml": partial(_unless, ValueError, "launch.plain_yaml.parse_yaml"),
    "launch.pii.json_text.change_document": _walk_broken,
    "launch.pii.json_text: many records": lambda text: _walk_broken(
        "[" + ",".join(_record(part, part) for part in _pieces(text)) + "]"
    ),
    "launch.pii.json_text.check_record": partial(_unless, UnreadableRecord, "launch.pii.json_text.check_record"),
    "launch.pii.json_text.read_document": partial(_unless, UnreadableRecord, "launch.pii.json_text.read_document"),
    "launch.pii.json_text.change_record": partial(_walk, "text"),
    "launch.pii.json_text: change below a key": partial(_walk, "more.전화"),
    "launch.pii.json_text: find in a record": lambda text: change_record(_record(text), Walker(EVERYTHING), FINDING, 0),
    "launch.pii.plain_text.spans_by_line": lambda text: list(spans_by_line(_pieces(text), FINDING)),
    "launch.pii.plain_text: blocks": _change_plain,
    "launch.pii.streams.line_blocks": lambda text: list(line_blocks(_parts(text))),
    "launch.pii.streams.peek": lambda text: peek(iter(_parts(text))),
    "launch.pii.table_text.choose_delimiter": lambda text: _called("launch.pii.table_text.choose_delimiter")(
        text, False
    ),
    "launch.pii.table_text.looks_like_a_head": lambda text: _called("launch.pii.table_text.looks_like_a_head")(
        text.split(",")
    ),
    "launch.pii.table_text.rows_of": partial(_change_table, ","),
    "launch.pii.table_text.change_rows": partial(_change_table, ";"),
    "launch.pii.table_text: rows below a head": lambda text: _change_table("|", f"이름|전화\n{text}"),
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

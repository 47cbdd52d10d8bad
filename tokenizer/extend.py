"""Extension of a published WordPiece vocabulary with pieces of a domain, after its last id; old ids do not change.

The folder keeps the class, the normalizer and all settings of the old one. New pieces are entries of its model and not
added tokens, so they follow ``##``. extension.json lists the old pieces of each (``tokenizer.building.new_pieces``),
from which pretraining initializes the embeddings. An encoder must be trained further to use the new pieces.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from tokenizers import Tokenizer

from corpus.documents.atomic_files import atomic_write, read_json_object
from corpus.documents.errors import BadInput, first_line
from corpus.documents.model_files import refuse_links
from corpus.documents.shards import shard_paths
from corpus.documents.units import MapUnits, reuse_processes
from corpus.documents.units import map_units as map_in_processes
from tokenizer.building.export import CARD_NAME, ROLES, write_json
from tokenizer.building.merges import PREFIX
from tokenizer.building.new_pieces import NewPiece, Vocabulary, choose_pieces
from tokenizer.building.units import WORDS_NAME, read_counts
from tokenizer.config import TokenizerConfig
from tokenizer.measuring.encoder import load_tokenizer, make_encoder
from tokenizer.run import count_corpus, weigh_types

log = logging.getLogger(__name__)

EXTENSION_NAME = "extension.json"
VOCABULARY_NAME, TOKENIZER_NAME, SETTINGS_NAME = "vocab.txt", "tokenizer.json", "tokenizer_config.json"
SPECIAL_NAME = "special_tokens_map.json"
KEPT_NAMES = (SETTINGS_NAME, SPECIAL_NAME, "added_tokens.json")
TYPES_PER_BATCH = 20_000
AGAIN = "extend the tokenizer again"
CARD = """---
language: ko
library_name: transformers
tags: [korean, wordpiece, bert, malmoi]
---

# Korean WordPiece vocabulary, {vocab_size:,} entries

A vocabulary of {base_size:,} entries (sha256 of its vocab.txt: `{base_sha256:.16}`) with {added:,} pieces of a domain
after its last id, added by malmoi. Old ids and all rules are unchanged. A model of the old vocabulary must be trained
further to use the new pieces.

On the text of the pieces, {changed_eojeols:.1%} of the words are encoded differently:

| | entries | pieces per word | [UNK] per word |
| --- | ---: | ---: | ---: |
{table}
"""


class BaseVocabulary(NamedTuple):
    """The old vocabulary: its encoder, all entries by id (including added tokens), and its [UNK]."""

    tokenizer: Tokenizer
    entries: list[str]
    unknown: str


def extend_vocabulary(
    base: Path,
    corpus: Path,
    out: Path,
    size: int,
    *,
    multiple: int = 1,
    workers: int = 1,
    map_units: MapUnits | None = None,
) -> dict[str, Any]:
    """Write the extended tokenizer folder and extension.json into ``out``; returns the content of extension.json.

    Args:
        base: a tokenizer or model folder, or a vocab.txt (which keeps case and accents).
        size: number of new pieces; fewer if the text has no more frequent ones.
        multiple: more pieces are added until the size of the vocabulary is a multiple of this.
    """
    old = read_base(base)
    size += -(len(old.entries) + size) % multiple
    work, discarded = out / "work", out / "work.discarded"
    shutil.rmtree(discarded, ignore_errors=True)
    with reuse_processes(workers):
        do = partial(map_units or map_in_processes, workers=workers)
        types, counts = count_corpus(shard_paths(corpus / "documents"), work, do)
        if not counts["eojeols"]:
            raise BadInput(f"{corpus}: no words in the text; give text of the domain")
        # a base in jamo needs words in jamo, with symbols separated (tokenizer.words)
        config = TokenizerConfig(builder="malmoi", jamo_fallback=normalize(old.tokenizer, "한") != "한")
        segmented, _ = weigh_types(types, counts["frequencies"], config, work, do)
        chosen = choose_pieces(Vocabulary(old.entries, old.unknown), words_of(old, segmented), size)
        if not chosen:
            raise BadInput(f"{base}: no piece would shorten this text; give more text of the domain, or keep the base")
        if len(chosen) < size:
            log.warning("added only %d of %d pieces: no other occurs often enough", len(chosen), size)
        write_folder(base, old, [piece.piece for piece in chosen], out)
        figures = compare(base, out, types, work, do)
    extension = describe(old, chosen, {"sources": counts["sources"], **figures})
    finish(extension, out)
    work.replace(discarded)  # in one step: a half-deleted folder must not look like finished work
    shutil.rmtree(discarded)
    return extension


def extend_as(earlier: Path, base: Path, out: Path) -> dict[str, Any]:
    """Write the base with the pieces of an extended folder into ``out``; returns its extension.json."""
    path, old = earlier / EXTENSION_NAME, read_base(base)
    if not path.is_file():
        raise BadInput(f"{path}: file not found; give a folder of `malmoi tokenizer extend`, or a number of pieces")
    extension = read_json_object(path, AGAIN)
    if extension.get("base_sha256") != digest(old.entries):
        raise BadInput(f"{earlier}: extends another vocabulary than {base}; {AGAIN} from the right one")
    try:
        write_folder(base, old, [str(piece["piece"]) for piece in extension["pieces"]], out)
        finish(extension, out)
    except (KeyError, TypeError, ArithmeticError) as error:
        raise BadInput(f"{path}: not written by `malmoi tokenizer extend` ({error!r}); {AGAIN}") from None
    return extension


def read_base(path: Path) -> BaseVocabulary:
    """The vocabulary to extend: from tokenizer.json, else as transformers loads the folder, else from vocab.txt."""
    tokenizer = _load(path)
    model = json.loads(tokenizer.to_str())["model"]
    if model["type"] != "WordPiece" or model["continuing_subword_prefix"] != PREFIX:
        raise BadInput(
            f"{path}: a {model['type']} tokenizer; only WordPiece with {PREFIX} can be extended (klue/bert-base's is)"
        )
    ids = tokenizer.get_vocab(with_added_tokens=True)
    entries = sorted(ids, key=ids.__getitem__)
    if [ids[entry] for entry in entries] != list(range(len(entries))):
        raise BadInput(f"{path}: its ids do not run from 0 to {len(entries) - 1}; save the tokenizer again")
    if model["unk_token"] not in ids:
        raise BadInput(f"{path}: no entry {model['unk_token']}, its unknown token; save the tokenizer again")
    return BaseVocabulary(tokenizer, entries, model["unk_token"])


def _load(path: Path) -> Tokenizer:
    if path.is_file() or (path / TOKENIZER_NAME).is_file() or not (path / SETTINGS_NAME).is_file():
        return load_tokenizer(path)
    from transformers import AutoTokenizer

    refuse_links(path)
    try:
        loaded = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
        return Tokenizer.from_str(loaded.backend_tokenizer.to_str())
    except Exception as error:  # the libraries raise errors of any kind
        raise BadInput(
            f"{path}: no tokenizer that transformers can load ({first_line(error)}); save it again"
        ) from error


def words_of(old: BaseVocabulary, segmented: Sequence[Path]) -> Counter[str]:
    """Segmented words (``tokenizer.building.units``) after the normalizer of the old vocabulary."""
    words: Counter[str] = Counter()
    for word, count in read_counts(part / WORDS_NAME for part in segmented).items():
        words[" ".join(normalize(old.tokenizer, word).split())] += count
    words.pop("", None)  # words of marks that the normalizer drops
    return words


def normalize(tokenizer: Tokenizer, text: str) -> str:
    """The text after the normalizer."""
    return str(tokenizer.normalizer.normalize_str(text)) if tokenizer.normalizer else text


def write_folder(base: Path, old: BaseVocabulary, pieces: Sequence[str], out: Path) -> None:
    """Write the folder of the base with more entries in tokenizer.json and vocab.txt, and the same settings."""
    entries = [*old.entries, *pieces]
    content = json.loads(old.tokenizer.to_str())
    content["model"]["vocab"] = {piece: id_ for id_, piece in enumerate(entries)}
    out.mkdir(parents=True, exist_ok=True)
    atomic_write(out / TOKENIZER_NAME, json.dumps(content, ensure_ascii=False, indent=2) + "\n")
    atomic_write(out / VOCABULARY_NAME, "".join(f"{piece}\n" for piece in entries))
    folder = base if base.is_dir() else base.parent
    for name in KEPT_NAMES:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, out / name)
    roles = {f"{role}_token": token for role, token in ROLES.items() if token in old.entries}
    if not (out / SETTINGS_NAME).is_file():
        rules = {"do_lower_case": False, "strip_accents": False, "tokenize_chinese_chars": True}
        write_json(out / SETTINGS_NAME, {"tokenizer_class": "BertTokenizer", **rules, **roles})
    if not (out / SPECIAL_NAME).is_file() and len(roles) == len(ROLES):
        write_json(out / SPECIAL_NAME, roles)


def finish(extension: dict[str, Any], out: Path) -> None:
    """Write extension.json and the card."""
    text, short = extension["text"], summarize(extension)
    rows = [
        (name, size, *(f"{text[f'{what}_{name}'] / text['eojeols']:.4f}" for what in ("pieces", "unknown")))
        for name, size in (("before", extension["base_size"]), ("after", short["vocab_size"]))
    ]
    table = "\n".join(f"| {name} | {size:,} | {pieces} | {unknown} |" for name, size, pieces, unknown in rows)
    card = CARD.format(**short, **extension, table=table)
    atomic_write(out / CARD_NAME, card)
    write_json(out / EXTENSION_NAME, extension)


def compare(base: Path, out: Path, types: Sequence[Path], work: Path, do: MapUnits) -> dict[str, int]:
    """Counts of eojeols, of pieces and [UNK] before and after, and of eojeols that are encoded differently."""
    work_on = partial(_compare_types, base=base, out=out)
    parts = do(work_on, types, work / "compared", title="before and after")
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def _compare_types(types: Path, scratch: Path, *, base: Path, out: Path) -> dict[str, Any]:
    """Unit of work: a file of eojeol types to figures."""
    table = pq.read_table(types, columns=["eojeol", "frequency"])
    eojeols, counts = table["eojeol"].to_pylist(), table["frequency"].to_pylist()
    own = read_base(base)
    unknown = own.entries.index(own.unknown)
    before, after = (make_encoder(tokenizer, []) for tokenizer in (own.tokenizer, load_tokenizer(out)))
    totals = dict.fromkeys(
        ("eojeols", "pieces_before", "pieces_after", "unknown_before", "unknown_after", "changed"), 0
    )
    for start in range(0, len(eojeols), TYPES_PER_BATCH):
        batch = eojeols[start : start + TYPES_PER_BATCH]
        for old, new, count in zip(before.ids(batch), after.ids(batch), counts[start:], strict=False):
            totals["eojeols"] += count
            totals["pieces_before"] += count * len(old)
            totals["pieces_after"] += count * len(new)
            totals["unknown_before"] += count * old.count(unknown)
            totals["unknown_after"] += count * new.count(unknown)
            totals["changed"] += count * (old != new)
    return totals


def summarize(extension: dict[str, Any]) -> dict[str, Any]:
    """Summary of extension.json, with the names of a trained vocabulary."""
    text, added = extension["text"], len(extension["pieces"])
    return {
        "vocab_size": extension["base_size"] + added,
        "added": added,
        "fertility_before": text["pieces_before"] / text["eojeols"],
        "fertility": text["pieces_after"] / text["eojeols"],
        "unknown_ratio": text["unknown_after"] / text["pieces_after"],
        "changed_eojeols": text["changed"] / text["eojeols"],
    }


def digest(entries: Sequence[str]) -> str:
    """sha256 of the vocab.txt of the entries."""
    return sha256("".join(f"{entry}\n" for entry in entries).encode()).hexdigest()


def describe(old: BaseVocabulary, chosen: Sequence[NewPiece], text: dict[str, Any]) -> dict[str, Any]:
    """The content of extension.json."""
    first = len(old.entries)
    return {
        "base_size": first,
        "base_sha256": digest(old.entries),
        "text": text,
        "pieces": [{"id": id_, **piece._asdict(), "of": list(piece.of)} for id_, piece in enumerate(chosen, first)],
    }

"""Check of an exported tokenizer before it is published on the Hugging Face Hub (``launch.tools.push`` uploads it).

A tokenizer with inconsistent files loads without an error and encodes wrongly. statistics.json is not published,
because it lists words of the corpus.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from corpus.documents.atomic_files import read_json
from corpus.documents.errors import BadInput
from corpus.documents.model_files import refuse_links
from tokenizer.building.export import CARD_NAME, ENCODER_FILES, read_vocabulary

# text that readers may encode differently: rare syllables, jamo, NFD, old Hangul, symbols, case, special tokens, length
PROBE = (
    "조경현은 인공지능 분야의 저명한 연구자이다. 뷁 \u110f\u110f ㅋㅋ \u1112\u1161\u11ab "
    "\u1112\u119e\u11ab글 안녕😀 현아♥이던 ⑧까지 Ab é 漢字 [MASK] " + "가" * 101
)


def check_repository(folder: Path) -> list[str]:
    """Names of the files to publish, after checking that all exist and are consistent.

    Raises:
        BadInput: a file is missing or broken, ids differ, a class of transformers would encode otherwise than
            tokenizer.json, or rules in it are unknown to other readers, as those of earlier versions were.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; give the tokenizer folder of a run, such as runs/smoke/tokenizer")
    names = [CARD_NAME, *ENCODER_FILES]
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise BadInput(f"{folder}: no {', '.join(missing)}; run `malmoi tokenizer` again, it writes them all")
    refuse_links(folder)
    _check_encoder(folder)
    return names


def _settings(folder: Path, name: str = "tokenizer_config.json") -> dict[str, object]:
    path = folder / name
    if not path.is_file():
        raise BadInput(f"{folder}: no {name}, so this is not an exported tokenizer; give one")
    settings = read_json(path, "run `malmoi tokenizer` again")
    if not isinstance(settings, dict):
        raise BadInput(f"{path}: expected an object of settings; run `malmoi tokenizer` again")
    return settings


def _check_encoder(folder: Path) -> None:
    from transformers import AutoTokenizer, BertTokenizer

    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        settings = _settings(folder, name)
        if settings.get("tokenizer_class") == "PreTrainedTokenizerFast":
            raise BadInput(
                f"{folder}: made by an earlier version, with rules that BertTokenizer and JavaScript do not know; run "
                "`malmoi tokenizer` again"
            )
    vocabulary = read_vocabulary(folder / "vocab.txt")
    again = "export the tokenizer again, its files do not belong together"
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        readers = [kind.from_pretrained(folder, local_files_only=True) for kind in (AutoTokenizer, BertTokenizer)]
    except Exception as error:  # the libraries raise whatever they like for files they cannot read
        raise BadInput(f"{folder}: does not load ({_first_line(error)}); {again}") from error
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    if tokenizer.get_vocab() != ids:
        differing = {piece for piece, _ in ids.items() ^ tokenizer.get_vocab().items()}
        raise BadInput(f"{folder}: vocab.txt and tokenizer.json differ in {len(differing):,} entries; {again}")
    for reader in readers:
        if reader(PROBE)["input_ids"] != tokenizer.encode(PROBE).ids:
            raise BadInput(f"{folder}: {type(reader).__name__} encodes otherwise than tokenizer.json does; {again}")


def _first_line(message: object) -> str:
    """Of what somebody else's code says, the beginning."""
    lines = str(message).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"

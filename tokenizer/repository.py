"""Check of an exported tokenizer before it is published on the Hugging Face Hub (``launch.tools.push`` uploads it).

A tokenizer with inconsistent files loads without an error and encodes wrongly. statistics.json is not published,
because it lists words of the corpus.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from corpus.documents.atomic_files import read_json_object
from corpus.documents.errors import BadInput, first_line
from corpus.documents.model_files import refuse_links
from tokenizer.building.export import CARD_NAME, ENCODER_FILES, read_vocabulary

# text that readers may encode differently: rare syllables, jamo, NFD, old Hangul, symbols, case, special tokens, length
PROBE = (
    "조경현은 인공지능 분야의 저명한 연구자이다. 뷁 \u110f\u110f ㅋㅋ \u1112\u1161\u11ab "
    "\u1112\u119e\u11ab글 안녕😀 현아♥이던 ⑧까지 Ab é 漢字 [MASK] " + "가" * 101
)


def check_repository(folder: Path) -> list[str]:
    """Names of the files to publish; BadInput if one is missing or broken, or if readers would encode differently."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; give the tokenizer folder of a run, such as runs/smoke/tokenizer")
    names = [CARD_NAME, *ENCODER_FILES]
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise BadInput(f"{folder}: no {', '.join(missing)}; run `malmoi tokenizer` again, which writes all files")
    refuse_links(folder)
    _check_encoder(folder)
    return names


def _check_encoder(folder: Path) -> None:
    from transformers import AutoTokenizer, BertTokenizer

    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        settings = read_json_object(folder / name, "run `malmoi tokenizer` again")
        if settings.get("tokenizer_class") == "PreTrainedTokenizerFast":
            raise BadInput(
                f"{folder}: written by an earlier version, with rules that BertTokenizer and JavaScript do not "
                "support; run `malmoi tokenizer` again"
            )
    vocabulary = read_vocabulary(folder / "vocab.txt")
    again = "its files are not of one tokenizer; export it again"
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        readers = [kind.from_pretrained(folder, local_files_only=True) for kind in (AutoTokenizer, BertTokenizer)]
    except Exception as error:  # the libraries raise errors of any kind
        raise BadInput(f"{folder}: does not load ({first_line(error)}); {again}") from error
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    if tokenizer.get_vocab() != ids:
        differing = {piece for piece, _ in ids.items() ^ tokenizer.get_vocab().items()}
        raise BadInput(f"{folder}: vocab.txt and tokenizer.json differ in {len(differing):,} entries; {again}")
    for reader in readers:
        if reader(PROBE)["input_ids"] != tokenizer.encode(PROBE).ids:
            raise BadInput(f"{folder}: {type(reader).__name__} encodes differently than tokenizer.json; {again}")

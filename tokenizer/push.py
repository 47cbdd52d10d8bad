"""An exported tokenizer to the Hugging Face Hub: the repository's own files and nothing else of its folder.

The folder is checked before anything is sent, because a tokenizer whose files disagree loads without complaint and
encodes wrongly. statistics.json stays at home: it lists words of the corpus. A token is never shown, logged or written.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tokenizers import Tokenizer

from corpus.documents import BadInput
from corpus.whole_files import read_json, refuse_links
from tokenizer.export import CARD_NAME, ENCODER_FILES, PLAIN_FOLDER, read_vocabulary

TOKEN = re.compile(r"hf_\w+")
log = logging.getLogger(__name__)

# what loaders may read differently: a rare syllable, loose jamo, NFD, case, a special token, a long word
PROBE = (
    "조경현은 인공지능 분야의 저명한 연구자이다. 뷁 \u110f\u110f ㅋㅋ \u1112\u1161\u11ab Ab é 漢字 [MASK] " + "가" * 101
)


def push(
    folder: Path, repo_id: str, *, private: bool = False, revision: str | None = None, token: str | None = None
) -> str:
    """Upload a tokenizer folder in one commit; the repository is made where there is none yet.

    Args:
        folder: as ``tokenizer.export.export`` writes it; other files in it stay where they are.
        repo_id: "NAME/REPOSITORY" on the Hub.
        private: hide a repository that is made now; one that exists must be hidden already.
        revision: branch to write to, made where there is none; the main one by default.
        token: access token; by default the one that ``hf auth login`` keeps, or HF_TOKEN.

    Returns:
        Address of the commit.

    Raises:
        BadInput: the folder is not a complete tokenizer whose files agree, the Hub refuses, or cannot be reached.
    """
    from huggingface_hub import HfApi

    names = check_repository(folder)
    if token is not None and not (token.isascii() and token.isprintable() and token and " " not in token):
        raise BadInput(
            "the token has characters that no token of the Hub has; copy it again, without quotes and spaces"
        )
    api = HfApi(token=token)
    with _told_in_one_sentence(repo_id):
        repository = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
        if private and not api.model_info(repository).private:
            raise BadInput(
                f"{repository}: is public already; make it private on the Hub first, or push to another name"
            )
        if revision and not revision.startswith("refs/"):
            api.create_branch(repository, branch=revision, exist_ok=True)
        log.info("uploading %d files to %s", len(names), repository)
        has_plain = any(name.startswith(f"{PLAIN_FOLDER}/") for name in names)
        commit = api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            revision=revision,
            allow_patterns=names,
            delete_patterns=None if has_plain else f"{PLAIN_FOLDER}/*",  # of another vocabulary, pushed before
            commit_message=f"Korean WordPiece vocabulary, {len(read_vocabulary(folder / 'vocab.txt')):,} entries",
        )
    return str(commit.commit_url)


def check_repository(folder: Path) -> list[str]:
    """Names of the files to publish, after making sure that they are all there and say the same.

    Raises:
        BadInput: a file is missing or broken, ids differ, or transformers would encode otherwise than tokenizer.json.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; give the tokenizer folder of a run, such as runs/smoke/tokenizer")
    parts = [folder]
    if (folder / PLAIN_FOLDER).is_dir() or _settings(folder).get("tokenizer_class") == "PreTrainedTokenizerFast":
        parts.append(folder / PLAIN_FOLDER)
    paths = [folder / CARD_NAME, *(part / name for part in parts for name in ENCODER_FILES)]
    if missing := [path.relative_to(folder).as_posix() for path in paths if not path.is_file()]:
        raise BadInput(f"{folder}: no {', '.join(missing)}; run `malmoi tokenizer` again, it writes them all")
    for part in parts:
        refuse_links(part)
    vocabularies = [_check_encoder(part) for part in parts]
    if vocabularies[0] != vocabularies[-1]:
        raise BadInput(f"{folder}: vocab.txt there and in {PLAIN_FOLDER}/ differ; run `malmoi tokenizer` again")
    return [path.relative_to(folder).as_posix() for path in paths]


def _settings(folder: Path, name: str = "tokenizer_config.json") -> dict[str, object]:
    path = folder / name
    if not path.is_file():
        raise BadInput(f"{folder}: no {name}, so this is not an exported tokenizer; give one")
    settings = read_json(path, "run `malmoi tokenizer` again")
    if not isinstance(settings, dict):
        raise BadInput(f"{path}: expected an object of settings; run `malmoi tokenizer` again")
    return settings


def _check_encoder(folder: Path) -> list[str]:
    """Vocabulary of one folder, once its files are known to agree."""
    from transformers import AutoTokenizer

    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        _settings(folder, name)
    vocabulary = read_vocabulary(folder / "vocab.txt")
    again = "export the tokenizer again, its files do not belong together"
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        loaded = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # the libraries raise whatever they like for files they cannot read
        raise BadInput(f"{folder}: does not load ({_first_line(error)}); {again}") from error
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    if tokenizer.get_vocab() != ids:
        differing = {piece for piece, _ in ids.items() ^ tokenizer.get_vocab().items()}
        raise BadInput(f"{folder}: vocab.txt and tokenizer.json differ in {len(differing):,} entries; {again}")
    if loaded(PROBE)["input_ids"] != tokenizer.encode(PROBE).ids:
        raise BadInput(f"{folder}: {type(loaded).__name__} encodes otherwise than tokenizer.json does; {again}")
    return vocabulary


@contextmanager
def _told_in_one_sentence(repo_id: str) -> Iterator[None]:
    """Failures as BadInput. Messages of the HTTP library are not passed on: they may show a header with the token."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, HTTPError, LocalTokenNotFoundError

    try:
        yield
    except HFValidationError:
        raise BadInput(
            f"{repo_id!r} is no name for a repository; expected NAME/REPOSITORY, of letters, digits, '-', '_' and '.'"
        ) from None
    except HfHubHTTPError as error:
        raise BadInput(_refusal(repo_id, error.response.status_code, error.server_message)) from None
    except LocalTokenNotFoundError:
        raise BadInput(f"{repo_id}: no access token; run `hf auth login` or set HF_TOKEN") from None
    except BadInput:
        raise
    except ValueError as error:  # raised where the Hub finds fault with the card's metadata
        raise BadInput(
            f"{repo_id}: the Hub takes no such {CARD_NAME} ({_first_line(error)}); mend what stands between --- there"
        ) from None
    except (HTTPError, ConnectionError) as error:
        raise BadInput(
            f"{repo_id}: the Hub cannot be reached ({type(error).__name__}); check the network, HF_ENDPOINT and "
            "HF_HUB_OFFLINE, then push again"
        ) from None


def _refusal(repo_id: str, status: int, message: str | None) -> str:
    said = f", {_first_line(message)}" if message else ""
    if status in (401, 403):
        return (
            f"{repo_id}: the Hub refuses the access token ({status}{said}); run `hf auth login` with one that may write"
        )
    return f"{repo_id}: the Hub answers {status}{said}; see that the repository and the branch are what you meant"


def _first_line(message: object) -> str:
    """Of what somebody else's code says, the beginning; a token in it is blotted out."""
    lines = TOKEN.sub("hf_…", str(message)).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"

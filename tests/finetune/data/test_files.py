"""Finding and reading official files: what is accepted, and what is said about the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard

from corpus.documents.errors import BadInput
from finetune.data.files import find_file, read_blocks, read_json, read_records, read_text, sha256

NAME = "ynat-v1.1/ynat-v1.1_dev.json"
RECORDS = '[{"guid": "ynat-v1_dev_00000", "title": "바다마을 새 도서관 문 연다", "label": "생활문화"}]'


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_packed_file_reads_like_a_plain_one(tmp_path: Path) -> None:
    plain = put(tmp_path / "a", NAME, RECORDS)
    packed = put(tmp_path / "b", NAME + ".zst", zstandard.compress(RECORDS.encode()))
    assert find_file(tmp_path / "b", NAME) == packed
    assert read_json(packed) == read_json(plain)
    assert sha256(packed) == sha256(plain)


def test_files_are_found_in_folders_side_by_side(tmp_path: Path) -> None:
    dev = put(tmp_path / "derived", NAME, RECORDS)
    other = put(tmp_path / "official", "wos-v1.1/ontology.json", "{}")
    assert find_file(tmp_path, NAME) == dev
    assert find_file(tmp_path, "wos-v1.1/ontology.json") == other
    assert find_file(tmp_path, "klue-dp-v1.1/klue-dp-v1.1_dev.tsv") is None


def test_a_file_in_two_folders_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "derived", NAME, RECORDS)
    put(tmp_path / "official", NAME + ".zst", zstandard.compress(b"[]"))
    with pytest.raises(BadInput, match="two files named"):
        find_file(tmp_path, NAME)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere: no such folder"):
        find_file(tmp_path / "nowhere", NAME)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('[{"guid": "a",}]', "broken JSON at line 1, column"),
        (RECORDS.encode() + b"\xff", "not UTF-8"),
        ("{}", "one JSON list"),
        ("[]", "at least one record"),
        ('[{"title": "제목"}]', "record 0 is not an object with a text under 'guid'"),
    ],
)
def test_a_broken_file_is_named_with_its_error(tmp_path: Path, content: str | bytes, says: str) -> None:
    path = put(tmp_path, NAME, content)
    with pytest.raises(BadInput) as error:
        read_records(path)
    assert str(path) in str(error.value)
    assert says in str(error.value)


def test_a_broken_zst_file_is_named(tmp_path: Path) -> None:
    path = put(tmp_path, NAME + ".zst", b"not packed at all")
    with pytest.raises(BadInput, match="not a readable zstd file"):
        read_json(path)


def test_blocks_are_parted_by_empty_or_tab_lines_and_keep_line_numbers(tmp_path: Path) -> None:
    text = "## 컬럼명 : CHAR\tNE_TAG\n## a\t첫 문장\n가\tO\n#\tO\n\n## b\t둘째\r\n나\tO\r\n\t\n\n"
    first, second = read_blocks(put(tmp_path, "x.tsv", text))
    assert first == ("a\t첫 문장", [(3, "가\tO"), (4, "#\tO")])
    assert second == ("b\t둘째", [(7, "나\tO")])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("가\tO\n\n", "without its '## guid' line"),
        ("## a\t가\n가\tO\n## b\t나\n나\tO\n", "line 3: a new sentence begins without an empty line"),
        ("## 주석 : ##\n\n", "no sentence here"),
    ],
)
def test_broken_blocks_are_reported_with_their_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        read_blocks(put(tmp_path, "x.tsv", text))


def test_line_separators_of_unicode_do_not_end_a_line(tmp_path: Path) -> None:
    (block,) = read_blocks(put(tmp_path, "x.tsv", "## a\t가\n\u2028\tO\n가\tO\n"))
    assert [line for _, line in block.lines] == ["\u2028\tO", "가\tO"]


def test_nothing_but_json_comes_out(tmp_path: Path) -> None:
    assert read_json(put(tmp_path, NAME, RECORDS)) == json.loads(RECORDS)


@pytest.mark.parametrize("end", [-1, -20])
def test_a_zst_file_that_ends_in_the_middle_is_refused_and_not_shortened(tmp_path: Path, end: int) -> None:
    path = put(tmp_path, NAME + ".zst", zstandard.compress(RECORDS.encode() * 500)[:end])
    with pytest.raises(BadInput, match="ends in the middle"):
        read_text(path)

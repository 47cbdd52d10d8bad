"""Small folders of each kind that the demo accepts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForMaskedLM

from launch.demo.page import View, find_models, load_views
from tests.finetune.conftest import build_tiny_encoder

TEXT = "새 강좌를 연다 문의는 한빛도서관 김하늘 팀장 010-0123-4567 에게 . 서울 부산 축구"


def build_filler(home: Path, kind: str = "bert", text: str = TEXT) -> Path:
    """A model folder with a head that fills masks, of random weights."""
    folder, _ = build_tiny_encoder(home, [text], kind)
    torch.manual_seed(2)
    AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(folder)).save_pretrained(folder)
    return Path(folder)


@pytest.fixture(scope="session")
def filler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_filler(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="session")
def views(filler: Path) -> list[View]:
    return load_views(find_models([filler]), "en")


@pytest.fixture
def tokenizer_folder(filler: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies of the tokenizer alone, below the folder of the test."""

    def copy(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            (folder / file).write_bytes((filler / file).read_bytes())
        return folder

    return copy

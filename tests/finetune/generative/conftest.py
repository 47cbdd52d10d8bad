"""The embedded KLUE files, a cache per test, short waits, and the environment of openai-api/loopback/…"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from finetune.generative.client import ask as client_ask
from launch.sample.unpack import find_klue
from tests.finetune.generative.server import Server

KEY = "sk-planted-0123456789"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Inspect's cache of this test; no wait is long, and no client loads certificates, 0.1 s each."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "inspect"))
    monkeypatch.setattr(client_ask, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(client_ask, "MAX_WAIT_SECONDS", 0.5)
    return tmp_path / "inspect"


@pytest.fixture(scope="session")
def klue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the embedded KLUE files."""
    return find_klue("malmoi:sample", tmp_path_factory.mktemp("klue"))


@pytest.fixture
def point(monkeypatch: pytest.MonkeyPatch) -> Callable[[Server], None]:
    """Point the environment to a server."""

    def to(server: Server) -> None:
        monkeypatch.setenv("LOOPBACK_BASE_URL", server.address)
        monkeypatch.setenv("LOOPBACK_API_KEY", KEY)

    return to


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random causal model of two layers over bytes."""
    torch = pytest.importorskip("torch")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(["<|end|>", *letters])}
    plain = Tokenizer(models.BPE(vocabulary, []))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<|end|>", bos_token="<|end|>").save_pretrained(folder)
    torch.manual_seed(3)
    config = GPT2Config(
        vocab_size=len(vocabulary), n_positions=1024, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0,
        initializer_range=0.6,
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder

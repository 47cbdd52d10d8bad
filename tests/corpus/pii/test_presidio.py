"""The detector inside Presidio's own engine; without the package, an error that says how to get it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from corpus.pii.detect import find_pii
from corpus.pii.formats.table import TABLE

LABELS = {kind.name: f"{kind.context[0]} {kind.example} 확인" for kind in TABLE if kind.context}
SENTENCE = "문의는 010-0123-4567, gaeun.kim@example.com 으로. 카드번호 4000-0012-3456-7899로 결제했습니다."


def test_missing_package_is_told_with_what_to_install() -> None:
    program = "import sys; sys.modules['presidio_analyzer'] = None; import corpus.pii.presidio"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode != 0
    assert "pip install 'malmoi[presidio]'" in result.stderr.splitlines()[-1]


def test_the_detector_does_not_need_it() -> None:
    program = "import sys; sys.modules['presidio_analyzer'] = None; import corpus.pii.detect, corpus.pii.hide"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.fixture
def engine() -> Any:
    """Presidio's engine with our recogniser alone, and an NLP engine that knows nothing."""
    missing = "needs presidio-analyzer: pip install 'malmoi[presidio]'"
    presidio = pytest.importorskip("presidio_analyzer", reason=missing)
    from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine

    from corpus.pii.presidio import MalmoiRecognizer

    class Blank(NlpEngine):
        def load(self) -> None: ...

        def is_loaded(self) -> bool:
            return True

        def process_text(self, text: str, language: str) -> NlpArtifacts:
            return NlpArtifacts([], [], [], [], self, language)

        def process_batch(self, texts: Iterable[str], language: str, **_: Any) -> Iterator[tuple[str, NlpArtifacts]]:
            return ((text, self.process_text(text, language)) for text in texts)

        def is_stopword(self, word: str, language: str) -> bool:
            return False

        def is_punct(self, word: str, language: str) -> bool:
            return False

        def get_supported_entities(self) -> list[str]:
            return []

        def get_supported_languages(self) -> list[str]:
            return ["ko"]

    registry = presidio.RecognizerRegistry(recognizers=[MalmoiRecognizer()], supported_languages=["ko"])
    return presidio.AnalyzerEngine(registry=registry, nlp_engine=Blank(), supported_languages=["ko"])


@pytest.mark.parametrize("kind", sorted(LABELS))
def test_the_engine_reports_what_the_detector_finds(engine: Any, kind: str) -> None:
    from corpus.pii.presidio import ENTITIES

    text = LABELS[kind]
    found = find_pii(text)
    assert kind in [span.type for span in found]
    results = sorted(engine.analyze(text, language="ko"), key=lambda result: result.start)
    assert [(r.entity_type, r.start, r.end, r.score) for r in results] == [
        (ENTITIES[span.type], span.start, span.end, span.score) for span in found
    ]


def test_only_what_was_asked_for_is_reported(engine: Any) -> None:
    results = engine.analyze(SENTENCE, language="ko", entities=["EMAIL_ADDRESS"])
    assert [SENTENCE[r.start : r.end] for r in results] == ["gaeun.kim@example.com"]


def test_the_engine_says_why(engine: Any) -> None:
    results = engine.analyze(SENTENCE, language="ko", return_decision_process=True)
    assert {r.entity_type for r in results} == {"PHONE_NUMBER", "EMAIL_ADDRESS", "CREDIT_CARD"}
    spans = {span.start: span for span in find_pii(SENTENCE)}
    for result in results:
        explanation = result.analysis_explanation
        assert explanation.recognizer == "MalmoiRecognizer"
        assert explanation.original_score == spans[result.start].score
        assert all(reason in explanation.textual_explanation for reason in spans[result.start].why)


def test_an_unknown_entity_is_refused(engine: Any) -> None:
    from corpus.pii.presidio import MalmoiRecognizer

    assert MalmoiRecognizer(["KR_RRN"]).analyze(SENTENCE) == []
    with pytest.raises(ValueError, match="unknown entity US_SSN"):
        MalmoiRecognizer(["US_SSN"])

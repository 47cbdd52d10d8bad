"""The detector as a recogniser of Microsoft Presidio, for deployments that use that already.

```python
from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
from corpus.pii.presidio import MalmoiRecognizer

registry = RecognizerRegistry(supported_languages=["ko"])
registry.add_recognizer(MalmoiRecognizer())
analyzer = AnalyzerEngine(registry=registry, nlp_engine=..., supported_languages=["ko"])
```
Entities bear Presidio's names where it has one, so that its operators apply, and others are named like their kin of
other countries (``US_BANK_NUMBER``, ``DE_HEALTH_INSURANCE``). No NLP engine is needed: artifacts are never looked at.
Nothing else here imports this module; the package comes with ``pip install 'malmoi[presidio]'``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from corpus.pii.detect import Span, find_pii
from corpus.pii.types import PII_TYPES

try:
    from presidio_analyzer import AnalysisExplanation, EntityRecognizer, RecognizerResult
except ImportError as error:
    raise ImportError(
        f"the Presidio recogniser needs presidio-analyzer ({error}); install it with pip install 'malmoi[presidio]'"
    ) from error

ENTITIES = {
    "TEL": "PHONE_NUMBER", "RRN": "KR_RRN", "FRN": "KR_FRN", "EMAIL": "EMAIL_ADDRESS", "IP": "IP_ADDRESS",
    "MAC": "MAC_ADDRESS", "MENTION": "USERNAME", "ADDRESS": "LOCATION", "ACCOUNT": "KR_BANK_NUMBER",
    "PASSPORT": "KR_PASSPORT", "DRIVER": "KR_DRIVER_LICENSE", "BRN": "KR_BRN", "HEALTH": "KR_HEALTH_INSURANCE",
    "CARD": "CREDIT_CARD", "PLATE": "KR_VEHICLE_REGISTRATION", "URL": "URL",
}  # fmt: skip
"""Presidio's name of each type of paper Table 29."""

assert tuple(ENTITIES) == PII_TYPES


class MalmoiRecognizer(EntityRecognizer):
    """Finds the types of paper Table 29 in Korean text; a result's explanation says what spoke for it.

    Args:
        supported_entities: Presidio's names of what to report; all of ``ENTITIES`` by default.
        supported_language: text of every language is searched alike; Presidio asks recognisers by language.
        settings: further arguments of ``EntityRecognizer``, such as ``name``.

    Raises:
        ValueError: an entity is none of ``ENTITIES``.
    """

    COUNTRY_CODE = "kr"

    def __init__(
        self, supported_entities: Sequence[str] | None = None, supported_language: str = "ko", **settings: Any
    ) -> None:
        wanted = list(supported_entities or ENTITIES.values())
        if unknown := sorted(set(wanted) - set(ENTITIES.values())):
            raise ValueError(f"no entity {', '.join(unknown)} here; there are {', '.join(ENTITIES.values())}")
        settings = {"name": "MalmoiRecognizer", "version": _version()} | settings
        super().__init__(supported_entities=wanted, supported_language=supported_language, **settings)

    def load(self) -> None:
        """There is no model to load."""

    def analyze(
        self, text: str, entities: Collection[str] | None = None, nlp_artifacts: Any = None
    ) -> list[RecognizerResult]:
        """Results in the order of the text, never overlapping; offsets are indices of ``text``.

        Args:
            entities: what to report of ``supported_entities``; all of them by default.
            nlp_artifacts: not used.
        """
        wanted = set(self.supported_entities) & set(entities or self.supported_entities)
        types = [name for name, entity in ENTITIES.items() if entity in wanted]
        return [self._result(span) for span in find_pii(text, types)]

    def _result(self, span: Span) -> RecognizerResult:
        explanation = AnalysisExplanation(
            recognizer=self.name,
            original_score=span.score,
            pattern_name=span.type,
            validation_result=True if "checksum" in span.why else None,
            textual_explanation=f"{span.type} by {', '.join(span.why)}",
        )
        metadata = {
            RecognizerResult.RECOGNIZER_NAME_KEY: self.name,
            RecognizerResult.RECOGNIZER_IDENTIFIER_KEY: self.id,
        }
        return RecognizerResult(ENTITIES[span.type], span.start, span.end, span.score, explanation, metadata)


def _version() -> str:
    try:
        return version("malmoi")
    except PackageNotFoundError:
        return "unknown"

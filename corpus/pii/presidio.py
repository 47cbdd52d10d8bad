"""The detector as a recognizer for Microsoft Presidio.

```python
from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
from corpus.pii.presidio import MalmoiRecognizer

registry = RecognizerRegistry(supported_languages=["ko"])
registry.add_recognizer(MalmoiRecognizer())
analyzer = AnalyzerEngine(registry=registry, nlp_engine=..., supported_languages=["ko"])
```
Entities have Presidio's names where they exist, so its operators apply; others follow names such as ``US_BANK_NUMBER``
and ``DE_HEALTH_INSURANCE``. The NLP engine is not used. Install with ``pip install 'malmoi[presidio]'``.
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
        f"the Presidio recognizer needs presidio-analyzer ({error}); install it with pip install 'malmoi[presidio]'"
    ) from error

ENTITIES = {
    "TEL": "PHONE_NUMBER", "RRN": "KR_RRN", "FRN": "KR_FRN", "EMAIL": "EMAIL_ADDRESS", "IP": "IP_ADDRESS",
    "MAC": "MAC_ADDRESS", "MENTION": "USERNAME", "ADDRESS": "LOCATION", "ACCOUNT": "KR_BANK_NUMBER",
    "PASSPORT": "KR_PASSPORT", "DRIVER": "KR_DRIVER_LICENSE", "BRN": "KR_BRN", "HEALTH": "KR_HEALTH_INSURANCE",
    "CARD": "CREDIT_CARD", "PLATE": "KR_VEHICLE_REGISTRATION", "URL": "URL",
}  # fmt: skip
"""Presidio's names of the types of paper Table 29."""

assert tuple(ENTITIES) == PII_TYPES


class MalmoiRecognizer(EntityRecognizer):
    """Finds the types of paper Table 29 in Korean text; each result has an explanation.

    Args:
        supported_entities: Presidio's names of the types to report; default: all of ``ENTITIES``.
        supported_language: Presidio selects recognizers by language; the search is the same for all languages.
        settings: further arguments of ``EntityRecognizer``, such as ``name``.

    Raises:
        ValueError: unknown entity.
    """

    COUNTRY_CODE = "kr"

    def __init__(
        self, supported_entities: Sequence[str] | None = None, supported_language: str = "ko", **settings: Any
    ) -> None:
        entities = list(supported_entities or ENTITIES.values())
        if unknown := sorted(set(entities) - set(ENTITIES.values())):
            raise ValueError(f"unknown entity {', '.join(unknown)}; expected any of {', '.join(ENTITIES.values())}")
        settings = {"name": "MalmoiRecognizer", "version": _version()} | settings
        super().__init__(supported_entities=entities, supported_language=supported_language, **settings)

    def load(self) -> None:
        """Does nothing: there is no model."""

    def analyze(
        self, text: str, entities: Collection[str] | None = None, nlp_artifacts: Any = None
    ) -> list[RecognizerResult]:
        """Results in the order of the text, without overlaps; offsets are indices of ``text``.

        Args:
            entities: which of ``supported_entities`` to report; default: all.
            nlp_artifacts: not used.
        """
        requested = set(self.supported_entities) & set(entities or self.supported_entities)
        types = [name for name, entity in ENTITIES.items() if entity in requested]
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

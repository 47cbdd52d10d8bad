"""Other detectors of personal data behind one call, with their labels in the words of paper Table 29.

Each is loaded only where it is installed. Presidio runs its five Korean and six general recognizers on plain words,
without a language model: what a model adds are names of people and places, which are no types of Table 29. Its results
are taken as its analyzer gives them, overlaps included.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

Span = tuple[int, int, str]
Detect = Callable[[str], list[Span]]

KO_PII = {
    "PHONE": "TEL", "RRN": "RRN", "FRN": "FRN", "EMAIL": "EMAIL", "IP": "IP", "MAC": "MAC", "ADDRESS": "ADDRESS",
    "ACCOUNT": "ACCOUNT", "PASSPORT": "PASSPORT", "DRIVER_LICENSE": "DRIVER", "BUSINESS_REG": "BRN",
    "MEDICAL_INSURANCE": "HEALTH", "CARD": "CARD", "VEHICLE": "PLATE", "URL": "URL",
}  # fmt: skip
PRESIDIO = {
    "KrRrnRecognizer": "RRN", "KrFrnRecognizer": "FRN", "KrBrnRecognizer": "BRN", "KrPassportRecognizer": "PASSPORT",
    "KrDriverLicenseRecognizer": "DRIVER", "PhoneRecognizer": "TEL", "EmailRecognizer": "EMAIL", "UrlRecognizer": "URL",
    "IpRecognizer": "IP", "MacAddressRecognizer": "MAC", "CreditCardRecognizer": "CARD",
}  # fmt: skip
PRESIDIO_MIN_SCORE = 0.3
PACKAGES = {"ko-pii": "ko_pii", "Presidio": "presidio_analyzer"}


def load_detectors() -> tuple[dict[str, Detect], list[str]]:
    """The installed ones by name, and the names of those that are not."""
    loaders = {"ko-pii": _ko_pii, "Presidio": _presidio}
    installed = [name for name, package in PACKAGES.items() if find_spec(package)]
    return {name: loaders[name]() for name in installed}, [name for name in PACKAGES if name not in installed]


def _ko_pii() -> Detect:
    from ko_pii import detect_all

    def detect(text: str) -> list[Span]:
        found = detect_all(text)
        return [(one.start, one.end, KO_PII[one.label]) for one in found if one.label in KO_PII]

    return detect


def _presidio() -> Detect:
    import presidio_analyzer.predefined_recognizers as recognizers
    import spacy
    import tldextract.tldextract as domains
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    # the e-mail recognizer asks the network for the list of domains, though the package holds one
    domains.TLD_EXTRACTOR = domains.TLDExtract(suffix_list_urls=())
    loaded, kinds = [], {}
    for name, kind in PRESIDIO.items():
        region = {"supported_regions": ("KR",)} if name == "PhoneRecognizer" else {}
        loaded.append(getattr(recognizers, name)(supported_language="ko", **region))
        kinds[loaded[-1].supported_entities[0]] = kind
    words = spacy.blank("xx")
    if not spacy.Language.has_factory("words_as_lemmas"):
        spacy.Language.component("words_as_lemmas", func=_words_as_lemmas)
    words.add_pipe("words_as_lemmas")
    engine = SpacyNlpEngine()
    engine.nlp = {"ko": words}
    analyzer = AnalyzerEngine(
        registry=RecognizerRegistry(recognizers=loaded, supported_languages=["ko"]),
        nlp_engine=engine,
        supported_languages=["ko"],
        default_score_threshold=PRESIDIO_MIN_SCORE,
    )
    return lambda text: [(r.start, r.end, kinds[r.entity_type]) for r in analyzer.analyze(text, language="ko")]


def _words_as_lemmas(document: Any) -> Any:
    """Presidio looks for its context words among the lemmas."""
    for token in document:
        token.lemma_ = token.text
    return document

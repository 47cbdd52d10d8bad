"""The table of the 16 types of paper Table 29 in order, and all types by name."""

from __future__ import annotations

from corpus.pii.extra.person_by_rules import PERSON
from corpus.pii.formats.account_brn_card import ACCOUNT, BRN, CARD
from corpus.pii.formats.address import ADDRESS
from corpus.pii.formats.email_ip_mac import EMAIL, IP, MAC
from corpus.pii.formats.mention import MENTION
from corpus.pii.formats.passport_driver_health import DRIVER, HEALTH, PASSPORT
from corpus.pii.formats.plate import PLATE
from corpus.pii.formats.rrn_frn import FRN, RRN
from corpus.pii.formats.tel import TEL
from corpus.pii.formats.url import URL
from corpus.pii.types import PII_TYPES, PiiType

TABLE: tuple[PiiType, ...] = (
    TEL, RRN, FRN, EMAIL, IP, MAC, MENTION, ADDRESS, ACCOUNT, PASSPORT, DRIVER, BRN, HEALTH, CARD, PLATE, URL,
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in (*TABLE, PERSON)}

assert tuple(kind.name for kind in TABLE) == PII_TYPES

"""Recipe sections accept old keys and values for one release, and explain keys that were removed."""

import logging
from typing import ClassVar

import pytest
from pydantic import ValidationError

from corpus.documents.section import Section, warn_once
from launch.recipe import Recipe, _apply


class Model(Section):
    renamed: ClassVar = {"embedding_start": "embedding_init"}
    renamed_values: ClassVar = {"embedding_init": {"counted": "from_counts"}}
    removed: ClassVar = {"rare_power": "it did not help; leave it out"}

    embedding_init: str = "normal"


@pytest.fixture(autouse=True)
def _no_warning_yet() -> None:
    warn_once.cache_clear()


def test_old_names_work_and_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert Model.model_validate({"embedding_start": "counted"}) == Model(embedding_init="from_counts")
    assert [record.getMessage() for record in caplog.records] == [
        "embedding_start: renamed to embedding_init; the old name works until the next release",
        "embedding_init: counted was renamed to from_counts; the old value works until the next release",
    ]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rare_power": 1}, "rare_power was removed: it did not help"),
        ({"embedding_start": "normal", "embedding_init": "normal"}, "keep only embedding_init"),
    ],
)
def test_removed_and_doubled_keys_are_explained(values: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Model.model_validate(values)


def test_an_override_with_an_old_name_replaces_the_value_of_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Recipe.model_fields["tokenizer"].annotation
    monkeypatch.setattr(tokenizer, "renamed", {"entries": "vocab_size"})
    values = {"tokenizer": {"vocab_size": 32000}}
    _apply(values, "tokenizer.entries=100")
    assert values == {"tokenizer": {"vocab_size": 100}}

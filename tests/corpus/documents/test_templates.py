"""Common settings of Jinja templates."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import UndefinedError

from corpus.documents.templates import load_templates


def test_lines_with_only_a_tag_produce_no_output_and_undefined_names_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package_of_templates"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "page.j2").write_text("a\n  {% if shown %}\nb {{ name }}\n  {% endif %}\nc\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    page = load_templates("package_of_templates").get_template("page.j2")
    assert page.render(shown=True, name="x") == "a\nb x\nc\n"
    assert page.render(shown=False) == "a\nc\n"
    with pytest.raises(UndefinedError):
        page.render(shown=True)

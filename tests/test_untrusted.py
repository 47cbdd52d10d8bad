"""Files of others are data: no call of a library may run their code, read pickles, or look beyond the local files."""

from __future__ import annotations

import re

import pytest

from tests.source_graph import ROOT, WHEEL, source_files

SAFE = {
    "trust_remote_code": "False",
    "allow_pickle": "False",
    "weights_only": "True",
    "use_safetensors": "True",
    "local_files_only": "True",
}


@pytest.mark.parametrize("name", SAFE)
def test_arguments_that_decide_whether_code_of_others_runs_are_safe(name: str) -> None:
    setting = re.compile(rf"\b{name}=(?!{SAFE[name]}\b).*")
    sources = {file: (ROOT / file).read_text("utf-8") for file in source_files() if file.startswith(WHEEL)}
    assert [f"{file}: {unsafe[0]}" for file, text in sources.items() for unsafe in setting.finditer(text)] == []

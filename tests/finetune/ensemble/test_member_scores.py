"""An ensemble of one is its member, on all tasks, through the file that keeps the scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus.documents.errors import BadInput
from finetune.config import ProtocolName
from finetune.encoder.loading import load_tokenizer
from finetune.ensemble.run import read_records, write_records
from finetune.registry import TASKS
from finetune.run import FinetuneInputs
from finetune.train.batched_prediction import predict
from finetune.train.trainer import seed_everything
from tests.finetune.saved_models.conftest import sample_inputs

__all__ = ["sample_inputs"]
EXAMPLES, LONGEST = 16, {"klue-mrc": 128, "wos": 96}
CASES = [
    (name, protocol)
    for name, task in TASKS.items()
    for protocol in ("malmoi", "klue-baseline")
    if task.with_protocol(protocol).ensembling
]


@pytest.mark.parametrize(("name", "protocol"), CASES)
def test_one_member_and_copies_of_one_predict_what_it_predicted(
    name: str, protocol: ProtocolName, sample_inputs: FinetuneInputs, tmp_path: Path
) -> None:
    task, encoder = TASKS[name].with_protocol(protocol), sample_inputs.models["model"]
    examples = task.read(sample_inputs.data / task.files.dev)[:EXAMPLES]
    tokenizer = load_tokenizer(encoder, task.special_tokens)
    seed_everything(1, name)
    model = task.model(encoder, tokenizer)
    features = task.featurize(examples, tokenizer, LONGEST.get(name, 64), False)
    raws = predict(task, model, features, 0)
    expected = task.decode(examples, features, raws)
    assert task.ensembling is not None
    if task.ensembling.to_records is None:
        records = [{"prediction": one.value, "scores": one.scores} for one in expected]
    else:
        path = tmp_path / "kept_scores.parquet"
        write_records(path, examples, task.group, task.ensembling.to_records(examples, features, raws))
        records, groups = read_records(path, [example.guid for example in examples])
        alike = np.array(groups)[:, None] == groups
        wanted = np.array([task.group(example) for example in examples])
        np.testing.assert_array_equal(alike, wanted[:, None] == wanted)
    for copies in (1, 2):
        found = task.ensembling.merge([records] * copies)
        assert [one.value for one in found] == [one.value for one in expected]
        for one, other in zip(found, expected, strict=True):
            assert one.scores == (pytest.approx(other.scores) if name == "klue-mrc" else other.scores)


@pytest.mark.parametrize("columns", [{"other": [1, 2]}, {"guid": ["a", "b"]}, {"guid": ["a"], "group": [0], "x": [1]}])
def test_scores_of_other_rows_or_without_ids_are_refused(columns: dict[str, Any], tmp_path: Path) -> None:
    pq.write_table(pa.table(columns), tmp_path / "kept_scores.parquet")
    with pytest.raises(BadInput, match="rows do not match the 2 predictions"):
        read_records(tmp_path / "kept_scores.parquet", ["a", "b"])

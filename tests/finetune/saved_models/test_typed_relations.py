"""A kept model of KLUE-RE with types of entities."""

from __future__ import annotations

import json
from pathlib import Path

from finetune.config import FinetuneConfig
from finetune.inference.predict import predict_official, predict_texts
from finetune.run import FinetuneInputs, run
from finetune.saved_models.load import load_model
from finetune.tasks.re.markers import TYPES
from finetune.tasks.re.task import KLUE_RE
from tests.finetune.conftest import build_tiny_encoder


def test_a_kept_model_reads_types_and_leaves_out_what_its_training_had_not(
    sample_inputs: FinetuneInputs, tmp_path: Path
) -> None:
    texts = [path.read_text("utf-8") for path in (sample_inputs.data / "klue-re-v1.1").glob("*")]
    folder, _ = build_tiny_encoder(tmp_path, [*texts, "@#*^", *TYPES.values()])
    config = FinetuneConfig(
        tasks=("re",), seeds=(1,), overrides={"re": {"epochs": 1, "max_tokens": 64}},
        settings={"typed": {"re_markers": "typed", "re_restricted": True}},
    )  # fmt: skip
    run(config, FinetuneInputs(sample_inputs.data, {"model": folder}), tmp_path / "out")
    place = tmp_path / "out" / "klue-re" / "model" / "typed" / "seed-1"
    kept = load_model(place / "model", "cpu")
    again = predict_official(kept, sample_inputs.data / KLUE_RE.files.dev)
    rows = [json.loads(line) for line in (place / "predictions.jsonl").read_text("utf-8").splitlines()]
    assert [row["prediction"] for row in again] == [row["prediction"] for row in rows]
    assert any(0.0 in row["scores"] for row in rows)
    learned = json.loads((place / "scores.json").read_text("utf-8"))["learned"]
    (told,) = predict_texts(kept, ["<subj:ORG>한빛사</subj>는 <obj:LOC>서울</obj>에 있다"])
    assert told["prediction"] in learned["ORG-LOC"]
    assert "<subj:ORG>" in (place / "model" / "README.md").read_text("utf-8")
    assert load_model(tmp_path / "out" / "klue-re" / "model" / "seed-1" / "model", "cpu").task == KLUE_RE

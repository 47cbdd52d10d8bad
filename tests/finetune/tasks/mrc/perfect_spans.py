"""An invented passage of KLUE-MRC, and what a perfect model would answer about it."""

from __future__ import annotations

import numpy as np

from finetune.examples import Example
from finetune.tasks.mrc.task import KLUE_MRC

CONTEXT = "민지는 1987년에 부산에서 태어나 서울로 이사했다."


def make_example(context, answer, ask="무엇?"):
    gold = {"answers": [answer] if answer else [], "question_type": 1}
    start = context.index(answer) if answer else None
    return Example("x", gold, {"question": ask, "context": context, "start": start})


def raws_of(features):
    """What a perfect model would answer."""
    for feature in features:
        start, end = np.zeros((2, len(feature["input_ids"])), dtype=np.float32)
        cut = np.zeros(len(start), dtype=np.uint8)
        start[feature["start"]] = end[feature["end"]] = 5
        cut[feature["end"]] = feature["cut"]
        yield {"start": start, "end": end, "cut": cut}


def round_trip(examples, tokenizer, max_tokens=128):
    features = KLUE_MRC.featurize(examples, tokenizer, max_tokens, False)
    return [p.value for p in KLUE_MRC.decode(examples, features, list(raws_of(features)))]

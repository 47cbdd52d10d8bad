"""Entry point for Inspect AI: ``inspect eval malmoi/klue_ner --model … -T data=FOLDER -T shots=5``.

Inspect writes its own logs for its viewer, and ``inspect eval-retry LOG`` finishes an evaluation that failed.
"""

from __future__ import annotations

import malmoi  # noqa: F401 (Inspect names the tasks after this module, which must be loaded)
from finetune.generative.klue.inspect_tasks import make_inspect_task

klue_ynat, klue_sts, klue_nli, klue_ner, klue_re, klue_dp, klue_mrc, klue_wos = map(
    make_inspect_task, ("ynat", "klue-sts", "klue-nli", "klue-ner", "klue-re", "klue-dp", "klue-mrc", "wos")
)

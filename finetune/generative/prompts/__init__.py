"""The prompts of the eight KLUE tasks by full name, in the paper's order."""

from __future__ import annotations

from collections.abc import Mapping

from finetune.generative.prompts.dp import KLUE_DP
from finetune.generative.prompts.labels import KLUE_NLI, KLUE_RE, KLUE_STS, YNAT
from finetune.generative.prompts.mrc import KLUE_MRC
from finetune.generative.prompts.ner import KLUE_NER
from finetune.generative.prompts.prompt import TaskPrompt
from finetune.generative.prompts.wos import WOS

PROMPTS: Mapping[str, TaskPrompt] = {
    prompt.task: prompt for prompt in (YNAT, KLUE_STS, KLUE_NLI, KLUE_NER, KLUE_RE, KLUE_DP, KLUE_MRC, WOS)
}

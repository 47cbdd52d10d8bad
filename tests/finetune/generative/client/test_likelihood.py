"""Likelihoods of answers: computed by hand on a tiny model, and by lm-evaluation-harness."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers.processors import TemplateProcessing

from finetune.generative.client import likelihood
from finetune.generative.client.ask import Answer, Client
from finetune.generative.client.likelihood import load_scorer
from finetune.generative.exports import export_lm_eval
from finetune.generative.klue.run import load_prompted_task, parse_answers, run
from finetune.generative.prompts.prompt import TEMPLATE, render_plain


def test_the_bare_text_is_what_the_template_renders(tiny):
    from transformers import AutoTokenizer

    turns = [("user", "제목: 하나"), ("assistant", "정치"), ("user", "제목: 둘")]
    chat = [{"role": role, "content": text} for role, text in turns]
    rendered = AutoTokenizer.from_pretrained(tiny).apply_chat_template(chat, chat_template=TEMPLATE, tokenize=False)
    assert rendered == render_plain(turns) == "제목: 하나\n답: 정치\n\n제목: 둘\n답:"


def test_a_chat_template_opens_the_turn_of_the_model(tiny):
    scorer = load_scorer(f"hf/{tiny}")
    scorer.tokenizer.chat_template = (
        "{% for one in messages %}<{{ one['role'] }}>{{ one['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    assert scorer.render_context([("user", "하나"), ("assistant", "둘"), ("user", "셋")]) == (
        "<user>하나<assistant>둘<user>셋<assistant>"
    )


def test_a_tokenizer_that_adds_special_tokens_adds_none_to_an_answer(tiny):
    scorer = load_scorer(f"hf/{tiny}")
    plain = scorer.encode("전제 함의")
    first, last = plain[0], plain[-1]
    scorer.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        "<a> $A <b>", None, [("<a>", first), ("<b>", last)]
    )
    assert scorer.tokenizer.encode("전제 함의") == [first, *plain, last]
    assert scorer.encode("전제 함의") == plain


def test_a_sum_is_the_chain_of_next_token_probabilities(tiny):
    import torch

    scorer = load_scorer(f"hf/{tiny}")
    context, choices = "전제: 비가 온다\n답:", ("함의", "모순이다")
    found, *_ = scorer.score(context, choices)
    for answer, value in zip(choices, found, strict=True):
        text = f"{context} {answer}"
        ids = list(text.encode())  # a token a byte
        before, total = len(context.encode()), 0.0
        vocabulary = scorer.tokenizer.get_vocab()
        tokens = scorer.tokenizer.encode(text)
        assert len(tokens) == len(ids) and len(vocabulary) == 257
        for place in range(before, len(tokens)):
            with torch.inference_mode():
                logits = scorer.model(torch.tensor([tokens[:place]])).logits[0, -1]
            total += float(logits.log_softmax(-1)[tokens[place]])
        assert value == pytest.approx(total, abs=1e-3)


def test_a_long_question_loses_only_its_beginning(tiny):
    """GPT-2 here has 1,024 positions: 1,024 tokens are read, and one more is predicted."""
    import torch

    scorer = load_scorer(f"hf/{tiny}")
    context = "가" * 400 + "\n답:"  # 1,200 bytes and a few
    (found,), _, is_cut = scorer.score(context, ("함의",))
    ids = scorer.tokenizer.encode(f"{context} 함의", verbose=False)[-1025:]
    with torch.inference_mode():
        log_p = scorer.model(torch.tensor([ids[:-1]])).logits[0].log_softmax(-1)
    assert found == pytest.approx(sum(float(log_p[place - 1, ids[place]]) for place in range(1018, 1025)), abs=1e-3)
    assert is_cut
    *_, is_cut = scorer.score("가" * 339, ("함의",))  # 1,017 bytes, 7 of blank and answer: the longest that fits
    assert not is_cut


def test_the_context_is_read_once_for_all_answers(tiny):
    scorer = load_scorer(f"hf/{tiny}")
    context, choices = "전제: 비가 온다\n답:", ("함의", "모순이다", "중립")
    (found, *_), read = scorer.score(context, choices), []
    hook = scorer.model.register_forward_pre_hook(
        lambda module, positional, named: read.append(named["input_ids"].shape), with_kwargs=True
    )
    scorer.score(context, choices)
    hook.remove()
    before = len(context.encode())
    assert [tuple(shape) for shape in read] == [(1, before - 1), (3, 1 + len(" 모순이다".encode()) - 1)]
    for answer, value in zip(choices, found, strict=True):
        assert scorer.score(context, (answer,))[0] == pytest.approx([value], abs=1e-3)


def test_after_a_chat_template_comes_the_answer_itself_and_one_beginning(tiny):
    """A template writes its beginning and ends where the model's turn begins: no blank, no second special token."""
    scorer = load_scorer(f"hf/{tiny}")
    scorer.tokenizer.chat_template = "<|end|>{% for one in messages %}{{ one['content'] }}{% endfor %}|"
    scorer.prefix = [scorer.tokenizer.bos_token_id]
    context = scorer.render_context([("user", "하나")])
    assert context == "<|end|>하나|"
    ids, count = scorer.encode_pair(context, "함의")
    assert ids == scorer.tokenizer.encode("<|end|>하나|함의") and ids.count(0) == 1
    assert count == len("함의".encode())
    with_template = scorer.score(context, ("함의",))
    scorer.tokenizer.chat_template = None
    assert scorer.score(context, ("함의",)) != with_template  # a blank before the answer, in bare text


def test_characters_even_out_the_length_of_answers(klue):
    """정치 gets -4 and 생활문화 -6: -2 and -1.5 per character."""
    prompted = load_prompted_task("ynat", klue, limit=1)
    sums = {"정치": -4.0, "생활문화": -6.0}
    answers = [Answer("q", json.dumps([sums.get(choice, -99.0) for choice in prompted.prompt.choices]))]
    assert parse_answers(prompted, answers, is_likelihood=True)[0].prediction.value == "생활문화"


def test_a_second_run_loads_no_model(tiny, klue, tmp_path, monkeypatch):
    tasks = [load_prompted_task("ynat", klue, limit=2)]
    client = Client(f"hf/{tiny}", is_likelihood=True)
    (first,) = run(tasks, client, tmp_path / "a")
    monkeypatch.setattr(likelihood, "load_scorer", lambda *_: pytest.fail("the model is not needed"))
    (again,) = run(tasks, client, tmp_path / "b")
    assert again == first and first["unanswered"] == 0 and first["tokens"]["in"] > 0


@pytest.mark.slow
def test_the_command_on_the_card_gives_the_same_accuracies_in_lm_eval(tiny, klue, tmp_path):
    """The tokenizer puts a special token before a text and none after it, as those of causal models of malmoi do."""
    pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed: pip install lm-eval")
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoTokenizer

    model = shutil.copytree(tiny, tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing("<|end|> $A", None, [("<|end|>", 0)])
    tokenizer.save_pretrained(model)
    prompted_tasks = [load_prompted_task(name, klue, limit=40) for name in ("ynat", "klue-nli")]
    export_lm_eval(prompted_tasks, tmp_path / "tasks")
    ours = run(prompted_tasks, Client(f"hf/{model}", is_likelihood=True), tmp_path / "out")
    [command] = re.findall(r"^ +(lm_eval .+)$", (tmp_path / "tasks/README.md").read_text("utf-8"), re.MULTILINE)
    program, *arguments = shlex.split(command.replace("MODEL", str(model)))
    arguments += ["--device", "cpu", "--batch_size", "4", "--output_path", str(tmp_path / "theirs")]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(tmp_path / "cache")}
    subprocess.run(
        [Path(sys.executable).with_name(program), *arguments], check=True, env={**os.environ, **offline}, timeout=300
    )
    [path] = (tmp_path / "theirs").rglob("results_*.json")
    theirs = json.loads(path.read_text("utf-8"))["results"]
    for name, found in zip(("klue_ynat", "klue_nli"), ours, strict=True):
        assert found["n"] == 40 and found["method"] == "likelihood"
        (path,) = (tmp_path / "out" / "finetune" / found["task"]).rglob("predictions.jsonl")
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        right = sum(line["gold"] == line["prediction"] for line in lines)
        assert theirs[name]["acc_norm,none"] == pytest.approx(right / 40)
    assert ours[1]["scores"]["accuracy"] == pytest.approx(100 * theirs["klue_nli"]["acc_norm,none"])


def test_every_task_is_exported_and_brings_no_code(klue, tmp_path):
    from finetune.task_names import TASK_NAMES

    written = export_lm_eval([load_prompted_task(name, klue, limit=3) for name in TASK_NAMES], tmp_path)
    assert len(written) == 8
    for path in written:
        assert "!function" not in path.read_text("utf-8")
        rows = [json.loads(line) for line in path.with_suffix(".jsonl").read_text("utf-8").splitlines()]
        assert len(rows) == 3 and all(row["text"].endswith("\n답:") for row in rows)


@pytest.mark.slow
def test_generation_by_the_hf_provider_sees_the_same_text_and_is_counted(tiny, klue, tmp_path):
    prompted = load_prompted_task("klue-nli", klue, limit=4)
    prompted = replace(prompted, prompt=replace(prompted.prompt, max_tokens=4))
    (found,) = run([prompted], Client(f"hf/{tiny}", connections=4), tmp_path)
    longest = max(len(render_plain(prompted.messages(example)).encode()) for example in prompted.data.scored)
    assert found["n"] == 4 and found["unanswered"] == 0
    assert found["tokens"]["in"] == 4 * longest  # padded to the longest of the batch
    assert math.isfinite(found["scores"]["accuracy"])

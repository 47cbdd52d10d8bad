"""``malmoi llm mt-bench`` and ``malmoi llm total``. Heavy imports wait until one runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launch.console import PlainConsole, print_table, set_up_console
from launch.errors import LaunchError
from launch.llm.kr_eval.commands import Connections, Device, ModelName, OutFolder, arguments_of

if TYPE_CHECKING:
    from launch.llm.judge.questions import Question


def mt_bench(
    model: ModelName,
    judge: Annotated[list[str], typer.Option(help="Model that judges; a second one for their agreement.")],
    out: OutFolder,
    questions: Annotated[
        Path | None, typer.Argument(metavar="[QUESTIONS.jsonl]", help="FastChat or KoMT-Bench. Default: eight of ours.")
    ] = None,
    references: Annotated[Path | None, typer.Option(help="Reference answers in FastChat's form.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another model's answers.jsonl, or the folder of its run: compare in pairs.")
    ] = None,
    temperature: Annotated[float, typer.Option(min=0, help="Of the answers; judges are asked at 0.")] = 0.0,
    tokens: Annotated[int, typer.Option(min=1, help="Longest answer.")] = 1_024,
    connections: Connections = 8,
    device: Device = None,
) -> None:
    """Answer questions of two turns, and have judges score the answers and compare them in both orders.

    Example:  malmoi llm mt-bench --model openai-api/local/mine --judge openai-api/judge/large --out results/mt-bench
    """
    set_up_console()
    from launch.llm.asking.ask import Asking
    from launch.llm.judge.questions import read_answers
    from launch.llm.judge.run import ANSWERS, run_bench
    from launch.llm.judge.show import tables_of

    if len(set(judge)) < len(judge):
        raise LaunchError(f"--judge {judge[0]}: named twice; agreement is that of two different judges")
    asked, about = _questions(questions, references)
    other = None
    if against is not None:
        against = against / ANSWERS if against.is_dir() else against
        other = read_answers(against, asked)
        if not other:
            raise LaunchError(f"{against}: answers none of the questions; give the answers to the same question file")
        about["against"] = str(against)
    judges = [Asking(name, connections=connections, arguments=arguments_of(name, device)) for name in judge]
    more = arguments_of(model, device)
    asking = Asking(model, connections=connections, temperature=temperature, arguments=more)
    scores = run_bench(asked, asking, judges, out, other, about, tokens)
    for table in tables_of(scores):
        print_table(table, PlainConsole())


def total(
    understanding: Annotated[Path, typer.Argument(help="Folder that `malmoi llm run` wrote.")],
    conversation: Annotated[Path, typer.Argument(help="Folder that `malmoi llm mt-bench` wrote.")],
) -> None:
    """Horangi's total: the mean of understanding and conversation, each from 0 to 1, with intervals.

    Example:  malmoi llm total results/kr-eval results/mt-bench
    """
    set_up_console()
    from launch.llm.judge.total import table_of_total, total_of

    print_table(table_of_total(total_of(understanding, conversation)), PlainConsole())


def _questions(path: Path | None, references: Path | None) -> tuple[list[Question], dict[str, object]]:
    """The questions, and what ``scores.json`` says of their source."""
    from finetune.data.files import identify_own
    from launch.llm.judge.korean import EIGHT
    from launch.llm.judge.questions import read_answers, read_questions, with_references

    asked = list(EIGHT) if path is None else read_questions(path)
    about: dict[str, object] = {"questions": "eight of malmoi" if path is None else identify_own(path)}
    if references is not None:
        asked = with_references(asked, read_answers(references, asked))
        about["references"] = identify_own(references)
    return asked, about

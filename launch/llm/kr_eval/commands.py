"""``malmoi llm run`` and ``malmoi llm export llm-kr-eval``. Heavy imports wait until one runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from launch.console import PlainConsole, Table, print_table, set_up_console

ModelName = Annotated[
    str, typer.Option("--model", help="As Inspect AI names it: openai-api/NAME/MODEL, hf/FOLDER and so on.")
]
OutFolder = Annotated[Path, typer.Option("--out", help="Folder of the results; the same again asks only for the rest.")]
Connections = Annotated[int, typer.Option(min=1, help="Requests at a time; of hf/ the batch.")]
Device = Annotated[str | None, typer.Option(help="Of hf/ models: cpu, cuda … Default: what there is.")]


def arguments_of(model: str, device: str | None) -> dict[str, str]:
    """What only models in this process are told."""
    return {"device": device} if device and model.startswith("hf/") else {}


def export_kr_eval(
    tasks: Annotated[list[str], typer.Argument(metavar="TASK…", help="KLUE tasks, as ner or klue-ner; or all.")],
    data: Annotated[Path, typer.Option("--data", help="Folder laid out like the KLUE repository.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    shots: Annotated[int, typer.Option(min=0, help="Few-shot examples in each evaluation file, from train.")] = 4,
    samples: Annotated[int | None, typer.Option(min=1, help="Only the first so many of dev; published: 100.")] = None,
    seed: Annotated[int, typer.Option(help="Which training examples are shown.")] = 42,
) -> None:
    """Write KLUE tasks as llm-kr-eval files: for evaluation from dev, for tuning and few-shot examples from train.

    Example:  malmoi llm export llm-kr-eval ner re --data klue_benchmark --out kr-eval
    """
    set_up_console()
    from finetune.config import full_name
    from finetune.generation.registry import GENERATIONS
    from launch.llm.kr_eval.export import export_task

    names = [*GENERATIONS] if tasks == ["all"] else list(dict.fromkeys(full_name(task) for task in tasks))
    rows = [export_task(name, data, out, shots, samples, seed) for name in names]
    heads = ("task", "samples", "few-shot", "tuning", "left out")
    note = "Left out: training examples that are dev examples, too." if any(row.left_out for row in rows) else ""
    cells = [[row.task, *(f"{count:,}" for count in row[1:])] for row in rows]
    print_table(
        Table(heads, cells, numbers=range(1, 5), title=f"llm-kr-eval files in {out}", note=note), PlainConsole()
    )


def run_kr_eval(
    files: Annotated[list[Path], typer.Argument(metavar="FILE.json…", help="Evaluation files of llm-kr-eval.")],
    model: ModelName,
    out: OutFolder,
    shots: Annotated[int, typer.Option(min=0, help="Examples shown, the first of few_shots.")] = 0,
    samples: Annotated[int | None, typer.Option(min=1, help="Only the first so many of each file.")] = None,
    as_published: Annotated[bool, typer.Option("--as-published", help="The published code's values, too.")] = False,
    connections: Connections = 8,
    device: Device = None,
) -> None:
    """Score a model on llm-kr-eval files of any task: metrics over the whole file, with intervals.

    Example:  malmoi llm run kornli.json korsts.json --model openai-api/local/my-model --out results
    """
    set_up_console()
    from launch.llm.asking.ask import Asking
    from launch.llm.kr_eval.run import run_files

    asking = Asking(model, connections=connections, arguments=arguments_of(model, device))
    results = run_files(files, asking, out, shots=shots, samples=samples, as_published=as_published)
    console = PlainConsole()
    print_table(table_of(results, as_published), console)
    for result in results:
        if result["unanswered"]:
            console.print(f"NOTE: {result['task']}: {result['unanswered']} questions have no answer and count as wrong")


def table_of(results: Sequence[Mapping[str, Any]], as_published: bool) -> Table:
    """A row a file and metric, from what ``scores.json`` holds."""
    heads = ["file", "metric", "score", "95 %", *(["published"] if as_published else []), "form", "read", "n"]
    rows = []
    for result in results:
        for metric, found in result["metrics"].items():
            interval = found["interval"]
            cells = [result["task"], metric, _number(found["value"])]
            cells.append(f"{interval[0]:.2f}\nto {interval[1]:.2f}" if interval else "–")
            cells += [_number(result["as_published"][metric])] if as_published else []
            rows.append([*cells, _share(result["control"]), _share(result["read"]), f"{result['n']:,}"])
    said = "Form: answers exactly in the demanded form, as the published control score; read: those that could be read."
    signatures = dict.fromkeys(result["bleu"] for result in results if "bleu" in result)
    note = "\n".join([said, *(f"BLEU: {signature}" for signature in signatures)])
    title = f"{results[0]['model']}, {results[0]['shots']} examples shown"
    return Table(heads, rows, numbers=range(2, len(heads)), title=title, note=note)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} %"

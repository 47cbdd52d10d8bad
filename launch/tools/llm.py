"""``malmoi llm …``: generative models on KLUE, llm-kr-eval and MT-Bench. Heavy imports wait until a verb runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from finetune.task_names import TASK_NAMES, full_name
from launch.console import PlainConsole, Table, ToolsOrDefault, print_table
from launch.errors import LaunchError, require

if TYPE_CHECKING:
    from finetune.generative.client.ask import Client
    from finetune.generative.klue.run import PromptedTask
    from finetune.generative.mt_bench.run import Bench
    from finetune.generative.tables import ResultTable

TOOLS = "Tools"
MODEL_HELP = "Model as Inspect AI names it: openai-api/NAME/MODEL, hf/FOLDER, vllm/NAME …"
SEED = 42  # of exported few-shot examples

ModelName = Annotated[str, typer.Option("--model", help=MODEL_HELP)]
OutFolder = Annotated[Path, typer.Option("--out", help="Output folder. Run again to ask only unanswered questions.")]
Connections = Annotated[int, typer.Option(min=1, help="Concurrent requests; for hf/ models the batch size.")]
Shots = Annotated[int, typer.Option(min=0, help="Few-shot examples from train in each question.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Number of examples per task, drawn by seed. Default: all.")]
RunFolder = Annotated[Path | None, typer.Option(help="Output folder. In a run folder, its report shows the results.")]
METHOD_HELP = """\
generation: parse the generated text. likelihood: choose the most likely label (hf/ models; YNAT, NLI and RE only)."""
MaxTokens = Annotated[int | None, typer.Option(min=1, help="Limit on the length of an answer. Default: by task.")]
ThinkingTokens = Annotated[int, typer.Option(min=0, help="Budget for thoughts of a reasoning model before its answer.")]
Method = Annotated[Literal["generation", "likelihood"], typer.Option(help=METHOD_HELP)]


class TasksOrTools(ToolsOrDefault):
    """``malmoi llm TASK… --model …`` asks the tasks; ``malmoi llm export …`` and the others are tools."""

    default, usage = "ask", "TASK… --model MODEL [OPTIONS]"


ABOUT = """Evaluate generative models on the KLUE tasks.

Example:  malmoi llm ynat nli --model openai-api/local/my-model --data malmoi:sample --limit 50 --out runs/asked

For openai-api/NAME/MODEL, set the environment variables NAME_BASE_URL and NAME_API_KEY.
"""
export_app = typer.Typer(no_args_is_help=True, help="Export the KLUE tasks for other evaluation tools.")
llm_app = typer.Typer(cls=TasksOrTools, no_args_is_help=True, help=ABOUT)
llm_app.add_typer(export_app, name="export", rich_help_panel=TOOLS)


@llm_app.command("ask", hidden=True, help=ABOUT)
def ask_tasks(
    tasks: Annotated[list[str], typer.Argument(metavar="TASK…", help="Tasks, or a recipe (its tasks and data).")],
    model: ModelName,
    data: Annotated[str | None, typer.Option(help="Folder of KLUE files, or malmoi:sample.")] = None,
    out: RunFolder = None,
    shots: Shots = 0,
    limit: Limit = None,
    method: Method = "generation",
    seed: Annotated[int, typer.Option(help="Seed that draws the few-shot examples.")] = 1,
    connections: Connections = 8,
    attempts: Annotated[int, typer.Option(min=1, help="Maximum number of requests per question.")] = 6,
    price_in: Annotated[float | None, typer.Option(min=0, help="Price of a million input tokens.")] = None,
    price_out: Annotated[float | None, typer.Option(min=0, help="Price of a million output tokens.")] = None,
    max_tokens: MaxTokens = None,
    thinking_tokens: ThinkingTokens = 0,
    runs: Annotated[Path, typer.Option(help="Directory for run outputs, if a recipe is given.")] = Path("runs"),
) -> None:
    """Ask a generative model the KLUE tasks."""
    client = make_client(model, connections, attempts, method == "likelihood", thinking_tokens)
    from finetune.generative.klue.run import run
    from launch.report.scores import results_table

    prices = None if price_in is None and price_out is None else (price_in or 0.0, price_out or 0.0)
    prompted_tasks, folder = load_tasks(tasks, data, out, runs, shots, limit, seed)
    results = run(prompted_tasks, client, folder, seed=seed, prices=prices, max_tokens=max_tokens)
    print_table(results_table(results))
    PlainConsole().print(f"results: {folder / 'finetune'}", soft_wrap=True)


@llm_app.command("run", rich_help_panel=TOOLS)
def run_kr_eval(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE.json…", help="Evaluation files of llm-kr-eval; with --judge, also a .jsonl file."),
    ],
    model: ModelName,
    out: OutFolder,
    shots: Annotated[int, typer.Option(min=0, help="Number of few_shots of the file to show.")] = 0,
    samples: Annotated[int | None, typer.Option(min=1, help="Use only the first N samples of each file.")] = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(help="Also run MT-Bench (.jsonl; default: 8 questions) and print Horangi's total."),
    ] = None,
    max_tokens: MaxTokens = None,
    thinking_tokens: ThinkingTokens = 0,
    connections: Connections = 8,
) -> None:
    """Score a model on llm-kr-eval files of any task: metrics over the whole file, with intervals.

    With --judge both halves of Horangi are run: the files, then MT-Bench, then the total of both.

    Example:  malmoi llm run kornli.json korsts.json --model openai-api/local/my-model --out results
    """
    client = make_client(model, connections, thinking_tokens=thinking_tokens)
    from finetune.generative.kr_eval.run import run_files
    from finetune.generative.tables import kr_eval_table

    questions = [file for file in files if file.suffix == ".jsonl"]
    tasks = [file for file in files if file not in questions]
    if len(questions) > bool(judge) or not tasks:
        expected = "llm-kr-eval files (.json), and with --judge at most one file of MT-Bench questions (.jsonl)"
        raise LaunchError(f"{', '.join(map(str, questions or files))}: expected {expected}")
    bench = load_judged(questions[0] if questions else None, judge, connections) if judge else None
    results = run_files(tasks, client, out, shots=shots, samples=samples, max_tokens=max_tokens)
    print_result_table(kr_eval_table(results))
    for result in results:
        if result["unanswered"]:
            typer.echo(f"NOTE: {result['task']}: {result['unanswered']} questions have no answer and count as wrong")
    if bench is not None:
        from finetune.generative.horangi import compute_total, total_table

        print_result_table(total_table(compute_total(results, judge_and_show(*bench, client, out / "mt-bench"))))


@llm_app.command("mt-bench", rich_help_panel=TOOLS)
def mt_bench(
    model: ModelName,
    judge: Annotated[list[str], typer.Option(help="Judge model; repeat for a second judge and their agreement.")],
    out: OutFolder,
    questions: Annotated[
        Path | None,
        typer.Argument(metavar="[QUESTIONS.jsonl]", help="FastChat or KoMT-Bench questions. Default: 8 built-in ones."),
    ] = None,
    references: Annotated[Path | None, typer.Option(help="Reference answers in the format of FastChat.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another run's folder, or its answers.jsonl: compare the answers in pairs.")
    ] = None,
    connections: Connections = 8,
) -> None:
    """Run MT-Bench: answer questions of two turns; judge models score the answers and compare pairs in both orders.

    Example:  malmoi llm mt-bench --model openai-api/local/mine --judge openai-api/judge/large --out results/mt-bench
    """
    client = make_client(model, connections)
    judge_and_show(*load_judged(questions, judge, connections, references, against), client, out)


def load_judged(
    questions: Path | None,
    judge: list[str],
    connections: int,
    references: Path | None = None,
    against: Path | None = None,
) -> tuple[Bench, list[Client]]:
    """The questions of MT-Bench and its judges."""
    from finetune.generative.client.ask import check_name
    from finetune.generative.mt_bench.run import load_bench

    if len(set(judge)) < len(judge):
        raise LaunchError(f"--judge {judge[0]}: named twice; their agreement needs two different judges")
    for name in judge:
        check_name(name)
    return load_bench(questions, references, against), [make_client(name, connections) for name in judge]


def judge_and_show(bench: Bench, judges: list[Client], client: Client, out: Path) -> dict[str, Any]:
    """Run MT-Bench and print its tables; returns its scores."""
    from finetune.generative.mt_bench.run import run_bench
    from finetune.generative.tables import mt_bench_tables

    scores = run_bench(bench, client, judges, out)
    for table in mt_bench_tables(scores):
        print_result_table(table)
    return scores


@llm_app.command("total", rich_help_panel=TOOLS)
def total(
    understanding: Annotated[Path, typer.Argument(help="Folder that `malmoi llm run` wrote.")],
    conversation: Annotated[Path, typer.Argument(help="Folder that `malmoi llm mt-bench` wrote.")],
) -> None:
    """Compute Horangi's total: the mean of understanding and conversation, each from 0 to 1, with intervals.

    Example:  malmoi llm total results/kr-eval results/mt-bench
    """
    from finetune.generative.horangi import total_of, total_table

    print_result_table(total_table(total_of(understanding, conversation)))


@export_app.command("lm-eval")
def export_lm_eval(
    folder: Annotated[Path, typer.Argument(help="Folder to write to.")],
    tasks: Annotated[list[str] | None, typer.Argument(metavar="[TASK…]", help="Default: all eight.")] = None,
    data: Annotated[str, typer.Option(help="Folder of KLUE files, or malmoi:sample.")] = "malmoi:sample",
    shots: Shots = 0,
    limit: Limit = None,
) -> None:
    """Export the tasks for lm-evaluation-harness: YAML files and JSON lines with the questions.

    Tasks with a fixed set of answers are scored by likelihood (acc_norm equals --method likelihood), the others by
    exact match.

    Example:  malmoi llm export lm-eval klue-tasks ynat nli --data klue
    """
    from finetune.generative.exports import export_lm_eval, lm_eval_command

    written = export_lm_eval(load_tasks(tasks or TASK_NAMES, data, folder, Path("runs"), shots, limit, SEED)[0], folder)
    typer.echo(f"{len(written)} tasks: {lm_eval_command(folder, written)}")


@export_app.command("llm-kr-eval")
def export_kr_eval(
    tasks: Annotated[list[str], typer.Argument(metavar="TASK…", help="KLUE tasks such as ner or klue-ner; or all.")],
    data: Annotated[Path, typer.Option("--data", help="Folder laid out like the KLUE repository.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    samples: Annotated[
        int | None, typer.Option(min=1, help="Use only the first N dev examples (published: 100).")
    ] = None,
) -> None:
    """Export KLUE tasks as llm-kr-eval files: dev for evaluation, train for few-shot and tuning.

    Example:  malmoi llm export llm-kr-eval ner re --data klue_benchmark --out kr-eval
    """
    from finetune.generative import exports

    names = TASK_NAMES if tasks == ["all"] else dict.fromkeys(full_name(task) for task in tasks)
    exported = {name: exports.export_kr_eval(name, data, out, samples=samples, seed=SEED) for name in names}
    print_result_table(exports.kr_eval_export_table(exported, out))


@llm_app.command("prepare", rich_help_panel=TOOLS)
def prepare(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Data set, such as kornli; a wrong name lists all.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Published files to evaluate on.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    train: Annotated[
        list[Path] | None, typer.Option(help="Published file for few-shot and tuning; repeat for more files.")
    ] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Draw N examples (published: 100). Default: all.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws and of the order of options.")] = SEED,
) -> None:
    """Write llm-kr-eval files of a public data set: KorNLI, KorSTS, KoBEST, KMMLU, HAE-RAE, KoBBQ and others.

    Training examples that are also evaluated are left out. Without --train, 14 examples are held out for few-shot.

    Example:  malmoi llm prepare kornli xnli.dev.ko.tsv --train multinli.train.ko.tsv --samples 100 --out kr-eval
    """
    from finetune.generative.exports import kr_eval_export_table, prepare_kr_eval

    print_result_table(kr_eval_export_table({name: prepare_kr_eval(name, files, train or (), out, samples, seed)}, out))


def make_client(model: str, *settings: Any, **more: Any) -> Client:
    """The client of a model, after a check that Inspect AI is installed, and what ``hf/`` models need."""
    needed = ["torch", "transformers", "accelerate"] if model.startswith("hf/") else []
    require("malmoi llm", ["inspect_ai", *needed])
    from finetune.generative.client.ask import Client

    return Client(model, *settings, **more)


def print_result_table(table: ResultTable) -> None:
    """Print a table."""
    numbers = range(table.first_number, len(table.heads))
    print_table(Table(table.heads, table.rows, numbers, title=table.title, note=table.note))


def load_tasks(
    names: Sequence[str], data: str | None, out: Path | None, runs: Path, shots: int, limit: int | None, seed: int
) -> tuple[list[PromptedTask], Path]:
    """The tasks with their examples, and the output folder; a recipe brings its own tasks, data and run folder."""
    from finetune.config import FinetuneConfig
    from finetune.generative.klue.run import load_prompted_task
    from launch.recipe import load_recipe, shipped_recipes
    from launch.sample.unpack import find_klue

    config: FinetuneConfig | None = None
    if names[0] in shipped_recipes() or names[0].endswith((".yaml", ".yml")):
        recipe = load_recipe(names[0])
        config, data, out = recipe.finetune, data or recipe.finetune.data, out or runs / recipe.name
        names = names[1:] or config.tasks
    chosen = dict.fromkeys(full_name(name) for name in names)
    if data is None or out is None:
        missing = "--data FOLDER (or malmoi:sample)" if data is None else "--out FOLDER"
        raise LaunchError(f"malmoi llm {' '.join(names)}: set {missing}, or name a recipe, which has data and output")
    folder = find_klue(data, out)
    return [load_prompted_task(name, folder, shots, limit, seed, config) for name in chosen], out

"""Work that other processes can import, a small invented corpus, folders to compare, and a cluster of one machine."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from corpus.config import CorpusConfig, PiiConfig
from corpus.documents.shards import Document, write_shard
from corpus.documents.units import MapUnits
from corpus.reading.inputs import find_inputs
from corpus.run import CorpusInputs, run
from launch.config import LaunchConfig
from launch.errors import LaunchError
from launch.executors import mapper
from launch.executors.task import Plan, start_task, write_plan
from launch.pipeline import run_pack, run_tokenizer
from launch.recipe import load_recipe

TOY_WORK = """
import os, signal
from pathlib import Path
from corpus.documents.errors import BadInput

def shout(unit, scratch, *, mark="!"):
    (scratch / "text").write_text(unit + mark, "utf-8")
    return {"letters": len(unit), "낱말": {unit: 1}}

def die_once(unit, scratch, *, deadly, flag):
    (scratch / "text").write_text("half", "utf-8")
    if unit == deadly and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return shout(unit, scratch)

def die_after_work(unit, scratch, *, work, flag):
    counts = work(unit, scratch)
    if getattr(unit, "start", 0) and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return counts

def die_in_the_second(unit, scratch, *, work, flag):
    counts = work(unit, scratch)
    if scratch.name.startswith("unit-00001.") and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return counts

def lose_the_task(unit, scratch, *, work, flag, number=None):
    import time
    counts = work(unit, scratch)
    if scratch.name.startswith(f"unit-{number or 0:05}.") and (number is not None or not flag.exists()):
        flag.touch()
        os.kill(os.getppid(), signal.SIGKILL)  # the process that srun or Ray started
        time.sleep(60)
    return counts

def reject(unit, scratch, *, bad):
    if unit in bad:
        raise BadInput(f"{unit}: cannot be read; remove it")
    return shout(unit, scratch)

def stumble(unit, scratch):
    private = unit + " 전화 010-0000-1234"
    raise ValueError("cannot use " + private)

def wait_for(unit, scratch, *, gate):
    import time
    gate.with_suffix(".pid").write_text(str(os.getpid()))
    while not gate.exists():
        time.sleep(0.05)
    return shout(unit, scratch)

def meet(unit, scratch, *, folder, guests):
    import time
    (folder / f"here-{unit}").touch()
    deadline = time.monotonic() + 60
    while len(list(folder.glob("here-*"))) < guests:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return shout(unit, scratch)

def die_always(unit, scratch, *, deadly, flag):
    if unit == deadly:
        with flag.open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return shout(unit, scratch)

def serve(number, scratch, *, folder, deadly=None):
    if number == deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / f"served-{number}").touch()
    return {}

def copy(unit, scratch):
    return shout(Path(unit).read_text("utf-8"), scratch)
"""
CORPUS = CorpusConfig(min_sentence_chars={}, max_bad_share=0.1, pii=PiiConfig(repeatable=True))
WORDS = ["가람", "나무", "다리", "라면", "마을", "바다", "사슴"]


@pytest.fixture(scope="package")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module above, importable here and in every process started from here."""
    folder = tmp_path_factory.mktemp("toy")
    (folder / "toy_work.py").write_text(TOY_WORK, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv("PYTHONPATH", str(folder), prepend=":")
        import toy_work

        yield toy_work


def simulated_engine(tasks: int = 3) -> MapUnits:
    """The map of a cluster whose tasks are processes of this machine, two at a time."""

    def map_here(work: Any, units: Any, folder: Path, **options: Any) -> list[dict[str, Any]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(mapper.EXECUTE, "slurm", execute_here)
            return mapper.map_on_cluster(LaunchConfig(engine="slurm", tasks=tasks), work, units, folder, **options)

    return map_here


def execute_here(config: LaunchConfig, plan: Plan, home: Path) -> dict[int, str]:
    def start(rank: int) -> None:
        with suppress(LaunchError):  # the reason is in the plan's folder
            start_task(home, rank, tasks)

    write_plan(home, plan)
    tasks = min(config.tasks, len(plan.missing))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(start, range(tasks)))
    return {}


@pytest.fixture
def words() -> list[str]:
    return list(WORDS)


def contents(folder: Path, pattern: str = "unit-*") -> dict[str, bytes]:
    """Every file below the matching entries of ``folder`` with its bytes."""
    found = [path for top in folder.glob(pattern) for path in [top, *top.rglob("*")] if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CorpusInputs:
    """Three files in a dozen units: repeated documents, invented personal data, a benchmark sentence, a broken line."""
    monkeypatch.setattr("corpus.reading.inputs.UNIT_BYTES", 2_000)
    monkeypatch.setattr("corpus.assemble.SHARD_DOCUMENTS", 20)
    benchmark = "다람쥐 마을의 도서관은 겨울에도 열두 시간 동안 문을 연다."
    lines = [
        json.dumps(
            {
                "id": f"n{n}",
                "text": f"{n}번 다람쥐가 도토리 {n % 7}개를 모았다. 문의는 010-0000-{n % 9:04}로 하면 된다.",
            },
            ensure_ascii=False,
        )
        for n in range(60)
    ]
    lines[7] = '{"text": "끊긴 줄'
    lines[30] = json.dumps({"text": f"{benchmark} 그래서 모두 기뻐했다."}, ensure_ascii=False)
    texts = [tmp_path / "가.jsonl", tmp_path / "나.txt", tmp_path / "다.jsonl.gz"]
    texts[0].write_text("\n".join(lines), "utf-8")
    texts[1].write_text("\n".join(f"여우 {n % 11}마리가 산다. 산은 {n}길이다." for n in range(90)), "utf-8")
    texts[2].write_bytes(gzip.compress("\n".join(lines[40:]).encode(), mtime=0))
    (tmp_path / "bench.txt").write_text(benchmark, "utf-8")
    inputs = find_inputs([str(text) for text in texts], {}, "text")
    return CorpusInputs(inputs, [tmp_path / "bench.txt"])


def run_corpus(out: Path, inputs: CorpusInputs, **options: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    out.mkdir(exist_ok=True)
    return run(CORPUS, inputs, out, **options), contents(out, "*")


@pytest.fixture(scope="package")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the corpus stage leaves it; one shard of it is empty."""
    folder = tmp_path_factory.mktemp("corpus")
    documents = [
        Document(
            f"d{n}", "동화" if n % 3 else "편지", (f"다람쥐가 도토리 {n % 7}개를 모았다.", f"여우는 {n}번 산을 넘었다.")
        )
        for n in range(60)
    ]
    (folder / "documents").mkdir()
    for number, part in enumerate((documents[:25], [], documents[25:])):
        write_shard(folder / "documents" / f"shard-{number:05}.parquet", part)
    return folder


@pytest.fixture(scope="package")
def built_here(tmp_path_factory: pytest.TempPathFactory, shards: Path) -> dict[str, bytes]:
    """What ``build_and_pack`` leaves without an engine."""
    return build_and_pack(tmp_path_factory.mktemp("here"), shards, None)


def build_and_pack(run: Path, shards: Path, map_units: MapUnits | None) -> dict[str, bytes]:
    """Files of a vocabulary and of a token store made with it, by the stages as a run starts them.

    Each map has two units or three.
    """
    sizes = ("tokenizer.building.count.SMALLEST_PORTION", "tokenizer.building.count.PARTITION_BYTES")
    recipe = load_recipe("smoke", ["tokenizer.vocab_size=1600", "tokenizer.jamo_fallback=true", "workers=1"])
    run.mkdir(exist_ok=True)
    if not (run / "corpus").exists():
        (run / "corpus").symlink_to(shards)
    with pytest.MonkeyPatch.context() as patch:
        for name in (*sizes, "pretrain.pack.run.PORTION_BYTES"):
            patch.setattr(name, 1_000)
        patch.setattr("launch.pipeline.engine_mapper", lambda config: map_units)
        for name, work in (("tokenizer", run_tokenizer), ("tokens", run_pack)):
            if not (run / name / "tokenizer.json").exists():  # a run skips finished stages, too
                (run / name).mkdir(exist_ok=True)
                work(recipe, run, run / name)
    return contents(run, "tok*")


def build_while_workers_die(
    toy: ModuleType, run: Path, shards: Path, engine: MapUnits, maps: Collection[str]
) -> tuple[dict[str, bytes], set[str]]:
    """The same files, and the maps in which a worker was killed at the end of its second unit: each of ``maps`` once.

    The command is given again until it ends well.
    """
    deadly, flags = deadly_engine(toy.die_in_the_second, run, engine, maps)
    while True:
        before = set(flags.iterdir())
        try:
            return build_and_pack(run, shards, deadly), {flag.name for flag in flags.iterdir()}
        except LaunchError as error:
            assert "SIGKILL" in str(error) and len(set(flags.iterdir()) - before) == 1, error


def deadly_engine(
    dying: Callable[..., Any], run: Path, engine: MapUnits, maps: Collection[str]
) -> tuple[MapUnits, Path]:
    """The engine with work that kills a process once in each of ``maps``, and the folder that notes where it did."""
    flags = run.with_name("killed")
    flags.mkdir()

    def deadly(work: Any, units: Any, folder: Path, **options: Any) -> list[dict[str, Any]]:
        name = f"{folder.parent.name}-{folder.name}" if folder.name == "units" else folder.name
        once = partial(dying, work=work, flag=flags / name)
        return engine(once if name in maps else work, units, folder, **options)

    return deadly, flags


def until(is_true: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until ``is_true()``; fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(process: int) -> bool:
    """Whether a process that is not our child lives; a zombie does not."""
    status = Path("/proc") / str(process) / "status"
    return status.exists() and "Z (zombie)" not in status.read_text()

"""The corpus bench: scores equal to worked and published ones, fair timing, one whole run."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.baselines import load_detectors, load_splitters, split_at_stops
from benchmarks.corpus import run_corpus_bench
from benchmarks.gold import read_gold, read_labelled, score_spans, score_splits
from benchmarks.texts import FILES, SAMPLE, read_texts, spread
from benchmarks.timing import fresh_in_turns, run_fresh, time_in_turns
from corpus.documents.errors import BadInput
from launch.errors import LaunchError

PHONE = "010-0123-4567"


@pytest.mark.parametrize(
    ("gold", "found", "em", "f1", "nf1"),
    [
        (["가나. ", "다라."], ["가나.", "다라."], 1, 1, 1),
        (["가나. ", "다라."], ["가나. 다라."], 0, 1 / 3, 1 / 3),  # 2·3 / (3+6) for one of the two
        (["가나다라"], ["가나", "다라"], 0, 2 / 3, 1 / 3),  # 2·2 / (4+2); twice as many as gold
        (["가나다 ", "라마바사"], ["가나", "다라마바사"], 0, (4 / 5 + 8 / 9) / 2, (4 / 5 + 8 / 9) / 2),
    ],
)
def test_split_scores_equal_those_worked_by_hand(
    gold: list[str], found: list[str], em: float, f1: float, nf1: float
) -> None:
    assert score_splits([gold], lambda text: found) == pytest.approx((em, f1, nf1, len(gold)))


def test_split_scores_of_the_plain_rule_are_the_published_ones(shared: Callable[[str], Path]) -> None:
    scores = score_splits(read_gold(shared("data/sentences")), split_at_stops)
    assert scores == pytest.approx((0.527, 0.654, 0.623, 1_223), abs=0.001)


def test_split_scores_of_kiwi_are_the_published_ones(shared: Callable[[str], Path]) -> None:
    pytest.importorskip("kiwipiepy")
    scores = score_splits(read_gold(shared("data/sentences")), load_splitters()["kiwi"])
    assert scores == pytest.approx((0.778, 0.901, 0.865, 1_223), abs=0.003)


def test_span_scores_equal_those_worked_by_hand() -> None:
    labelled = [
        ("a" * 40, [(0, 10, "TEL"), (20, 30, "URL")]),  # found half; found with another type
        ("b" * 20, [(0, 8, "IP")]),  # missed
        ("c" * 20, []),  # flagged
    ]
    found = {"a": [(0, 5, "TEL"), (20, 30, "EMAIL")], "b": [(12, 14, "IP")], "c": [(1, 3, "TEL")]}
    scores = score_spans(labelled, lambda text: found[text[0]])
    assert scores == {
        "precision": 1 / 4, "recall": 1 / 3, "f1": 2 / 7, "exact_recall": 0.0, "covered_recall": 2 / 3, "flagged": 1,
        "recall_by_type": {"IP": 0.0, "TEL": 1.0, "URL": 0.0},
    }  # fmt: skip


def test_one_true_value_counts_for_one_prediction_only() -> None:
    scores = score_spans([("a" * 20, [(0, 10, "TEL")])], lambda text: [(0, 6, "TEL"), (0, 10, "TEL")])
    assert (scores["precision"], scores["recall"]) == (0.5, 1.0)


def test_the_baseline_reaches_its_published_scores(shared: Callable[[str], Path]) -> None:
    """Otherwise the comparison would be unfair."""
    pytest.importorskip("ko_pii")
    scores = score_spans(read_labelled(shared("oracle/pii_public.jsonl")), load_detectors()["ko-pii"])
    measured = [scores[key] for key in ("precision", "recall", "f1", "covered_recall", "flagged")]
    assert measured == pytest.approx((0.968, 0.781, 0.864, 0.781, 4), abs=0.002)


def test_contenders_take_turns_and_the_median_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    clock = iter([0, 5, 5, 6, 10, 11, 20, 22, 30, 33, 40, 49])  # a: 5, 1, 3; b: 1, 2, 9
    monkeypatch.setattr("benchmarks.timing.time.process_time", lambda: next(clock))
    seconds = time_in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")})
    assert order == ["a", "b"] * 3
    assert seconds == {"a": 3, "b": 2}


def test_spread_takes_whole_texts_from_all_over() -> None:
    texts = [str(n) * 100 for n in range(10)]
    assert [text[0] for text in spread(texts, 500 / 1e6)] == ["0", "2", "4", "6", "8"]
    assert spread(texts, 1.0) == texts
    assert spread(texts, 1e-9) == texts[:1]


def test_every_file_gives_its_share_and_leaves_what_it_lacks_to_others(tmp_path: Path) -> None:
    for name, number in (("a", 1), ("b", 50), ("c", 50)):
        rows = [json.dumps({"text": f"{name}{n:09}"}) for n in range(number)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    texts = list(read_texts([str(tmp_path)], 310 / 1e6))
    assert [sum(text[0] == name for text in texts) for name in "abc"] == [1, 15, 15]


def labelled_line(text: str, *spans: list[Any]) -> str:
    return json.dumps({"text": text, "spans": list(spans)}, ensure_ascii=False) + "\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Small invented inputs of every kind."""
    letters = [f"제 번호는 {PHONE}입니다. 오늘은 {n}번째 편지를 씁니다. 바다가 참 맑고 조용했다." for n in range(40)]
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in letters]
    (tmp_path / "letters.jsonl").write_text("\n".join(lines), "utf-8")
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "a.txt").write_text("비가 왔다. \n그래서 걸었다.\n\n정말요? \n네!\n", "utf-8")
    rows = labelled_line(f"문의는 {PHONE}로", [4, 17, "TEL"]) + labelled_line("오늘은 맑다.")
    (tmp_path / "pii.jsonl").write_text(rows, "utf-8")
    items = [f"{n}번 마을 사람들이 {n * 7}일 동안 바닷가에서 배를 고쳤다고 한다." for n in range(30)]
    (tmp_path / "items.txt").write_text("\n\n".join(items), "utf-8")
    return {name: tmp_path / name for name in ("letters.jsonl", "gold", "pii.jsonl", "items.txt")}


@pytest.mark.slow
def test_a_run_prints_every_section_and_writes_its_figures(
    files: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    in_this_process: None,
) -> None:
    given = [str(files["letters.jsonl"])], files["gold"], files["pii.jsonl"], [str(files["items.txt"])]
    results = run_corpus_bench(*given, 1.0, tmp_path)
    printed = capsys.readouterr().out
    for title in ("Sentence splitting", "Personal data", "Decontamination", "Whole stage"):
        assert title in printed
    assert PHONE not in printed
    assert json.loads((tmp_path / "bench.json").read_text("utf-8")) == results
    assert set(results["material"].values()) == {"files given"}
    assert results["splitting"]["rows"]["ours"]["em"] == 1
    assert results["personal_data"]["rows"]["ours"]["f1"] == 1
    assert results["personal_data"]["mb_per_s"] > 0
    decontamination = results["decontamination"]["rows"]
    assert [decontamination[way]["items"] for way in ("ours", "rank_bm25", "ours, all")] == [30] * 3
    assert decontamination["ours"]["times"] == pytest.approx(
        decontamination["ours"]["per_s"] / decontamination["rank_bm25"]["per_s"]
    )
    assert results["whole_stage"]["documents"] == 40
    assert results["whole_stage"]["peak_mib_one_process"] > 20


@pytest.mark.slow
def test_missing_inputs_come_from_the_embedded_sample_and_the_results_say_so(
    files: dict[str, Path], tmp_path: Path, in_this_process: None
) -> None:
    results = run_corpus_bench([str(files["letters.jsonl"])], None, None, [str(files["items.txt"])], 1.0, None)
    assert results["material"] == {"texts": FILES, "sentences": SAMPLE, "pii": SAMPLE, "benchmarks": FILES}
    assert results["whole_stage"]["documents"] == 40
    assert results["splitting"]["gold_sentences"] > 1_000
    assert results["personal_data"]["values"] == 16 * 24
    assert results["personal_data"]["rows"]["ours"]["f1"] > 0.9


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"megabytes": 0.0}, "--megabytes 0"),
        ({"sentences": "nothing"}, "no gold sentences"),
        ({"pii": "nothing.jsonl"}, "no such file"),
        ({"pii": "letters.jsonl"}, "line 1"),
        ({"benchmarks": "nothing"}, "nothing"),
    ],
)
def test_unusable_input_is_one_sentence(files: dict[str, Path], changes: dict[str, Any], words: str) -> None:
    folder = files["gold"].parent
    given = {"sentences": "gold", "pii": "pii.jsonl", "benchmarks": "items.txt", "megabytes": 1.0} | changes
    texts, benchmarks = [str(files["letters.jsonl"])], [str(folder / given["benchmarks"])]
    with pytest.raises(BadInput, match=words):
        run_corpus_bench(
            texts, folder / given["sentences"], folder / given["pii"], benchmarks, given["megabytes"], None
        )


def test_a_fresh_process_returns_its_result_and_its_cost() -> None:
    found = run_fresh(json.loads, '{"a": 1}', "reading")

    assert found.pop("a") == 1
    assert found.pop("cpu_s") > 0 and found.pop("peak_mib") > 5
    assert set(found) == {"wall_s", "peak_worker_mib"}


def test_failure_of_a_fresh_process_is_an_error() -> None:
    with pytest.raises(LaunchError, match=r"reading failed in its own process \(json.decoder.JSONDecodeError"):
        run_fresh(json.loads, "no JSON", "reading")


def chatty(order: dict[str, int]) -> dict[str, int]:
    logging.getLogger("tests.benchmarks.anything").info("half of %d", order["work"])
    logging.getLogger("elsewhere").info("not asked for")
    print("to stdout by somebody")
    return order


def lasting(order: dict[str, str]) -> dict[str, int]:
    Path(order["number"]).write_text(str(os.getpid()), "utf-8")
    time.sleep(600)
    return {}


def test_log_lines_of_a_fresh_process_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert run_fresh(chatty, {"work": 2}, "chatter:")["work"] == 2
    assert caplog.messages == ["chatter: half of 2"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="whether a process of others runs is read from /proc")
def test_a_fresh_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    """A killed command leaves no processes behind."""
    number = tmp_path / "number"
    program = (
        "from benchmarks.timing import run_fresh; from tests.benchmarks.test_corpus import lasting; "
        f"run_fresh(lasting, {{'number': {str(number)!r}}}, 'waiting')"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    try:
        while not (number.exists() and number.read_text("utf-8")):
            assert parent.poll() is None
            time.sleep(0.05)
    finally:
        parent.kill()
    child = int(number.read_text("utf-8"))
    for _ in range(1200):
        if not _runs(child):
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    pytest.fail("it still runs a minute later")


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_fresh_processes_take_turns_and_medians_of_their_figures_count(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = iter([5.0, 1.0, 3.0, 9.0, 4.0, 2.0])
    order: list[str] = []

    def run_here(work: Callable[[Any], dict[str, Any]], given: Any, *rest: Any) -> dict[str, Any]:
        order.append(given)
        return {"s": next(figures), "n": len(order)}

    monkeypatch.setattr("benchmarks.timing.run_fresh", run_here)
    assert fresh_in_turns(json.loads, {"one": "a", "two": "b"}, 3) == {
        "one": {"s": 4, "n": 1},
        "two": {"s": 2, "n": 2},
    }
    assert order == ["a", "b"] * 3

"""Search: rankings against simple counting, the weight of cosines, index folders, and the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest
import torch
from rank_bm25 import BM25Okapi
from sentence_transformers import CrossEncoder, SentenceTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import average_precision_score, ndcg_score

from benchmarks.record_tables import RECORDS, read_record
from corpus.documents.errors import BadInput
from finetune.config import FinetuneConfig
from finetune.embed.config import EmbedConfig
from finetune.embed.data import EvaluationSet, Item, read_evaluation_file, read_file, with_distractors
from finetune.embed.embedder import StaticEncoder, build_net, load_embedder
from finetune.embed.evaluate import Bm25, tfidf_cosines
from finetune.embed.index import Index, build_index
from finetune.embed.retrieval import (
    CHOICES_NAME,
    WEIGHTS,
    Reranker,
    choose_weight,
    combine,
    content_words,
    mine_negatives,
    write_choices,
)
from finetune.embed.run import EmbedInputs, Prepared, run
from finetune.examples import Example, Prediction
from finetune.run import FinetuneInputs
from finetune.run import run as train_tasks
from finetune.score.baselines import bigrams
from finetune.tasks.similarity import average_precision, score_ranking, similarity_task
from launch.tools.serve import endpoint_of
from tests.command import run_command
from tests.finetune.embed.conftest import PLACES, THINGS, sentence

TEXTS = [sentence(i, i * 5 + 1, i) for i in range(24)]


def test_counting_equals_scikit_learn() -> None:
    firsts, seconds = TEXTS[:12], TEXTS[12:]
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 2)).fit(TEXTS)
    a, b = vectorizer.transform(firsts), vectorizer.transform(seconds)
    assert np.allclose(tfidf_cosines(firsts, seconds), np.asarray(a.multiply(b).sum(axis=1)).ravel())
    gold, score = np.array([1.0, 0, 1, 0, 0, 1]), np.array([0.5, 0.5, 0.9, 0.1, 0.7, 0.1])
    assert average_precision(gold, score) == pytest.approx(100 * average_precision_score(gold, score))
    ranked = [f"p{i}" for i in range(20)]
    relevance = [[float(i in (2, 7, 15)) for i in range(20)]]
    expected = ndcg_score(relevance, [[float(20 - i) for i in range(20)]], k=10)
    assert score_ranking(["p2", "p7", "p15"], ranked) == (pytest.approx(expected), 1 / 3, 1.0)


def test_bm25_orders_like_another_implementation(tmp_path: Path) -> None:
    tokens = [bigrams(text) for text in TEXTS]
    index = Bm25.build(tokens)
    index.save(tmp_path / "bm25")
    query = bigrams("강릉 시장 사진")
    scores = Bm25.load(tmp_path / "bm25").scores(query)
    assert np.array_equal(scores, index.scores(query))
    other = BM25Okapi(tokens, k1=1.2, b=0.75, epsilon=0).get_scores(query)
    assert np.corrcoef(scores, other)[0, 1] > 0.95
    assert not Bm25.build(tokens).scores(["없는말"]).any()


def test_content_words_have_no_particles() -> None:
    assert content_words("강릉에 있는 시장에서 빵을 먹었다.") == ["강릉", "있", "시장", "빵", "먹"]


def test_a_weight_must_clearly_help_on_other_questions() -> None:
    rng = np.random.default_rng(1)
    base = rng.random(200) * 0.5
    noise = np.stack([base + (0.02 * rng.standard_normal(200) if weight else 0.0) for weight in WEIGHTS])
    assert choose_weight(noise - 0.01 * (np.arange(len(WEIGHTS))[:, None] > 0)) == 0.0
    helps = noise.copy()
    helps[3] += 0.2
    assert choose_weight(helps) == WEIGHTS[3]
    names = {f"p{i}": str(i) for i in range(60)}
    golds = tuple([name] for name in names)
    part = EvaluationSet("q", "ranking", tuple(names), golds, tuple(names), passages=names)
    words = rng.random((60, 60)).astype(np.float32)
    right = words + np.eye(60, dtype=np.float32)
    bad, weight = combine(part, right, words[::-1].copy())
    assert weight == 0 and np.array_equal(bad, right)
    assert combine(part, words, np.eye(60, dtype=np.float32))[1] > 0


def test_hard_negatives_are_not_as_good_as_the_right_passage() -> None:
    texts = {
        "강릉 시장 역 앞": "강릉 시장은 역 앞에 있다.", "강릉 시장 역": "강릉 시장은 역 앞에 있다!",
        "강릉 빵집 위치": "강릉 빵집은 시장 옆에 있다.", "부산 등대": "부산 등대는 바다에 있다.",
    }  # fmt: skip
    items = [Item("file", pair) for pair in texts.items()] + [Item("documents, rest", ("가", "나"))]
    mined = mine_negatives(items)
    assert mined[0].texts == (*items[0].texts, "강릉 빵집은 시장 옆에 있다.")
    assert mined[-1] == items[-1]


def test_distractors_are_as_long_as_the_passages(inputs: EmbedInputs) -> None:
    assert inputs.documents
    part = EvaluationSet("q", "ranking", ("1",), (["p"],), ("?",), passages={"p": "가" * 70, "r": "나" * 50})
    found = with_distractors(part, inputs.documents, 30)
    lengths = [len(text) for name, text in found.passages.items() if name.startswith("document-")]
    assert len(lengths) == found.distractors == 30
    assert all(45 <= length <= 70 for length in lengths)
    assert found == with_distractors(part, inputs.documents, 30)


@pytest.fixture(scope="module")
def searched(config: EmbedConfig, inputs: EmbedInputs, home: Path) -> Path:
    """A model for search, scored on questions of a user's file."""
    questions = ["query\tpassage\tlabel"]
    questions += [
        f"{PLACES[i]} {THINGS[j]} 어때?\t{sentence(i, j, 2)} 이름은 {i}{j}이다.\t1" for i in range(8) for j in range(3)
    ]
    (home / "questions.tsv").write_text("\n".join(questions), "utf-8")
    changed = {
        "for": "search", "train": (), "evaluate": (str(home / "questions.tsv"),), "distractors": 50,
        "prompts": {"query": "질문: ", "passage": "글: "}, "dimensions": (16,),
    }  # fmt: skip
    run(config.model_copy(update=changed), inputs, home / "search")
    return home / "search"


def test_every_table_of_search_has_bm25(searched: Path, config: EmbedConfig) -> None:
    systems = {path.parents[1].name: json.loads(path.read_text("utf-8")) for path in searched.rglob("scores.json")}
    counted = {f"BM25-{name}" for name in ("words", "WordPiece", "bigrams", "morphemes")}
    assert counted | {"untrained", "static", "static-with-BM25"} < systems.keys()
    assert all(found["distractors"] == 50 and found["headline"] == "ndcg@10" for found in systems.values())
    for both in (found for name, found in systems.items() if name.endswith("with-BM25")):
        assert both["scores"]["ndcg@10"] >= systems["BM25-bigrams"]["scores"]["ndcg@10"] - 1


def test_static_vectors_weigh_tokens_by_their_number_in_the_passages(inputs: EmbedInputs) -> None:
    _, tokenizer = build_net(inputs.encoder, "mean")
    part = EvaluationSet("q", "ranking", ("1",), (["p0"],), ("?",), passages={f"p{i}": "강릉 시장" for i in range(9)})
    texts = Prepared([Item("file", ("강릉 부산", "부산"))], [part], {}, "").texts
    idf_V = StaticEncoder(tokenizer, texts, 64, 8).idf_V
    common, rare = (idf_V[tokenizer(word, add_special_tokens=False)["input_ids"]].min() for word in ("강릉", "부산"))
    assert common < rare


def test_the_script_of_the_records_writes_its_three_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """README.md there: questions joined with passages, hidden titles, the other articles."""
    readme = (RECORDS / "embed" / "README.md").read_text("utf-8")
    guids = [guid for guid, _ in read_record(RECORDS / "embed" / "questions.csv").rows]
    parts = [{"context": sentence(i, i, i) + f" {i}", "qas": [{"guid": guid}]} for i, guid in enumerate(guids)]
    names = [f"{PLACES[i % 8]} {i}" for i in range(600)]
    texts = [f"{name}에 관한 글이다. " * 20 + f"{i}쪽" for i, name in enumerate(names)]
    articles = [{"title": f"{name} (글)", "text": text} for name, text in zip(names, texts, strict=True)]
    (tmp_path / "mrc.json").write_text(json.dumps({"data": [{"paragraphs": parts}]}), "utf-8")
    (tmp_path / "articles.jsonl").write_text("\n".join(map(json.dumps, articles)), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["", "mrc.json", "articles.jsonl"])
    exec(readme.split("```python\n")[1].split("```")[0], {})
    answers, hidden = (read_evaluation_file(tmp_path / name) for name in ("answers.csv", "hidden.csv"))
    assert (len(answers.guids), len(hidden.guids)) == (200, 500)
    assert not any(title in passage for title, passage in zip(hidden.firsts, hidden.passages.values(), strict=True))
    assert len(read_file(tmp_path / "titles.jsonl")) == 100


def test_prompts_and_short_vectors_are_those_of_sentence_transformers(searched: Path) -> None:
    model = load_embedder(searched / "model", "cpu")
    for prompt in ("query", "passage"):
        theirs = SentenceTransformer(str(searched / "model"), device="cpu").encode(TEXTS[:4], prompt_name=prompt)
        assert np.abs(model.encode(TEXTS[:4], prompt=prompt) - theirs).max() < 1e-6
        assert np.abs(theirs - model.encode(TEXTS[:4])).max() > 1e-3
    short = SentenceTransformer(str(searched / "model"), device="cpu", truncate_dim=16)
    theirs = short.encode(TEXTS[:4], normalize_embeddings=True)
    assert np.abs(model.encode(TEXTS[:4], dimensions=16) - theirs).max() < 1e-6
    assert "questions, 16 wide" in (searched / "model" / "README.md").read_text("utf-8")


def test_a_model_finds_another_hard_negative() -> None:
    def encode(texts: list[str], prompt: str) -> np.ndarray:
        return np.array([[float(place in text) + 0.1 * len(text) / 30 for place in PLACES] for text in texts])

    items = [Item("file", (f"{PLACES[i]} 아침", sentence(i, i, 2))) for i in range(8)]
    by_words, by_both = mine_negatives(items), mine_negatives(items, encode)
    more = [item for item in by_both if len(item.texts) == 4]
    assert more and all(len(set(item.texts)) == 4 for item in more)
    assert {item.texts[:3] for item in more} <= {item.texts for item in by_words}


@pytest.fixture(scope="module")
def reranker(inputs: EmbedInputs, home: Path) -> str:
    """A model trained on the file of choices that the stage writes."""
    for part, places in (("train", range(7)), ("dev", range(7, 8))):
        (home / part).mkdir()
        texts = [(f"{PLACES[i]} {THINGS[j]}", sentence(i, j, 2), sentence(i + 1, j + 1, 2))
                 for i in places for j in range(6)]  # fmt: skip
        write_choices([Item("file", each) for each in texts], home / part)
    files = {part: str(home / part / CHOICES_NAME) for part in ("train", "dev")}
    custom = {"kind": "choice", "text": "question", "choices": ["right", "wrong"], "label": "label", **files}
    settings = {"lr": 3e-3, "epochs": 6, "batch_size": 8, "max_tokens": 64}
    config = FinetuneConfig.model_validate(
        {"tasks": ["rerank"], "custom": {"rerank": custom}, "seeds": [1], "overrides": {"rerank": settings}}
    )
    train_tasks(config, FinetuneInputs(home, {"model": inputs.encoder}), home / "finetune")
    return str(next((home / "finetune").rglob("malmoi.json")).parent)


def test_a_reranker_is_a_cross_encoder_and_orders_passages(
    reranker: str, searched: Path, config: EmbedConfig, inputs: EmbedInputs, tmp_path: Path, capfd: Any
) -> None:
    pairs = [("강릉 기차", text) for text in TEXTS[:6]]
    names = ["input_ids", "token_type_ids", "attention_mask"]  # the tiny tokenizer has no class of its own
    model = CrossEncoder(reranker, device="cpu", processor_kwargs={"model_input_names": names})
    theirs = model.predict(pairs, activation_fn=torch.nn.Sigmoid())
    assert Reranker(reranker, "cpu").score(pairs) == pytest.approx(theirs, abs=1e-6)
    questions = {"for": "search", "train": (), "evaluate": (str(searched.parent / "questions.tsv"),), "distractors": 9}
    run(config.model_copy(update={**questions, "reranker": reranker, "epochs": 1}), inputs, tmp_path / "run")
    systems = {path.parents[1].name: json.loads(path.read_text("utf-8")) for path in tmp_path.rglob("scores.json")}
    assert systems["BM25-with-reranker"]["scores"]["ndcg@10"] >= systems["BM25-bigrams"]["scores"]["ndcg@10"] - 1
    build_index([(f"t{i}", text) for i, text in enumerate(TEXTS)], tmp_path / "index")
    words = ["embed", "search", str(tmp_path / "index"), "강릉 기차", "--reranker", reranker, "--json", "--device=cpu"]
    hits = [json.loads(line) for line in run_command(capfd, *words).output.splitlines()]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    with pytest.raises(BadInput, match="not a fine-tuned malmoi model"):
        Reranker(str(searched / "model"), "cpu")


@pytest.mark.parametrize(("overrides", "message"), [
    (["embed.prompts={query: '질문: '}"], "are for search; set embed.for=search"),
    (["embed.dimensions=[64, 256]"], "256, but vectors of model have 128 numbers"),
    (["embed.for=search", "embed.negatives_by=nowhere"], "nowhere"),
])  # fmt: skip
def test_the_dry_run_refuses_what_does_not_fit(
    overrides: list[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result = run_command(capfd, "embed", "smoke", *overrides, f"--runs={tmp_path}", "--dry-run")
    assert result.code == 2 and message in " ".join((result.output + result.errors).split())


def test_graded_pairs_are_refused_for_search(config: EmbedConfig, inputs: EmbedInputs, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="lower retrieval"):
        run(config.model_copy(update={"for": "search", "evaluate": config.evaluate}), inputs, tmp_path)


def test_an_index_with_vectors_ranks_as_its_parts(
    searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(f"t{i}", text) for i, text in enumerate(TEXTS)]
    build_index(rows, tmp_path / "plain")
    with monkeypatch.context() as patch:
        patch.chdir(searched)
        build_index(rows, tmp_path / "dense", "model", 0.5, "cpu")  # found from any folder
    plain, dense = (Index(tmp_path / name, "cpu").search("강릉 시장", 24) for name in ("plain", "dense"))
    assert plain[0].score == pytest.approx(1.0) and plain[0].text in TEXTS
    cosines = Index(tmp_path / "dense", "cpu")._cosines("강릉 시장")
    words = {hit.id: hit.score for hit in plain}
    expected = {f"t{i}": words.get(f"t{i}", 0.0) + 0.5 * cosines[i] for i in range(24)}
    assert all(hit.score == pytest.approx(expected[hit.id], abs=1e-5) for hit in dense)


def test_commands_encode_index_and_search(
    searched: Path, inputs: EmbedInputs, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_text("비가\u2028 온다\x0c\r\n\n눈이 온다\n", "utf-8")  # three lines for every editor
    (tmp_path / "docs.jsonl").write_text(json.dumps({"id": "a", "text": "보리밥 맛집은 어디인가."}) + "\n", "utf-8")
    model, index = str(searched / "model"), str(tmp_path / "index")
    encoded = run_command(capfd, "embed", "encode", model, str(tmp_path / "texts.txt"), str(tmp_path / "v.npy"))
    assert encoded.code == 0 and np.load(tmp_path / "v.npy").shape == (3, 32)
    assert run_command(capfd, "embed", "index", index, str(tmp_path / "docs.jsonl"), str(inputs.documents)).code == 0
    found = run_command(capfd, "embed", "search", index, "보리밥", "--json", "--count", "2")
    assert json.loads(found.output.splitlines()[0])["text"] == "보리밥 맛집은 어디인가."
    assert run_command(capfd, "embed", "search", index, "ㅁㅁㅁ").output == "nothing found\n"
    for query in (normalize("NFD", "보리밥"), " 보리밥은 ", "보리밥이요?"):
        again = run_command(capfd, "embed", "search", index, query, "--json", "--count", "1")
        assert json.loads(again.output)["text"] == "보리밥 맛집은 어디인가."


def test_passages_are_named_by_unique_paths_and_read_from_any_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, text in (("2024", "보리밥을 먹었다."), ("2025", "보리밥을 또 먹었다.")):
        Path(folder).mkdir()
        Path(folder, "일기.jsonl").write_text(json.dumps({"본문": text}) + "\n", "utf-8")
    refused = run_command(capfd, "embed", "index", "index", "2024", "2025/일기.jsonl")
    assert refused.code == 2 and "no text under 'text'; name another key with --field" in refused.errors
    assert run_command(capfd, "embed", "index", "index", "2024", "2025/일기.jsonl", "--field=본문").code == 0
    found = run_command(capfd, "embed", "search", "index", "보리밥", "--json").output.splitlines()
    assert [json.loads(hit)["id"] for hit in found] == ["2024/일기.jsonl@0#1", "2025/일기.jsonl@0#1"]


def test_the_server_answers_as_the_commands(searched: Path, tmp_path: Path) -> None:
    build_index([("a", "보리밥 맛집"), ("b", "라면 맛집")], tmp_path / "index")
    search, embed = (endpoint_of(str(folder), "cpu") for folder in (tmp_path / "index", searched / "model"))
    assert (search.path, embed.path) == ("/search", "/embed")
    assert [hit["id"] for hit in search.answer(["라면"])[0]["hits"]] == ["b"]
    expected = load_embedder(searched / "model", "cpu").encode(["라면"])[0]
    assert np.allclose(embed.answer(["라면"])[0]["vector"], expected)
    with pytest.raises(BadInput, match="takes texts"):
        search.answer([["라면", "맛집"]])


@pytest.mark.parametrize(("words", "message"), [
    (["search", "nowhere", "가"], "nowhere: no index here"),
    (["index", "texts", "."], "exists and is no index"),
    (["index", "new", "texts/a.txt", "--weight", "0.5"], "add --model FOLDER"),
    (["encode", "nowhere", "texts/a.txt", "v.npy"], "no embedding model"),
    (["encode", "nowhere", "texts/a.txt", "v.txt"], "name it v.npy"),
])  # fmt: skip
def test_bad_commands_are_explained(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("가나다라 마바사\n", "utf-8")
    result = run_command(capfd, "embed", *words)
    assert result.code == 2 and message in result.errors


@pytest.mark.parametrize(
    ("label", "is_right"), [("TRUE", True), ("false", False), ("1", True), ("0.0", False), ("2", True), ("０", False)]
)
def test_labels_of_passages(tmp_path: Path, label: str, is_right: bool) -> None:
    path = tmp_path / "questions.csv"
    path.write_text(f"query,passage,label\n가?,나,1\n가?,다,{label}\n", "utf-8")
    assert len(read_file(path)) == len(read_evaluation_file(path).golds[0]) == 1 + is_right


@pytest.mark.parametrize("label", ["no", "아니오", ""])
def test_other_labels_of_passages_are_refused(tmp_path: Path, label: str) -> None:
    path = tmp_path / "questions.csv"
    path.write_text(f"query,passage,label\n가?,나,1\n가?,다,{label}\n", "utf-8")
    for read in (read_file, read_evaluation_file):
        with pytest.raises(BadInput, match="line 3: column 'label' should hold a number"):
            read(path)


def test_files_without_anything_to_learn(tmp_path: Path) -> None:
    nli = tmp_path / "nli.tsv"
    nli.write_text("sentence1\tsentence2\tgold_label\n가\t나\t함의\n", "utf-8")
    with pytest.raises(BadInput, match="no 'gold_label' is entailment"):
        read_file(nli)
    squad = tmp_path / "squad.json"
    answers = [[{"text": "가나", "answer_start": 0}], []]
    asked = [{"id": str(n), "question": "뭐?", "answers": found} for n, found in enumerate(answers)]
    document = {"data": [{"title": "t", "paragraphs": [{"context": "가나 다라", "qas": asked}]}]}
    squad.write_text(json.dumps(document, ensure_ascii=False), "utf-8")
    assert len(read_file(squad)) == 1


def test_a_ranking_has_the_scores_of_its_own_passages() -> None:
    task = similarity_task({"name": "questions", "kind": "ranking"})
    example = Example("q", ["a"], {})
    right = list(score_ranking(["a"], ["b", "a"]))
    assert task.inspection.validate(example, Prediction(["b", "a"], right)) is None
    for scores in (None, [1.0, 1.0, 1.0], "x", [right]):
        problem = task.inspection.validate(example, Prediction(["b", "a"], scores))  # type: ignore[arg-type]
        assert problem is not None and "of this ranking" in problem

"""Recipes: every shipped one loads; mistakes are named with their key and a way out."""

from __future__ import annotations

import typing
from pathlib import Path

import pytest

from launch.errors import LaunchError
from launch.recipe import PATH_KEYS, Recipe, _fields, load_recipe, resolve_key, shipped_recipes


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_loads(name: str) -> None:
    assert load_recipe(name).name == name


@pytest.mark.parametrize(
    ("name", "millions"),
    [  # paper Table 31
        ("klue-bert-base", 111.24),
        ("klue-roberta-small", 68.12),
        ("klue-roberta-base", 110.65),
        ("klue-roberta-large", 336.69),
        # ours: as ModernBERT-base and -large except the vocabulary (arXiv 2412.13663, Table 4)
        ("malmoi-small", 16.93),
        ("malmoi-base", 135.53),
        ("malmoi-large", 377.05),
    ],
)
def test_recipes_build_models_of_the_stated_sizes(name: str, millions: float) -> None:
    import torch

    from pretrain.model.networks import build_network
    from tokenizer.config import SPECIAL_TOKENS

    recipe = load_recipe(name)
    special_ids = {
        token.strip("[]").lower(): n for n, token in enumerate(SPECIAL_TOKENS[recipe.tokenizer.special_tokens])
    }
    with torch.device("meta"):
        network = build_network(recipe.pretrain, recipe.tokenizer.vocab_size, special_ids)
    assert round(sum(weight.numel() for weight in network.parameters()) / 1e6, 2) == millions


def test_defaults_are_the_papers_values() -> None:
    recipe = load_recipe("klue-roberta-base")
    assert (recipe.tokenizer.vocab_size, recipe.pretrain.steps, recipe.pretrain.global_batch) == (
        32_000,
        1_000_000,
        2048,
    )


def test_override_replaces_one_value_and_keeps_the_rest() -> None:
    plain, changed = load_recipe("smoke"), load_recipe("smoke", ["pretrain.steps=7"])
    assert changed.pretrain.steps == 7
    assert changed.pretrain.optimizer == plain.pretrain.optimizer


def test_comma_separated_override_becomes_a_list() -> None:
    recipe = load_recipe("smoke", ["corpus.inputs=a.txt,b.txt", "finetune.tasks=ynat,klue-ner", "finetune.seeds=3"])
    assert list(recipe.corpus.inputs) == ["a.txt", "b.txt"]
    assert recipe.finetune.tasks == ("ynat", "klue-ner")
    assert recipe.finetune.seeds == (3,)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("pretrain.step=7", "pretrain.step: unknown key; did you mean pretrain.steps?"),
        ("pretrain.lr=1.0e-4", "pretrain.lr: unknown key; did you mean pretrain.optimizer.lr?"),
        ("pretrain.masking.share=0.2", "pretrain.masking: unknown key; did you mean pretrain.rows.masking?"),
        ("pretrain.engine=deepspeed", "pretrain.engine: must be a section of keys and values"),
        ("pretrane.steps=7", "pretrane: unknown key; did you mean pretrain?"),
        ("pretrain.steps=many", "pretrain.steps: "),
        ("pretrain.rows.masking.share=15", "pretrain.rows.masking.share: "),
        ("pretrain.steps", "an override has the form section.key=value"),
        ("name=a/b", "name: "),
        ("pretrain.steps.more=1", "is a value, not a section"),
    ],
)
def test_wrong_override_is_explained(override: str, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        load_recipe("smoke", [override])
    assert message in str(caught.value)


def test_all_problems_of_a_recipe_are_listed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("pretrain: {learning_rate: 1.0e-4, steps: 0}\n", "utf-8")
    with pytest.raises(LaunchError) as caught:
        load_recipe(str(path))
    assert "2 problems" in str(caught.value)
    assert "pretrain.learning_rate" in str(caught.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("pretrain.engine.micro_batch=x", "pretrain.engine.micro_batch: must be 'auto' (got 'x')"),
        ("pretrain.rows.sources={law: -1}", "pretrain.rows.sources.law: must be greater than or equal to 0 (got -1)"),
        ("pretrain.rows.sources=2", "pretrain.rows.sources: must be less than or equal to 1 (got 2)"),
    ],
)
def test_settings_with_values_of_several_kinds_are_named_as_in_the_recipe(override: str, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        load_recipe("smoke", [override])
    assert f"  {message}" in str(caught.value)


@pytest.mark.parametrize("count", [1, 20, 21, 30])
def test_the_first_twenty_problems_are_listed_and_the_others_counted(tmp_path: Path, count: int) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("pretrain: {" + ", ".join(f"key{n:02}: 1" for n in range(count)) + "}\n", "utf-8")
    with pytest.raises(LaunchError) as caught:
        load_recipe(str(path))
    head, *lines = str(caught.value).splitlines()
    assert head == f"mine.yaml: {count} problem{'s' * (count > 1)} in this recipe"
    assert [f"key{n:02}" in lines[n] for n in range(min(count, 20))] == [True] * min(count, 20)
    assert lines[20:] == ([f"  … and {count - 20} more"] if count > 20 else [])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.txt,b.txt", ("a.txt", "b.txt")), (" a , b", ("a", "b")), ("'a,b'", ("a,b",)), ('"a"', ("a",)),
        ("[a, b]", ("a", "b")), ("3", ("3",)), ("", ()), ("a: b", ("a: b",)), ("[]", ()),
    ],
)  # fmt: skip
def test_values_of_a_list_are_separated_by_commas_unless_quoted(text: str, value: tuple[str, ...]) -> None:
    assert tuple(load_recipe("smoke", [f"corpus.inputs={text}"]).corpus.inputs) == value


def test_unknown_recipe_gets_the_nearest_name() -> None:
    with pytest.raises(LaunchError, match="did you mean smoke"):
        load_recipe("smok")


@pytest.mark.parametrize("text", ["a: [", "- 1\n- 2\n", "\xff\xfe"])
def test_files_that_are_no_recipes_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(LaunchError, match=r"bad\.yaml"):
        load_recipe(str(path))


def test_special_tokens_must_fit_the_architecture() -> None:
    with pytest.raises(LaunchError, match="they must agree"):
        load_recipe("klue-roberta-small", ["tokenizer.special_tokens=bert"])


def test_paths_in_a_file_are_relative_to_it_and_overrides_to_the_current_folder(tmp_path: Path) -> None:
    home = tmp_path / "내 [실험]"
    (home / "klue").mkdir(parents=True)
    file = home / "첫 번째.yaml"
    file.write_text(
        "corpus:\n"
        "  inputs: [news.txt, 'more/*.jsonl', /data/a.txt, 'hub:team/set', 'malmoi:sample', 'https://example.org/a.txt']\n"
        "  sources: {books: {inputs: [books]}}\n"
        "  benchmarks: team/klue\n"
        "  pii: {key_file: secret}\n"
        "finetune: {data: klue, models: [model, klue/bert-base, 'fresh:klue']}\n",
        "utf-8",
    )
    recipe = load_recipe(str(file))
    assert recipe.name == "첫-번째"
    kept = ["/data/a.txt", "hub:team/set", "malmoi:sample", "https://example.org/a.txt"]
    escaped = str(tmp_path / "내 [[]실험]")  # brackets of the folder are none of the pattern
    assert recipe.corpus.inputs == [f"{home}/news.txt", f"{escaped}/more/*.jsonl", *kept]
    assert recipe.corpus.sources["books"].inputs == [f"{home}/books"]
    assert recipe.corpus.pii.key_file == home / "secret"
    assert recipe.corpus.benchmarks == ["team/klue"]  # there is no such folder, so it may be a repository of the Hub
    assert recipe.finetune.data == f"{home}/klue"
    assert recipe.finetune.models == ("model", "klue/bert-base", f"fresh:{home}/klue")
    overridden = load_recipe(str(file), ["corpus.inputs=news.txt", "finetune.data=klue"])
    assert (overridden.corpus.inputs, overridden.finetune.data) == (["news.txt"], "klue")


def test_every_key_that_holds_a_path_is_known() -> None:
    assert all(resolve_key(key.replace("*", "books"))[1] is not None for key in PATH_KEYS)
    paths = {key for key, field in _fields(Recipe) if Path in typing.get_args(field.annotation)}
    assert paths <= PATH_KEYS.keys()


@pytest.mark.parametrize("name", ["../elsewhere", "a/b", "", ".hidden", "a b"])
def test_run_names_that_are_unsafe_as_folders_are_refused(name: str) -> None:
    with pytest.raises(LaunchError, match="name"):
        load_recipe("smoke", [f"name={name}"])

"""The shape of the house: layers, top level, sizes, configs that parse, options that are read."""

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("schemas", "infra", "pipeline", "rl", "flows")
SOURCES = sorted(p for layer in LAYERS for p in (ROOT / layer).rglob("*.py"))


def imported_roots(path: Path) -> set[str]:
    roots: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            roots.add((node.module or "").split(".")[0])
    return roots


@pytest.mark.parametrize("layer", LAYERS)
def test_a_package_imports_only_what_stands_to_its_left(layer: str) -> None:
    right = set(LAYERS[LAYERS.index(layer) + 1 :])
    for path in (ROOT / layer).rglob("*.py"):
        assert not imported_roots(path) & right, path


@pytest.mark.parametrize(("layer", "banned"), [("pipeline", {"prefect", "torch"}), ("rl", {"prefect"})])
def test_a_package_keeps_its_dependencies_out(layer: str, banned: set[str]) -> None:
    for path in (ROOT / layer).rglob("*.py"):
        assert not imported_roots(path) & banned, path


def test_schemas_do_no_io() -> None:
    for path in (ROOT / "schemas").rglob("*.py"):
        assert not imported_roots(path) & {"os", "pathlib", "httpx", "fsspec", "asyncio", "subprocess"}, path


def test_no_flow_branches() -> None:
    for path in (ROOT / "flows").glob("*.py"):
        tree = ast.parse(path.read_text())
        flows = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and any("flow" in ast.unparse(decorator) for decorator in node.decorator_list)
        ]
        for flow in flows:
            assert not [n for n in ast.walk(flow) if isinstance(n, ast.If | ast.While | ast.Try)], f"{path}:{flow.name}"


def test_files_and_functions_stay_small() -> None:
    for path in (*SOURCES, *(ROOT / "bench").glob("*.py")):
        text = path.read_text()
        assert text.count("\n") <= 400, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 100, f"{path}:{node.name}"


def test_every_package_says_what_it_is() -> None:
    for init in sorted(p for layer in LAYERS for p in (ROOT / layer).rglob("__init__.py")):
        doc = ast.get_docstring(ast.parse(init.read_text()))
        assert doc, init
        assert doc.count("\n") < 10, init


def test_every_option_is_read() -> None:
    """A field of the config tree that no code outside its own class mentions is dead."""
    from schemas import config, episode, evaluation, rounds, steering, training
    from schemas.base import Record

    for module in (config, episode, evaluation, rounds, steering, training):
        own = Path(module.__file__ or "")
        elsewhere = "\n".join(path.read_text() for path in SOURCES if path != own)
        for model in vars(module).values():
            if isinstance(model, type) and issubclass(model, Record) and model.__module__ == module.__name__:
                for field in model.model_fields:
                    read = f".{field}" in elsewhere or f"self.{field}" in own.read_text()
                    assert read, f"{model.__name__}.{field}"


def test_the_readme_s_file_tree_names_every_module() -> None:
    listed: set[str] = set()
    folder = ""
    for line in (ROOT / "README.md").read_text().split("## File tree")[1].splitlines():
        if re.fullmatch(r"[a-z_0-9/]+/", line):
            folder = line
        elif found := re.match(r"  (\S+\.py) ", line):
            listed.add(folder + found[1])
    modules = {str(path.relative_to(ROOT)) for path in (*SOURCES, *(ROOT / "bench").glob("*.py"))}
    assert listed == {module for module in modules if not module.endswith(("__init__.py", "__main__.py"))}


def test_every_deployment_parses() -> None:
    import importlib
    import inspect

    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    assert {"hard-search", "math", "coupled", "rounds", "plan"} <= {d["name"] for d in deployments}
    for deployment in deployments:
        module, name = deployment["entrypoint"].rsplit(".", 1)
        flow = getattr(importlib.import_module(module), name)
        inspect.signature(flow.fn).bind(**deployment["parameters"])
        flow.validate_parameters(deployment["parameters"])
        for schedule in deployment.get("schedules", ()):
            assert schedule["slug"], "a schedule without a slug is duplicated by the next deploy"


def test_top_level_is_the_declared_one() -> None:
    import subprocess

    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    top = {line.split("/")[0] for line in tracked}
    assert top <= {
        *LAYERS, "bench", "data", "tests", ".ci", ".gitignore", ".gitattributes", "Makefile", "prefect.yaml", "prefect.toml",
        "pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "BENCHMARKS.md", "LICENSE",
        "requirements-cpu.lock", "requirements-gpu.lock",
    }  # fmt: skip

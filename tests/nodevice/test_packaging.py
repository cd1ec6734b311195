"""The image and the recipe for conda-forge say what setup.py says."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from clfuse._core import loading

TOP = Path(__file__).parent.parent.parent
DOCKERFILE = TOP / "ci" / "Dockerfile"
RECIPE = TOP / "ci" / "conda" / "recipe.yaml"
PROBLEM = 'FROM python:latest\nRUN pip install clfuse\nCMD python -m clfuse devices\n'


def packaged() -> dict[str, Any]:
    """The arguments of `setup` that are written out, and `EXTRAS`."""
    tree = ast.parse((TOP / "setup.py").read_text(encoding="utf-8"))
    found: dict[str, Any] = {}
    for each in ast.walk(tree):
        if isinstance(each, ast.Call) and getattr(each.func, "id", "") == "setup":
            for keyword in each.keywords:
                if isinstance(keyword.value, ast.Constant | ast.List) and keyword.arg:
                    try:
                        found[keyword.arg] = ast.literal_eval(keyword.value)
                    except ValueError:
                        continue  # it is computed
        elif isinstance(each, ast.Assign) and getattr(each.targets[0], "id", "") == "EXTRAS":
            assert isinstance(each.value, ast.Dict)
            for key, value in zip(each.value.keys, each.value.values, strict=True):
                if isinstance(value, ast.List) and isinstance(key, ast.Constant):
                    found[f"[{key.value}]"] = ast.literal_eval(value)
    return found


def name_and_bound(requirement: str) -> tuple[str, str]:
    """A requirement's name without an extra, and its bound."""
    name, bound = re.fullmatch(r"([\w-]+)(?:\[\w+\])? *(.*)", requirement).groups()  # type: ignore[union-attr]
    return name, bound


def requirements(texts: list[str]) -> set[tuple[str, str]]:
    return {name_and_bound(text) for text in texts}


@pytest.fixture(scope="module")
def rendered() -> dict[str, Any]:
    """The recipe as rattler-build renders it for one Python."""
    rattler = pytest.importorskip("rattler_build")
    variants = rattler.VariantConfig({
        "python": ["3.12.* *_cpython"], "c_compiler": ["gcc"], "c_stdlib": ["sysroot"],
        "c_stdlib_version": ["2.17"],
    })  # fmt: skip
    platform = rattler.PlatformConfig(target_platform="linux-64")
    recipe = rattler.Stage0Recipe.from_file(RECIPE)
    (variant,) = recipe.render(variants, rattler.RenderConfig(platform=platform))
    found: dict[str, Any] = variant.recipe.to_dict()
    return found


def test_the_recipe_has_the_packages_name_and_version(rendered):
    setup = packaged()
    assert rendered["package"] == {"name": setup["name"], "version": setup["version"]}
    assert rendered["about"]["license"] == setup["license"]
    assert rendered["about"]["license_file"] == setup["license_files"]
    assert rendered["about"]["summary"] == setup["description"]


def test_the_recipe_requires_what_the_package_requires(rendered):
    required = requirements(rendered["requirements"]["run"]) - {("python", "")}
    assert required == requirements(packaged()["install_requires"])
    # Dask's arrays are a part of conda-forge's `dask-core`, where NumPy is there.
    constrained = requirements(rendered["requirements"]["run_constraints"])
    bounds = {(name.replace("dask-core", "dask"), bound) for name, bound in constrained}
    assert bounds == requirements(packaged()["[dask]"])


def test_the_recipe_builds_with_what_setup_builds_with(rendered):
    project = (TOP / "pyproject.toml").read_text(encoding="utf-8")
    wanted = ast.literal_eval(re.search(r"(?m)^requires = (\[.*?\])", project)[1])  # type: ignore[index]
    host = requirements(rendered["requirements"]["host"])
    assert host - {("python", ""), ("pip", "")} == requirements(wanted)
    assert any("gcc" in each for each in rendered["requirements"]["build"])


def linted(path: Path) -> tuple[int, str]:
    hadolint = Path(sysconfig.get_path("scripts")) / "hadolint"
    if not hadolint.is_file():
        pytest.skip("no hadolint")
    done = subprocess.run([hadolint, "--no-color", path], capture_output=True, text=True)
    return done.returncode, done.stdout


def test_the_compiled_part_is_built_where_a_compiler_is() -> None:
    # An extension that does not compile is left out of the package without a word.
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]
    headers = Path(sysconfig.get_path("include"), "Python.h")
    if shutil.which(compiler) is None or not headers.is_file():
        pytest.skip("there is no C compiler, or no header of Python's")
    loading.load()
    if loading.state().startswith("off"):
        pytest.skip(loading.state())
    assert loading.state() == "in use", "pip install -v -e . --no-deps shows why"


def test_hadolint_has_nothing_to_say_of_the_dockerfile():
    assert linted(DOCKERFILE) == (0, "")


def test_hadolint_finds_what_is_wrong_with_a_dockerfile(tmp_path):
    path = tmp_path / "Dockerfile"
    path.write_text(PROBLEM, encoding="utf-8")
    status, text = linted(path)
    assert status == 1
    assert {"DL3007", "DL3013"} <= set(re.findall(r"DL\d+", text))


def test_the_builder_gets_what_setup_reads():
    """What setup.py and pyproject.toml read is let through to the builder."""
    text = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    let_through = {line[1:] for line in lines if line.startswith("!")}
    assert let_through == {*"clfuse kernels LICENSE README.md pyproject.toml setup.py".split()}
    assert all((TOP / name).exists() for name in let_through)


def test_the_image_has_the_wheel_and_a_runtime_and_a_user():
    text = DOCKERFILE.read_text(encoding="utf-8")
    assert 'pip install --no-cache-dir "$(echo /wheels/clfuse-*.whl)[intel]"' in text
    assert re.findall(r"(?m)^USER (.*)$", text) == ["1000"]

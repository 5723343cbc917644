"""The public interface: what is listed, what it says of itself, and how quickly it is there."""

import inspect
import subprocess
import sys
from collections.abc import Callable

import pytest

import censafe
from censafe.api import comparisons, estimates, options, plans

FUNCTIONS = [name for name in censafe.__all__ if inspect.isfunction(getattr(censafe, name))]
CLASSES = [name for name in censafe.__all__ if inspect.isclass(getattr(censafe, name))]
KEYWORDS = [
    options.ReadKeywords, options.RunKeywords, options.EvaluateKeywords, plans.PlanKeywords, estimates.EstimateKeywords,
    comparisons.CompareKeywords,
]  # fmt: skip


def test_names_are_sorted_and_all_are_there() -> None:
    assert sorted(censafe.__all__) == censafe.__all__
    assert len(FUNCTIONS) + len(CLASSES) == len(censafe.__all__)
    assert set(censafe.__all__) <= set(dir(censafe))
    with pytest.raises(AttributeError, match="anything_else"):
        _ = censafe.anything_else


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_raises_and_follows(name: str) -> None:
    function: Callable[..., object] = getattr(censafe, name)
    text = inspect.getdoc(function) or ""
    assert ">>> " in text
    assert "Source:" in text
    for parameter in inspect.signature(function).parameters:
        assert f"    {parameter}: " in text
    assert "Args:" in text or not inspect.signature(function).parameters
    assert "Raises:" in text or name in ("certificate_sentences", "configurations", "explorer_page")


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_says_what_it_is_made_of(name: str) -> None:
    text = inspect.getdoc(getattr(censafe, name)) or ""
    assert text.splitlines()[0].endswith((".", ":"))
    assert name == "ParentSolver" or "Args:" in text


@pytest.mark.parametrize("keywords", KEYWORDS)
def test_every_keyword_is_explained(keywords: type) -> None:
    parents = [
        one
        for one in KEYWORDS
        if one is not keywords and one.__annotations__.keys() <= keywords.__annotations__.keys()
    ]
    inherited = {name for one in parents for name in one.__annotations__}
    text = inspect.getdoc(keywords) or ""
    for name in keywords.__annotations__.keys() - inherited:
        assert f"    {name}: " in text


def test_importing_the_package_imports_nothing_large() -> None:
    """A time would depend on the machine; what takes the time is the number of modules."""
    program = (
        "import sys; before = len(sys.modules); import censafe\n"
        "assert not {'numpy', 'pyarrow', 'duckdb', 'numba', 'ibis'} & set(sys.modules)\n"
        "print(len(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60


def test_a_configuration_is_read_without_the_compiler_solvers_or_readers() -> None:
    program = (
        "import sys, censafe\n"
        "names = {'phsafe': 'sdhc-us', 'safetab-p': 'ddhca', 'safetab-h': 'ddhcb', 'topdown': 'dhc-us'}\n"
        "for product, name in names.items(): censafe.configuration(product, name)\n"
        "print(*({'numba', 'scipy', 'duckdb', 'ibis', 'matplotlib', 'xlsxwriter'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not done.stdout.split()

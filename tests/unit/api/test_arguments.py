"""Arguments of every public function: a misspelled keyword is refused with the nearest name, and text stands for paths and numbers."""

import ast
import inspect
import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import censafe
from censafe.api.arguments import _kinds, public
from censafe.errors import CensafeError, UsageError

FUNCTIONS = [name for name in censafe.__all__ if inspect.isfunction(getattr(censafe, name))]
OPEN = (
    "configuration",
)  # its further keywords are keys of the configuration, which names the nearest itself
SET = [
    name for name in FUNCTIONS if name not in OPEN and inspect.signature(getattr(censafe, name)).parameters
]


def kinds_of(name: str) -> dict[str, str]:
    """Annotations of all arguments and keywords of a public function."""
    return {key: ast.unparse(kind) for key, kind in _kinds(inspect.unwrap(getattr(censafe, name))).items()}


@pytest.mark.parametrize("name", SET)
def test_a_misspelled_keyword_is_refused_with_the_nearest_name(name: str) -> None:
    longest = max(kinds_of(name), key=len)
    wrong = f"{longest[:2]}q{longest[2:]}"
    with pytest.raises(TypeError, match=rf"{name}\(\) has no keyword '{wrong}'.*Did you mean '") as caught:
        getattr(censafe, name)(**{wrong: None})
    assert all(key in str(caught.value) for key in kinds_of(name))


@pytest.mark.parametrize(
    ("function", "wrong", "right"),
    [("plan", "target", "targets"), ("evaluate", "trial", "trials"), ("evaluate", "run", "runs"), ("sweep", "epsilon", "epsilons"),
     ("tables", "interval", "intervals"), ("release", "testkey", "test_key"), ("attack_power", "progres", "progress")],
)  # fmt: skip
def test_words_that_were_ignored_before(function: str, wrong: str, right: str) -> None:
    chosen = censafe.configuration("phsafe", "sdhc-us")
    with pytest.raises(TypeError, match=f"no keyword '{wrong}'. Did you mean '{right}'"):
        getattr(censafe, function)(chosen, **{wrong: "1"})


@pytest.mark.parametrize("name", SET)
def test_every_path_takes_text(name: str) -> None:
    """What the function gets for text, and for None, wherever its signature allows a path."""
    seen: dict[str, Any] = {}
    kinds = kinds_of(name)
    keywords = [key for key, kind in kinds.items() if "Path" in kind]

    def recorded(**values: Any) -> None:
        seen.update(values)

    recorded.__name__ = name
    parameters = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kinds[key])
        for key in kinds
    ]
    recorded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    for key in keywords:
        seen.clear()
        kind = kinds[key]
        value: Any = {"one": "a/b"} if "Mapping[str" in kind else {"1/2": ["a/b"]} if "Mapping[" in kind else [("x", "a/b")] if "tuple[str" in kind else "a/b"  # fmt: skip
        public(recorded)(**{key: value})
        assert "Path('a/b')" in repr(seen[key]).replace("PosixPath", "Path"), (key, seen)
        public(recorded)(**{key: None})


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: censafe.noise(censafe.NoiseLaw.gaussian("0.5"), (3, 4), test_key=1).values.shape, (3, 4)),
        (lambda: censafe.noise(censafe.NoiseLaw.laplace("3/2"), 5).values.shape, (5,)),
        (lambda: censafe.NoiseLaw.gaussian("0.5").parameter, Fraction(1, 2)),
        (lambda: censafe.NoiseLaw.gaussian(100).parameter, Fraction(100)),
        (lambda: censafe.rho_of("17.43", "1e-10") == censafe.rho_of(17.43, "1e-10"), True),
        (lambda: censafe.rho_of(Fraction(1743, 100), Fraction(1, 10**10)) > 2, True),
        (lambda: censafe.delta_of("2.63", "17.44") < 1e-10, True),
        (lambda: censafe.plan(censafe.configuration("phsafe", "sdhc-us"), targets="PH6=150", confidence="0.9", tables=None).total > 1, True),
        (lambda: str(censafe.open_release), str(censafe.open_release)),
        (lambda: censafe.Evaluation("nowhere", "").frames().keys(), set()),
        (lambda: censafe.Release("nowhere").certificate, None),  # type: ignore[arg-type]
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_text_and_shapes_work(call: Callable[[], object], expected: object) -> None:
    assert call() == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: censafe.noise(censafe.NoiseLaw.gaussian(4), (3, 0)), "n must be 1 or more"),
        (lambda: censafe.NoiseLaw.gaussian(0.5), "must be a Fraction"),  # type: ignore[arg-type]
        (lambda: censafe.NoiseLaw.gaussian("half"), "'half' is not a number"),
        (lambda: censafe.epsilon_of("1e-400", "1e-10"), "rho: the number is out of range"),
        (lambda: censafe.epsilon_of(1.5, "1e-10"), "budgets are exact"),  # type: ignore[arg-type]
        (lambda: censafe.synthesize("x", persons="10"), "persons must be a whole number"),  # type: ignore[arg-type]
        (lambda: censafe.synthesize("x", persons=10, layout="pl49"), "is none of phsafe"),  # type: ignore[arg-type]
        (lambda: censafe.synthesize(5, persons=10), "out must be a path or text, not int"),  # type: ignore[arg-type]
        (lambda: censafe.tables("x", "P1", "state", wide="no"), "wide must be True or False"),  # type: ignore[arg-type]
        (lambda: censafe.tables("x", "P1", "state", state=44), "state must be text such as '44', not int"),  # type: ignore[arg-type]
        (lambda: censafe.plan(censafe.configuration("phsafe", "sdhc-us"), maximize="acuracy"), "Did you mean 'accuracy'"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_is_neither_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises((CensafeError, TypeError), match=message):
        call()


def test_no_list_of_areas_is_as_none_given(tmp_path: Path) -> None:
    chosen = censafe.configuration("topdown", "e2e-1940", epsilon="4")
    with pytest.raises(CensafeError, match="no input file"):
        censafe.evaluate(chosen, tmp_path, tmp_path / "out", areas=None, names=None, runs=None, seed=None)  # type: ignore[arg-type]


def test_one_value_stands_for_a_sequence() -> None:
    @public
    def taken(states: Any = None, *, pair: Any = None) -> Any:
        return states, pair

    taken.__wrapped__.__annotations__.update(states="Sequence[str] | None", pair="Sequence[tuple[str, Path]]")  # type: ignore[attr-defined]
    assert taken("44", pair=[("a", "b")]) == (("44",), (("a", Path("b")),))
    with pytest.raises(UsageError, match="out of range"):
        censafe.epsilon_of("1e151", "1e-10")

"""Arguments of the public functions: unknown keywords are refused with the nearest name, and values become what the signature says."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cache, wraps
from inspect import Parameter, signature
from operator import index
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from censafe.errors import ConfigError, UsageError
from censafe.model.entries import nearest
from censafe.model.parsing import parse_number, require_magnitude

_P = ParamSpec("_P")
_T = TypeVar("_T")
_SEQUENCES: Final = ("Sequence", "tuple", "list")
_NUMBERS: Final = ("float", "Fraction", "int")
_FORMER: Final = {"maximise": "maximize", "minimise": "minimize"}
"""Former spellings of keywords, which are accepted."""


def public(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Check and convert the arguments of a function of the public interface by its annotations.

    Text becomes a path where a path is allowed, one value a sequence of one, a number as text the number, and None the default. A keyword
    that the function does not have is a TypeError with the nearest name.

    Example:
        >>> @public
        ... def area(width: Fraction, heights: Sequence[Fraction]) -> Fraction:
        ...     return width * sum(heights)
        >>> area("1/2", "4")
        Fraction(2, 1)
        >>> area("1/2", hieghts="4")
        Traceback (most recent call last):
        TypeError: area() has no keyword 'hieghts'. Did you mean 'heights'? Allowed: width, heights
    """

    @wraps(function)
    def checked(*values: _P.args, **keywords: _P.kwargs) -> _T:
        kinds = _kinds(function)
        for former, name in _FORMER.items():
            if former in keywords and name in kinds and name not in keywords:
                keywords[name] = keywords.pop(former)
        unknown = [name for name in keywords if name not in kinds]
        if unknown:
            raise TypeError(
                f"{function.__name__}() has no keyword {unknown[0]!r}.{nearest(unknown[0], kinds)} Allowed: {', '.join(kinds)}"
            )
        named = {name: value for name, value in keywords.items() if value is not None}
        bound = signature(function).bind(*values, **named)
        for place, value in bound.arguments.items():
            if isinstance(value, dict) and place not in kinds:  # the keywords of a TypedDict
                bound.arguments[place] = {
                    name: _converted(name, entry, kinds[name]) for name, entry in value.items()
                }
            elif value is not None:
                bound.arguments[place] = _converted(place, value, kinds[place])
        return function(*bound.args, **bound.kwargs)

    return checked


@cache
def _kinds(function: Callable[..., Any]) -> Mapping[str, ast.expr]:
    """Annotations by name, those of the keywords of a TypedDict among them."""
    kinds: dict[str, ast.expr] = {}
    for name, parameter in signature(function).parameters.items():
        text = str(parameter.annotation)
        if parameter.kind is not Parameter.VAR_KEYWORD:
            kinds[name] = _parsed(text)
            continue
        keywords = function.__globals__[text.removeprefix("Unpack[").removesuffix("]")]
        kinds |= {key: _parsed(kind.__forward_arg__) for key, kind in keywords.__annotations__.items()}
    return kinds


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _alternatives(kind: ast.expr) -> list[ast.expr]:
    if isinstance(kind, ast.BinOp):
        return [*_alternatives(kind.left), *_alternatives(kind.right)]
    return [kind]


def _converted(name: str, value: Any, kind: ast.expr) -> Any:
    """A value as one of the alternatives of its annotation; unchanged where it is of a type of our own.

    Raises:
        TypeError: it is of none of these types.
        UsageError: a word or number that is not allowed.
    """
    kinds = _alternatives(kind)
    if value is None and any(isinstance(part, ast.Constant) and part.value is None for part in kinds):
        return None
    names = {part.id for part in kinds if isinstance(part, ast.Name)}
    generics = {
        part.value.id: part.slice
        for part in kinds
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name)
    }
    for sequence in _SEQUENCES:
        if sequence in generics:
            return _sequence(name, value, generics[sequence])
    if "Path" in names and isinstance(value, str | os.PathLike):
        return Path(value)
    if "str" in names and isinstance(value, str) and names.isdisjoint(_NUMBERS):
        return value
    if "Literal" in generics:
        return _word(name, value, ast.literal_eval(generics["Literal"]))
    if "Mapping" in generics and isinstance(value, Mapping):
        return _mapping(name, value, generics["Mapping"])
    for number in _NUMBERS:
        if number in names:
            return number_of(name, value, number)
    return _own(name, value, names)


def _own(name: str, value: Any, names: set[str]) -> Any:
    """A value of a type without a form as text."""
    if "bool" in names and isinstance(value, str):
        raise TypeError(f"{name} must be True or False, not text")
    if names & {"str", "Path"} and names <= {"str", "Path", "None"}:
        allowed = "a path or text" if "Path" in names else "text such as '44'"
        raise TypeError(f"{name} must be {allowed}, not {type(value).__name__}")
    return value


def _word(name: str, value: Any, words: Any) -> Any:
    allowed = words if isinstance(words, tuple) else (words,)
    if value not in allowed:
        hint = nearest(value, allowed) if isinstance(value, str) else ""
        raise UsageError(f"`{name}`: {value!r} is not allowed.{hint} Allowed: {', '.join(map(str, allowed))}")
    return value


def _mapping(name: str, value: Mapping[Any, Any], parts: ast.expr) -> dict[Any, Any]:
    keys, values = parts.elts if isinstance(parts, ast.Tuple) else (parts, parts)
    return {
        _converted(name, key, keys): _converted(f"{name}[{key!r}]", entry, values)
        for key, entry in value.items()
    }


def _sequence(name: str, value: Any, kind: ast.expr) -> Any:
    """Values as a tuple; one value that is not a collection is a sequence of one."""
    if isinstance(kind, ast.Tuple) and not isinstance(kind.elts[-1], ast.Constant):  # a pair
        return tuple(_converted(name, one, part) for one, part in zip(tuple(value), kind.elts, strict=True))
    inner = kind.elts[0] if isinstance(kind, ast.Tuple) else kind
    alone = isinstance(value, str | os.PathLike) or not isinstance(value, Iterable)
    return tuple(_converted(name, one, inner) for one in ([value] if alone else value))


def number_of(name: str, value: Any, kind: str) -> Any:
    """A number of a kind, from text too but for whole numbers.

    Raises:
        TypeError: a value that is not a number of the kind.
        UsageError: text that is not a number, or one out of range.

    Example:
        >>> number_of("epsilon", "17.43", "float"), number_of("runs", 4, "int")
        (17.43, 4)
    """
    if isinstance(value, bool) or (kind == "int" and isinstance(value, str)):
        raise TypeError(
            f"{name} must be {'a whole number' if kind == 'int' else 'a number'}, not {type(value).__name__}"
        )
    if kind == "int":
        try:
            return index(value)
        except TypeError:
            raise TypeError(f"{name} must be a whole number, not {type(value).__name__}") from None
    if kind == "Fraction" or isinstance(value, str):
        number = exact_number(name, value)
        return number if kind == "Fraction" else float(number)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}") from None


def exact_number(name: str, value: Fraction | int | str) -> Fraction:
    """An exact number.

    Raises:
        TypeError: a float, which is not the number that was written.

    Example:
        >>> exact_number("confidence", "0.95")
        Fraction(19, 20)
    """
    if isinstance(value, str):
        try:
            return parse_number(value, name)
        except ConfigError as error:
            raise UsageError(str(error)) from None
    if isinstance(value, Fraction | int) and not isinstance(value, bool):
        return require_magnitude(Fraction(value), name, UsageError)
    raise TypeError(
        f"{name} must be a Fraction, an int or text such as '0.95', not {type(value).__name__}: budgets are exact"
    )

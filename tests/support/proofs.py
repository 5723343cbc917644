"""Proofs beside the code: which function a written proof covers, and whether the function has moved since.

``@proven`` writes the name of a proof file and a digest on the function. A test walks the package, and fails
when a proof is missing, does not name its function, or was written for another version of the source.
"""

import ast
import hashlib
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from censafe.model.proven import PROOF_ATTRIBUTE

_DIGEST_LENGTH = 16
# Fields that do not change what the function computes, or that only some Python versions have.
_IGNORED_FIELDS = frozenset(
    {"decorator_list", "type_comment", "type_params", "kind", "ctx", "returns", "annotation"}
)


@dataclass(frozen=True)
class Proof:
    """One proven function found in the package."""

    name: str
    path: Path
    stated: str
    actual: str


def source_digest(function: Callable[..., Any]) -> str:
    """First 16 hexadecimal digits of the SHA-256 of a function's normalized syntax tree.

    Comments, layout, the docstring, decorators and type annotations do not count; names, constants and structure do.
    The digest is the same on every supported Python version.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(_plain(function))))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        raise TypeError(f"{function!r} is not defined by a def statement")
    for node in ast.walk(definition):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(_canonical(definition).encode()).hexdigest()[:_DIGEST_LENGTH]


def proofs_of(module: ModuleType) -> Iterator[Proof]:
    """Proven functions and methods that ``module`` itself defines, in order of definition."""
    folder = Path(inspect.getfile(module)).parent
    for candidate in _functions(module):
        plain = _plain(candidate)
        proof, digest = getattr(candidate, PROOF_ATTRIBUTE, None) or getattr(plain, PROOF_ATTRIBUTE)
        name = f"{plain.__module__}.{plain.__qualname__}".partition(".")[2]
        yield Proof(name, (folder / proof).resolve(), digest, source_digest(plain))


def walk_proofs(package: ModuleType) -> Iterator[Proof]:
    """Proven functions of every module of ``package``, which are all imported."""
    yield from proofs_of(package)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith("__main__"):
            yield from proofs_of(importlib.import_module(found.name))


def _functions(module: ModuleType) -> Iterator[Callable[..., Any]]:
    owners = [module, *(value for value in vars(module).values() if inspect.isclass(value))]
    for owner in owners:
        for member in vars(owner).values():
            plain = _plain(member)
            marked = _marked(member) or _marked(plain)
            if marked and plain.__module__ == module.__name__:
                yield member if callable(member) else plain


def _marked(value: object) -> bool:
    # Looked up in the instance dictionary: mocks and lazy proxies answer to any attribute name.
    return PROOF_ATTRIBUTE in getattr(value, "__dict__", {})


def _plain(value: Any) -> Any:
    """The def statement's function under compiled, cached, static, class-bound and property wrappers."""
    for name in ("py_func", "__wrapped__", "__func__", "fget"):
        inner = getattr(value, name, None)
        if inspect.isfunction(inner):
            return _plain(inner)
    return value


def _canonical(node: object) -> str:
    """Text of a syntax tree from its non-empty fields; ``ast.unparse`` and ``ast.dump`` vary between versions."""
    if isinstance(node, list):
        return "[" + ",".join(_canonical(item) for item in node) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.JoinedStr):
        return f"JoinedStr({','.join(_string_pieces(node))})"
    fields = (
        f"{name}={_canonical(value)}"
        for name, value in ast.iter_fields(node)
        if name not in _IGNORED_FIELDS and value is not None and value != []
    )
    return f"{type(node).__name__}({','.join(fields)})"


def _string_pieces(joined: ast.JoinedStr) -> Iterator[str]:
    """Pieces of an f-string with neighboring literals merged; versions of Python split them differently."""
    literal = ""
    for value in joined.values:
        if isinstance(value, ast.Constant):
            literal += str(value.value)
            continue
        yield repr(literal)
        yield _canonical(value)
        literal = ""
    yield repr(literal)

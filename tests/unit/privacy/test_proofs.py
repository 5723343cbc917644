"""Every proof exists beside its module, names its function and was written for the code as it stands."""

import functools
import sys
from pathlib import Path

import numba
import pytest

import censafe
from censafe.model.proven import proven
from support.proofs import Proof, proofs_of, source_digest, walk_proofs


def test_every_proof_exists_names_its_function_and_is_up_to_date():
    wrong = [complaint for proof in walk_proofs(censafe) for complaint in complaints(proof)]
    assert not wrong, "\n".join(wrong)


def complaints(proof):
    """What is wrong with one proof, as text that says what to do."""
    if not proof.path.is_file() or not proof.path.name.endswith(".proof.md"):
        yield f"{proof.name} claims the proof {proof.path.name}, which does not exist"
        return
    if f"`{proof.name}`" not in proof.path.read_text():
        yield f"{proof.path.name} does not name `{proof.name}`"
    if proof.actual != proof.stated:
        yield (
            f"{proof.name} changed after its proof was written: "
            f'renew {proof.path.name}, then set digest="{proof.actual}"'
        )


def test_every_proof_file_is_claimed_by_a_function():
    files = set(Path(censafe.__file__).parent.rglob("*.proof.md"))
    assert files == {proof.path for proof in walk_proofs(censafe)}


def test_complaints_name_what_is_missing(tmp_path):
    path = tmp_path / "x.proof.md"
    assert "does not exist" in next(complaints(Proof("privacy.f", path, "a", "a")))
    path.write_text("Covers `privacy.f`.")
    assert list(complaints(Proof("privacy.f", path, "a", "a"))) == []
    assert "does not name" in next(complaints(Proof("privacy.g", path, "a", "a")))
    assert 'digest="b"' in next(complaints(Proof("privacy.f", path, "a", "b")))


@proven("x.proof.md", digest="0")
def documented(x: int, *, y: int = 2) -> int:
    """Documented."""
    # a comment
    return x + (y * 3)


def bare(x, *, y=2):
    return x + y * 3


def other(x, *, y=2):
    return x + y * 4


def formatted(x):
    return f"{x!r:>{10}} {x['a']} {x=}", lambda v: [*v, 1.5, "s", b"b", None, ...]


@numba.njit
def compiled(x):
    return x + 1


@functools.cache
@proven("y.proof.md", digest="1")
def cached(x):
    return x


class Holder:
    @staticmethod
    @proven("z.proof.md", digest="2")
    def method(x):
        return x


def test_digest_ignores_layout_comments_docstring_annotations_and_decorators():
    source = source_digest(documented)
    bare.__name__ = "bare"
    assert source != source_digest(bare)  # the name counts
    namespace_digest = _digest_of("def documented(x, *, y = 2):\n    return (x\n        + y * 3)\n")
    assert namespace_digest == source


def test_digest_sees_a_changed_constant():
    assert source_digest(bare) != source_digest(other)


def test_digest_is_pinned_so_that_python_versions_agree():
    assert {function.__name__: source_digest(function) for function in (bare, formatted)} == {
        "bare": "31628aa6ff6a628b",
        "formatted": "c65756793e384b63",
    }


def test_digest_of_a_compiled_function_is_that_of_its_source():
    assert source_digest(compiled.py_func) == source_digest(compiled)
    marked = proven("c.proof.md", digest="3")(compiled)
    assert marked is compiled and marked.__proof__ == ("c.proof.md", "3")
    assert marked(1) == 2


def test_discovery_sees_functions_methods_cached_and_compiled():
    module = sys.modules[__name__]
    proven("c.proof.md", digest="3")(compiled)
    found = {proof.path.name: proof.stated for proof in proofs_of(module)}
    assert found == {"x.proof.md": "0", "y.proof.md": "1", "z.proof.md": "2", "c.proof.md": "3"}


def test_a_class_has_no_digest():
    with pytest.raises(TypeError, match="def statement"):
        source_digest(Holder)


def _digest_of(text):
    import linecache

    namespace = {}
    linecache.cache["<layout>"] = (len(text), None, text.splitlines(keepends=True), "<layout>")
    exec(compile(text, "<layout>", "exec"), namespace)  # noqa: S102
    return source_digest(namespace["documented"])

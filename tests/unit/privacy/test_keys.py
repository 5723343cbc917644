import copy
import hashlib
import hmac
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from censafe.errors import StorageError
from censafe.privacy.keys import (
    ReleaseKey,
    ReleasePartKey,
    Secret,
    TestKey,
    TestPartKey,
    derive_part_key,
    keyed_commitment,
    source_of,
)

ALL_TYPES = [ReleaseKey, TestKey, ReleasePartKey, TestPartKey]


def one_of_each() -> list[object]:
    release, test = ReleaseKey.from_system(), TestKey(1)
    return [
        release,
        test,
        derive_part_key(release, "0" * 64, b"", "PH2"),
        derive_part_key(test, "0" * 64, b"", "PH2"),
    ]


def test_no_key_type_is_the_base_of_another() -> None:
    for one in ALL_TYPES:
        assert [other for other in ALL_TYPES if issubclass(one, other)] == [one]


def test_what_part_keys_share_is_no_key() -> None:
    (shared,) = {base for one in (ReleasePartKey, TestPartKey) for base in one.__bases__}
    with pytest.raises(TypeError, match="not a key of censafe"):
        source_of(shared(Secret(bytearray(32)), "PH2"))


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("act", [copy.copy, copy.deepcopy, pickle.dumps, lambda k: pickle.dumps(k, 0)])
def test_keys_cannot_be_copied_or_pickled(position: int, act: object) -> None:
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        act(one_of_each()[position])  # type: ignore[operator]


def test_the_bytes_inside_cannot_be_copied_or_pickled_either() -> None:
    secret = Secret(bytearray(32))
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            act(secret)  # type: ignore[operator]


@pytest.mark.parametrize("base", ALL_TYPES)
def test_keys_cannot_be_subclassed(base: type) -> None:
    with pytest.raises(TypeError, match="cannot be subclassed"):
        type("Sneaky", (base,), {})


@pytest.mark.parametrize("position", range(4))
def test_keys_show_nothing(position: int) -> None:
    key = one_of_each()[position]
    assert repr(key) == str(key) == f"<{type(key).__name__}>"
    assert not hasattr(key, "__dict__")


def test_source_follows_the_exact_type_and_no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = one_of_each()
    assert [source_of(key) for key in keys[:4]] == ["system", "seeded", "system", "seeded"]
    for name, value in (("private", True), ("source", "system")):
        monkeypatch.setattr(TestPartKey, name, value, raising=False)
    for test, release in ((keys[1], ReleaseKey), (keys[3], ReleasePartKey)):
        with pytest.raises(TypeError, match="layout differs"):
            test.__class__ = release
    assert source_of(keys[3]) == "seeded"
    for other in (Secret(bytearray(32)), None, b"0" * 32, object()):
        with pytest.raises(TypeError, match="not a key of censafe"):
            source_of(other)


def test_a_part_key_has_the_type_of_its_run_key() -> None:
    assert type(derive_part_key(ReleaseKey.from_system(), "0", b"", "x")) is ReleasePartKey
    assert type(derive_part_key(TestKey(1), "0", b"", "x")) is TestPartKey
    with pytest.raises(TypeError, match="not a key"):
        derive_part_key(b"0" * 32, "0", b"", "x")  # type: ignore[arg-type]


def test_part_key_is_keyed_blake2b_of_the_labeled_fields() -> None:
    run = hashlib.shake_256(b"censafe/test-key/1|2020").digest(32)
    fields = (b"ab" * 32, b"commitment", b"PH1_num")
    data = b"censafe/noise/1" + b"".join(len(f).to_bytes(8, "little") + f for f in fields)
    expected = hashlib.blake2b(data, key=run, digest_size=32).digest()
    part = derive_part_key(TestKey(2020), "ab" * 32, b"commitment", "PH1_num")
    assert bytes(part._secret.reveal()) == expected


def test_every_field_and_every_boundary_between_fields_changes_the_part_key() -> None:
    triples = [
        ("ab", b"c", "d"),
        ("a", b"bc", "d"),
        ("ab", b"cd", ""),
        ("ab", b"c", "e"),
        ("ab", b"e", "d"),
        ("e", b"c", "d"),
    ]
    found = {bytes(derive_part_key(TestKey(1), *triple)._secret.reveal()) for triple in triples}
    found.add(bytes(derive_part_key(TestKey(2), *triples[0])._secret.reveal()))
    assert len(found) == 7


def test_commitment_is_an_hmac_under_the_run_key() -> None:
    run = hashlib.shake_256(b"censafe/test-key/1|5").digest(32)
    expected = hmac.new(run, b"censafe/commitment/1|files", "sha256").digest()
    assert keyed_commitment(TestKey(5), b"files") == expected
    assert keyed_commitment(TestKey(6), b"files") != expected
    part = derive_part_key(TestKey(5), "0" * 64, b"", "PH2")
    for other in (b"0" * 32, part):
        with pytest.raises(TypeError, match="not a run key"):
            keyed_commitment(other, b"files")  # type: ignore[arg-type]


def test_release_keys_differ_even_between_processes_started_together() -> None:
    code = "from censafe.privacy.keys import ReleaseKey as K, keyed_commitment as c; print(c(K.from_system(), b'').hex())"
    both = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    lines = {process.communicate()[0].strip() for process in both}
    lines |= {keyed_commitment(ReleaseKey.from_system(), b"").hex() for _ in range(2)}
    assert len(lines) == 4
    assert all(len(line) == 64 for line in lines)


def test_missing_entropy_stops_without_a_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(_: int) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr(os, "urandom", empty)
    with pytest.raises(OSError, match="no entropy"):
        ReleaseKey.from_system()


@pytest.mark.parametrize("position", range(4))
def test_close_overwrites_the_bytes(position: int) -> None:
    key = one_of_each()[position]
    data = key._secret.reveal()  # type: ignore[attr-defined]
    assert any(data)
    key.close()  # type: ignore[attr-defined]
    assert data == bytes(32)
    with pytest.raises(ValueError, match="closed"):
        key._secret.reveal()  # type: ignore[attr-defined]
    key.close()  # type: ignore[attr-defined]


def test_leaving_the_context_closes_a_run_key() -> None:
    for key in (ReleaseKey.from_system(), TestKey(1)):
        with key as same:
            assert same is key
        with pytest.raises(ValueError, match="closed"):
            keyed_commitment(key, b"")


@pytest.mark.parametrize("seed", [1.0, "1", True, None])
def test_a_seed_is_an_int(seed: object) -> None:
    with pytest.raises(TypeError, match="must be an int"):
        TestKey(seed)  # type: ignore[arg-type]


def test_a_secret_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes, not 31"):
        Secret(bytearray(31))


def test_a_stored_key_is_the_same_key_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path, key = tmp_path / "run.key", ReleaseKey.from_system()
    key.store(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert keyed_commitment(ReleaseKey.load(path), b"x") == keyed_commitment(key, b"x")
    with pytest.raises(StorageError, match="already there"):
        key.store(path)


def test_key_files_that_are_open_missing_or_foreign_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.key"
    with pytest.raises(StorageError, match="cannot be read"):
        ReleaseKey.load(path)
    ReleaseKey.from_system().store(path)
    path.chmod(0o640)
    with pytest.raises(StorageError, match="chmod 600"):
        ReleaseKey.load(path)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match="not a key file"):
        ReleaseKey.load(path)
    with pytest.raises(StorageError, match="cannot be written"):
        ReleaseKey.from_system().store(tmp_path / "absent" / "run.key")


def test_a_key_that_cannot_be_synced_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="cannot be written: No space left"):
        ReleaseKey.from_system().store(tmp_path / "run.key")
    assert list(tmp_path.iterdir()) == []

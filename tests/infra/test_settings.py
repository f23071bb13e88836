from pathlib import Path

import pytest

from infra.settings import ASSETS, Settings, SettingsError


def test_everything_lies_under_the_default_store_when_nothing_is_set() -> None:
    assert Settings.from_env({}) == Settings(store=str(ASSETS / "store"), cache=ASSETS / "store")


def test_a_local_store_is_also_the_cache(tmp_path: Path) -> None:
    assert Settings.from_env({"TOUCHSTONE_STORE": str(tmp_path)}) == Settings(str(tmp_path), tmp_path)


def test_a_relative_store_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings.from_env({"TOUCHSTONE_STORE": "here"}).cache == tmp_path / "here"


def test_a_bucket_leaves_the_cache_on_this_machine(tmp_path: Path) -> None:
    assert Settings.from_env({"TOUCHSTONE_STORE": "s3://bucket/a/"}) == Settings("s3://bucket/a", ASSETS / "store")
    both = {"TOUCHSTONE_STORE": "s3://bucket", "TOUCHSTONE_CACHE": str(tmp_path)}
    assert Settings.from_env(both) == Settings("s3://bucket", tmp_path)


def test_reading_the_environment_creates_nothing(tmp_path: Path) -> None:
    Settings.from_env({"TOUCHSTONE_STORE": str(tmp_path / "a" / "b")})
    assert list(tmp_path.iterdir()) == []


def test_a_key_is_never_shown() -> None:
    assert "sesame" not in repr(Settings.from_env({"TOUCHSTONE_API_KEY": "sesame"}))


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("TOUCHSTONE_STORE", "", "is empty"),
        ("TOUCHSTONE_STORE", "gs://bucket", "other than s3:// are not supported"),
        ("TOUCHSTONE_STORE", "s3:/bucket", "other than s3:// are not supported"),
        ("TOUCHSTONE_STORE", "~nouser/x", "has no home folder here"),
        ("TOUCHSTONE_STORE", "x" * 300, "is too long"),
        ("TOUCHSTONE_STORE", "x/" * 2000, "is too long"),
        ("TOUCHSTONE_STORE", "s3://", "names no bucket"),
        ("TOUCHSTONE_STORE", "runs/exp[1]", r"\[ \] would be read as a pattern"),
        ("TOUCHSTONE_STORE", "s3://bucket/*", r"\* would be read as a pattern"),
        ("TOUCHSTONE_STORE", __file__, "is a file"),
        ("TOUCHSTONE_CACHE", f"{__file__}/below", "is a file"),
        ("TOUCHSTONE_CACHE", "s3://bucket", "is an address"),
        ("TOUCHSTONE_CACHE", "s3:/bucket", "is an address"),
        ("TOUCHSTONE_CACHE", "~nouser/x", "has no home folder here"),
    ],
)
def test_a_value_that_would_fail_later_is_refused_with_its_name(variable: str, value: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=f"^{variable}=.*{reason}.*; "):
        Settings.from_env({variable: value})

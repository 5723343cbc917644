"""What a configuration is for is recorded beside its settings and changes nothing that is released."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from censafe.errors import ConfigError
from censafe.products.configuration.source import get_shipped
from censafe.products.detailed.config import load_h_config, load_p_config
from censafe.products.phsafe.config import load_phsafe_config
from censafe.products.topdown.configuration.config import load_config


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("sdhc-pr", load_phsafe_config),
        ("ddhca", load_p_config),
        ("ddhcb", load_h_config),
        ("e2e-1940", load_config),
    ],
)
def test_titles_are_recorded_and_change_no_digest(
    name: str, load: Callable[..., Any], tmp_path: Path
) -> None:
    config = load(name)
    assert config.record == {"title": config.title, **config.settings}
    text = get_shipped(name).path.read_text(encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text(text.replace(f'"{config.title}"', '"Mine"'), encoding="utf-8")
    other = load(own)
    assert (other.title, other.digest) == ("Mine", config.digest)
    own.write_text(text.replace(f'"{config.title}"', "7"), encoding="utf-8")
    with pytest.raises(ConfigError, match="title: give text in quotes"):
        load(own)

"""Shipped configurations are found by name."""

import pytest

from censafe.errors import ConfigError
from censafe.products.configuration.source import PRODUCTS, find_shipped, get_shipped, shipped_configs


def test_every_shipped_configuration_has_a_title_and_a_source() -> None:
    found = shipped_configs()
    assert {config.product for config in found} == set(PRODUCTS)
    for config in found:
        assert config.title
        assert "# Source:" in config.text
        assert config == get_shipped(config.name)


def test_a_name_belongs_to_its_product() -> None:
    assert find_shipped("phsafe", "sdhc-us") is not None
    assert find_shipped("phsafe", "sdhc") is None
    assert find_shipped("topdown", "pl94-us") is not None
    assert shipped_configs("bluedown") == ()


def test_a_typo_suggests_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'sdhc-pr'"):
        get_shipped("sdch-pr")

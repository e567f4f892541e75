"""The metadata of a release as JSON, beside the file it belongs to."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .columns import check_text
from .errors import SourceError, WriteError
from .metadata import parsed


def sidecar(path: str | Path) -> Path:
    """The JSON file that belongs to a release: its name with the suffix .json."""
    return Path(path).with_suffix(".json")


def to_json(metadata: Mapping[str, Any]) -> str:
    """The metadata as strict JSON in UTF-8 text, keys in their order; infinities as texts, NaN as null.

    Raises
    ------
    WriteError
        Something in it is no text, number, list or mapping.
    """
    text = json.dumps(_plain(metadata, "metadata"), ensure_ascii=False, indent=1, allow_nan=False)
    check_text([text], "metadata")
    return text + "\n"


def read_json(path: Path) -> dict[str, Any] | None:
    """The metadata in a JSON file, or None when there is no such file.

    Raises
    ------
    SourceError
        The file is there but holds no JSON object, or cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SourceError(f"expected the metadata of a release in '{path}', got: {error}.") from error
    return parsed(text, f"'{path}'")


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, Mapping):
        return {_key(key, where): _plain(inner, f"{where}.{key}") for key, inner in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(inner, where) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if value is None or isinstance(value, str | bool | int | float):
        if isinstance(value, str):
            check_text([value], where)
        return value
    raise WriteError(f"{where}: expected text, numbers, lists or mappings, got a {type(value).__name__}.")


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise WriteError(f"{where}: expected keys that are text, got {key!r}.")
    return key

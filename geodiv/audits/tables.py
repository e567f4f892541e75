"""Tables as plain values, for JSON and for printing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values: nulls are None, numbers that are not finite are text."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(k): plain(v) for k, v in row.items()} for row in rows]


def plain(value: Any) -> Any:
    """One value as JSON can hold it."""
    value = value.item() if isinstance(value, np.generic) else value
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value

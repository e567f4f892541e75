"""Values as text: one text for a value, whatever type it came as."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geodiv.text import MISSING, as_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("clinic", "clinic"),
        ("", ""),
        (" a ", " a "),
        ("007", "007"),
        ("1.0", "1.0"),
        ("nan", "nan"),
        ("<NA>", "<NA>"),
        (np.str_("Café & Bar / 24h"), "Café & Bar / 24h"),
        (1, "1"),
        (-999, "-999"),
        (np.int64(-999), "-999"),
        (np.uint8(7), "7"),
        (2**60 + 1, str(2**60 + 1)),
        (1.0, "1"),
        (-999.0, "-999"),
        (-0.0, "0"),
        (np.float64(3), "3"),
        (np.float32(3), "3"),
        (0.5, "0.5"),
        (np.float64(0.1), "0.1"),
        (1e22, "10000000000000000000000"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (Decimal("1.0"), "1"),
        (Decimal("1.50"), "1.5"),
        (Decimal("1E+2"), "100"),
        (True, "true"),
        (False, "false"),
        (np.True_, "true"),
        (np.False_, "false"),
    ],
    ids=repr,
)
def test_the_text_of_a_value(value, text):
    assert as_text(value) == text
    assert type(as_text(value)) is str


@pytest.mark.parametrize(
    "value", [None, math.nan, np.nan, np.float32("nan"), pd.NA, pd.NaT, Decimal("NaN")], ids=repr
)
def test_nothing_is_missing(value):
    assert as_text(value) == MISSING == "(missing)"


@given(st.integers(-(2**53), 2**53))
def test_a_whole_number_has_one_text(number):
    forms = [number, float(number), np.int64(number), np.float64(number), Decimal(number), str(number)]
    assert {as_text(form) for form in forms} == {str(number)}


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != int(x)))
def test_another_float_is_written_as_python_does(number):
    assert as_text(number) == as_text(np.float64(number)) == str(number)


@given(st.text())
def test_a_text_stays_as_it_is(text):
    assert as_text(text) == text

"""Errors: one family, exit codes, and messages that help without telling a person or a small count."""

from __future__ import annotations

import inspect

import pytest

from geodiv import errors
from geodiv.errors import GeodivError, NotConverged, did_you_mean, listed

LEAVES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, GeodivError)]


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda c: c.__name__)
def test_every_error_is_one_a_caller_can_catch(leaf):
    assert issubclass(leaf, ValueError)
    assert leaf.__doc__
    assert str(leaf("expected this, got that.")) == "expected this, got that."


def test_exit_codes():
    codes = {leaf.__name__: leaf.exit_code for leaf in LEAVES}
    assert codes.pop("UsageError") == 2
    assert codes.pop("NotConverged") == 4
    assert codes.pop("VerificationError") == 1
    assert set(codes.values()) == {3}


def test_zones_that_fail_are_for_the_caller_not_for_the_log():
    error = NotConverged("the remedies reached max_rounds = 3.", zones=iter(["z1", "z2"]))
    assert error.zones == ("z1", "z2")
    assert "z1" not in str(error)


def test_the_nearest_name_is_a_hint():
    assert did_you_mean("poi_categry", ["person_id", "poi_category"]) == " Did you mean 'poi_category'?"
    assert did_you_mean("zzz", ["person_id"]) == ""
    assert did_you_mean(3, []) == ""


def test_names_are_listed_up_to_a_point():
    assert listed(["a", "b"]) == "'a', 'b'"
    assert listed("abcdefghij") == "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h' and 2 more"
    assert listed(["x" * 100]) == repr("x" * 57 + "...")
    assert listed([]) == ""

"""Publication: texts that travel with a release."""

from __future__ import annotations

import pytest

from geodiv import PolicyError, Publication


def test_texts_and_keywords():
    release = Publication(title="Visits", keywords=["gis", "privacy"])
    assert release.keywords == ("gis", "privacy")
    assert Publication().count_min == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"title": 3}, "title: expected a text, got 3"),
        ({"note": None}, "note: expected a text"),
        ({"keywords": "gis"}, "expected a list of texts, got 'gis'"),
        ({"keywords": [1]}, "keywords: expected a text, got 1"),
        ({"count_min": 0}, "count_min: expected a whole number of at least 1"),
        ({"count_min": True}, "count_min"),
        ({"count_min": 2.5}, "count_min"),
    ],
    ids=str,
)
def test_what_is_none(given, message):
    with pytest.raises(PolicyError, match=message):
        Publication(**given)

"""Functions for workers that have no geodiv: the code goes with them."""

from __future__ import annotations

import functools
import importlib
import io
import sys
from collections.abc import Callable, Iterator
from typing import Any

PACKAGE = __name__.partition(".")[0]
CACHED = type(functools.lru_cache(lambda: None))


def by_value(what: Any) -> bytes:
    """Anything of geodiv, pickled with the code that it needs of it; other packages are only named."""
    cloudpickle: Any = importlib.import_module("pyspark.cloudpickle")

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        """As cloudpickle's, which names functions with a cache, and cannot take properties with one."""

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, CACHED) and obj.__module__.partition(".")[0] == PACKAGE:
                return _cached, (obj.__wrapped__, obj.cache_parameters()["maxsize"])
            if isinstance(obj, functools.cached_property):
                return functools.cached_property, (obj.func,), {"attrname": obj.attrname}, None, None, _named
            return super().reducer_override(obj)

    file = io.BytesIO()
    cloudpickle.register_pickle_by_value(sys.modules[PACKAGE])
    try:
        Pickler(file).dump(what)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[PACKAGE])
    return file.getvalue()


def shipped(function: Callable[..., Iterator[Any]], *given: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """``function(batches, *given)`` as a function of batches, for ``mapInArrow``."""
    payload = by_value((function, given))

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pickle

        work, beside = pickle.loads(payload)
        yield from work(batches, *beside)

    return run


def _cached(function: Callable[..., Any], maxsize: int | None) -> Any:
    return functools.lru_cache(maxsize)(function)


def _named(made: functools.cached_property[Any], state: dict[str, Any]) -> None:
    made.attrname = state["attrname"]

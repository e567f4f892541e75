"""Fuzzing of everything that reads a file which somebody else may have made.

    python tests/fuzz.py --runs 100000 [--seed 1] [--only policy,taxonomy,...]     mutates the seeds at random
    python tests/fuzz.py --atheris [--only taxonomy] [flags of libFuzzer]          guided by coverage, needs atheris

A target takes bytes, writes them to a file and reads it as the command line does. The only exception that may leave it
is a `GeodivError` of one line. Anything else is a crash: it is printed with its input, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
if "--atheris" in sys.argv:
    import atheris

    with atheris.instrument_imports(include=["geodiv"]):
        import geodiv.run
        import geodiv.sources
        import geodiv.tabulation

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import geodiv as gd
from geodiv.metadata import parsed
from geodiv.reference_files import read_graph, read_regions

FOLDER = Path(tempfile.mkdtemp(prefix="geodiv-fuzz-"))
POI = gd.Nominal("poi")


def _file(name: str, data: bytes) -> Path:
    path = FOLDER / name
    path.write_bytes(data)
    return path


def _visits(name: str, data: bytes) -> None:
    source = _file(name, data)
    gd.tabulate(source, grid=gd.H3Grid(8), person="who", attributes=[POI], on_bad_rows="skip")


def policy(data: bytes) -> None:
    """policy.toml, in a folder with the files that the seeds name."""
    gd.read_run(_file("policy.toml", data))


def taxonomy(data: bytes) -> None:
    """A taxonomy, and an attribute that declares it."""
    gd.Nominal("poi", taxonomy=gd.Taxonomy.read(_file("t.csv", data))).space(["a"])


def csv(data: bytes) -> None:
    """Visits as CSV, counted."""
    _visits("v.csv", data)


def parquet(data: bytes) -> None:
    """Visits as Parquet, counted."""
    _visits("v.parquet", data)


def geojson(data: bytes) -> None:
    """Visits as GeoJSON, counted."""
    _visits("v.geojson", data)


def weights(data: bytes) -> None:
    """Weights of a reference, in each text format."""
    for name in ("w.gal", "w.gwt", "w.csv"):
        try:
            read_graph(_file(name, data))
        except gd.GeodivError as error:
            _one_line(error)


def regions(data: bytes) -> None:
    """Regions of a reference as CSV."""
    read_regions(_file("r.csv", data), None, None)


def metadata(data: bytes) -> None:
    """The metadata of a release."""
    parsed(data, "'release.json'")


def _parquet(frame: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame), stream)
    return stream.getvalue()


_FRAME = pd.DataFrame(
    {"who": ["a", "b", "c"], "lon": [16.3, 16.4, 179.9], "lat": [48.2, -90, 0], "poi": ["x", None, ""]}
)
_POINT = {
    "type": "Feature",
    "geometry": {"type": "Point", "coordinates": [16.3, 48.2]},
    "properties": {"who": "a", "poi": "x"},
}
_POLICY = (Path(gd.__file__).parent.parent / "fixtures" / "policy.toml").read_bytes()
_MORE = b"""[visits]\nperson = "who"\nlon = "x"\nlat = "y"\ncrs = "EPSG:3035"\non_bad_rows = "skip"\n[grid]\nkind = "square"
size = 500\ncrs = "EPSG:3035"\n[[attribute]]\ncolumn = "poi"\ntaxonomy = "t.csv"\nmissing = ["", 1, 2.5]\nlevel = 0
gates = { l_min = 2, t_max = 0.5 }\n[[attribute]]\ncolumn = "age"\nkind = "numeric"\nedges = [-inf, 0, 1e3, inf]
[[attribute]]\ncolumn = "band"\nkind = "ordinal"\norder = ["a", "b"]\npositions = [1, 2]\n[gates]\nk_min = 10
c_l = 2\nc_max = 3\n[reference]\nscope = "ring"\norder = 1\nmax_order = 3\nfallback = "none"
[remedies]\nladder = ["recode"]\nmax_members = 3\nresidual = false\n[release]\ntitle = "T"\nkeywords = ["a"]\ncount_min = 3\n"""
_RECORD = {
    "column": "poi", "kind": "nominal", "levels": [["a", "b"], ["x"]], "above": [[0, 1], [0, 0]], "taxonomy": None,
    "missing": [""], "sensitive": ["a"], "level": 0, "distance": "total variation", "positions": None, "gates": {"k_min": 5},
}  # fmt: skip
_METADATA = {
    "format": "geodiv release 1", "title": "T", "keywords": [], "count_min": 3, "policy": {"gates": {"k_min": 5}},
    "grid": {"kind": "h3", "resolution": 8}, "attributes": [_RECORD], "zones": 1, "coverage": 0.5, "dropped": {"no person": 1},
}  # fmt: skip
TARGETS: dict[str, tuple[Callable[[bytes], None], tuple[bytes, ...]]] = {
    "policy": (policy, (_POLICY, _MORE)),
    "taxonomy": (
        taxonomy,
        (b"value,level1,level2\na,x,1\nb,x,1\nc,,2\n", b'\xef\xbb\xbfvalue,level1\n"a ""q""",b\n'),
    ),
    "csv": (csv, (_FRAME.to_csv(index=False).encode(), b'who;lon;lat;poi\n"a\nb";16,3;48,2;x\n')),
    "parquet": (parquet, (_parquet(_FRAME), _parquet(_FRAME.astype({"poi": "category"})))),
    "geojson": (geojson, (json.dumps({"type": "FeatureCollection", "features": [_POINT, _POINT]}).encode(),)),
    "weights": (
        weights,
        (b"2\na 1\nb\nb 1\na\n", b"0 2 v id\na b 1\nb a 2\n", b"focal,neighbor,weight\na,b,1\nb,a,1\n"),
    ),
    "regions": (regions, (b"cell_id,region\na,n\nb,s\n",)),
    "metadata": (metadata, (json.dumps(_METADATA).encode(),)),
}
TOKENS = (
    b"\0", b"\n", b"\r", b'"', b"'", b",", b";", b"[", b"]", b"{", b"}", b"=", b"-", b"1e999", b"9" * 400, b"nan", b"-inf", b"true",
    b"null", b"\xff\xfe", b"\xef\xbb\xbf", "\u202e".encode(), b"\x1b[31m", b"(missing)", b"[[", b"]]", b"\\u0000", b"\\ud800", b"1979-05-27",
    b"0x10", b"'''", b'"""', b"../", b"|layername=", b"kind", b"zones", b"weights", b"places", b"path", b"a" * 200_000, b"[" * 5000,
)  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A few cuts, repetitions, flipped bytes and tokens."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        i, j = sorted(rng.randrange(len(found) + 1) for _ in range(2))
        match rng.randrange(6):
            case 0:
                found[i:i] = rng.choice(TOKENS)
            case 1:
                found[i : i + len(token)] = (token := rng.choice(TOKENS))
            case 2:
                del found[i : min(j, i + 40)]
            case 3:
                found[i:i] = found[i : min(j, i + 40)]
            case 4 if found:
                found[rng.randrange(len(found))] = rng.randrange(256)
            case _:
                found[i : i + 1] = bytes([rng.randrange(256)])
    return bytes(found)


def _one_line(error: gd.GeodivError) -> None:
    assert len(str(error).splitlines()) == 1, repr(str(error))


def survives(target: Callable[[bytes], None], data: bytes) -> str | None:
    """None, or what was raised that may not be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            target(data)
        except gd.GeodivError as error:
            _one_line(error)
        except Exception:
            return traceback.format_exc()
    return None


def prepare() -> None:
    """The files that seeds of other targets name."""
    for name, (_, seeds) in (("t.csv", TARGETS["taxonomy"]), ("r.csv", TARGETS["regions"])):
        _file(name, seeds[0])


def run(names: Sequence[str], runs: int, seed: int) -> Counter[str]:
    """Number of crashes by target; each kind of crash is printed once, with the smallest input that was seen."""
    crashes: Counter[str] = Counter()
    for name in names:
        target, seeds = TARGETS[name]
        prepare()
        rng, seen = random.Random(f"{seed} {name}"), set()
        for _ in range(runs):
            data = mutated(rng.choice(seeds), rng)
            if (trace := survives(target, data)) is not None:
                crashes[name] += 1
                if (last := trace.strip().splitlines()[-1][:80]) not in seen:
                    seen.add(last)
                    print(f"{name}: {data[:600]!r}\n{trace}", flush=True)
        print(f"{name}: {runs} runs, {crashes[name]} crashes of {len(seen)} kinds", flush=True)
    return crashes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(TARGETS))
    parser.add_argument("--atheris", action="store_true")
    told, rest = parser.parse_known_args()
    names = told.only.split(",")
    if not told.atheris:
        return int(bool(run(names, told.runs, told.seed)))
    prepare()
    target, seeds = TARGETS[names[0]]
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    for number, data in enumerate(seeds):
        (corpus / str(number)).write_bytes(data)

    def one(data: bytes) -> None:
        trace = survives(target, data)
        assert trace is None, trace

    atheris.Setup([sys.argv[0], *rest, str(corpus)], one)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Mutation check: would the tests notice a small fault in the modules that decide?

    python ci/mutants.py measures reference release geopackage remedies
    python ci/mutants.py remedies --sample 100 --seed 3
    python ci/mutants.py measures --again        # those that survived, after a test was added
    python ci/mutants.py --summary

The tree is copied into a folder of its own. One mutant at a time stands in the copy, and the tests that ran its line
run against it, the quickest first, until one fails. Numpy and its like are imported once: each mutant is a fork of this
process. Every answer is a line in the results file, so a run that was ended goes on where it stopped. A mutant that no
test can notice has its reason in mutants.toml. POSIX only, one process, the same order each time.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mutation import Mutant, mutants

TREE = Path(__file__).resolve().parent.parent
EXPLAINED = Path(__file__).with_name("mutants.toml")
HEAVY = ("numpy", "scipy.sparse.csgraph", "scipy.stats", "pandas", "pyarrow.compute", "geopandas", "pyogrio",
         "shapely", "pyproj", "h3", "libpysal", "click", "rich", "hypothesis", "pytest")  # fmt: skip
TARGETS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "measures": (
        ("measures/diversity.py", "measures/distance.py", "measures/belief.py"),
        ("measures_diversity", "measures_distance", "measures_belief", "scores", "textbook", "verify", "doctests"),
    ),
    "reference": (
        ("reference.py",),
        ("reference", "scores", "neighbourhoods", "bad_input", "subtraction", "verify", "oracles"),
    ),
    "release": (
        ("release.py", "subtraction.py"),
        ("release", "subtraction", "enforcement", "fixtures", "globe", "oracles", "formats", "plots"),
    ),
    "geopackage": (
        ("geopackage.py",),
        ("geopackage", "formats", "atomic"),
    ),
    "remedies": (
        ("remedies/recode.py", "remedies/merge.py", "remedies/suppress.py", "remedies/release_level.py",
         "remedies/situation.py", "remedies/residual.py", "remedies/grow.py", "remedies/refine.py",
         "remedies/moves.py"),
        ("remedies_parts", "remedies", "neighbourhoods"),
    ),
    "enforcement": (("enforcement.py",), ("enforcement", "remedies")),
}  # fmt: skip
SLOW = 15  # seconds; a test that takes longer is left out
SECONDS = 10  # of CPU for a mutant, beyond what its tests take by the clock


class Watch:
    """A pytest plugin: which tests run which lines, and how long each takes."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self.failed: list[str] = []

    def pytest_runtest_setup(self, item: Any) -> None:
        self.coverage.switch_context(f"{item.nodeid.split('::')[0]}::")  # a fixture may serve the whole file

    def pytest_runtest_call(self, item: Any) -> None:
        self.coverage.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)


class Chosen:
    """A pytest plugin: these tests alone, in this order."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: i for i, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="what to mutate")
    parser.add_argument("--sample", type=int, help="at most so many mutants of each file, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--again", action="store_true", help="run again what survived")
    parser.add_argument("--results", type=Path, default=TREE / "mutants.jsonl", help="answers, a line each")
    parser.add_argument("--summary", action="store_true", help="only say how it stands")
    options = parser.parse_args()
    if not options.summary:
        os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        for name in HEAVY:
            importlib.import_module(name)
        for target in options.targets or TARGETS:
            check(target, options)
    return summary(options.results)


def check(target: str, options: argparse.Namespace) -> None:
    """Run the mutants of one target that have no answer yet."""
    modules, names = TARGETS[target]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        work = Path(folder)
        for part in ("geodiv", "tests", "fixtures"):
            shutil.copytree(TREE / part, work / part, ignore=shutil.ignore_patterns("__pycache__"))
        for part in ("pyproject.toml", "README.md"):
            shutil.copy(TREE / part, work / part)
        files = [f"tests/test_{name}.py" for name in names if (work / f"tests/test_{name}.py").exists()]
        seconds, lines = baseline(work, files, modules)
        for module in modules:
            path = work / "geodiv" / module
            source = path.read_bytes()
            for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
                stale.unlink()
            known = {} if not options.results.exists() else answers(options.results)
            every = mutants(source)
            wanted = set(range(len(every)))
            if options.sample is not None and options.sample < len(every):
                wanted = set(
                    random.Random(f"{options.seed} {module}").sample(range(len(every)), options.sample)
                )
            for i, mutant in enumerate(every):
                before = known.get((module, mutant.name))
                if not before and i not in wanted:
                    continue
                again = options.again and (module, mutant.name) not in explained()
                if before and not (again and before["status"] == "survived"):
                    continue
                tests = covering(mutant, lines[module], seconds)
                path.write_bytes(mutant.applied(source))
                began = time.monotonic()
                status = "survived"
                for some in stages(tests, files):
                    if status == "survived":
                        status = run(work, some, sum(seconds[test] for test in some))
                took = round(time.monotonic() - began, 1)
                answer = {"module": module, "mutant": mutant.name, "line": mutant.lines[0], "status": status,
                          "tests": len(tests), "seconds": took}  # fmt: skip
                with options.results.open("a") as file:
                    file.write(json.dumps(answer) + "\n")
                if status != "killed":
                    print(f"{status:9} {module}:{mutant.lines[0]} {mutant.name}", flush=True)
            path.write_bytes(source)


def baseline(work: Path, files: list[str], modules: Iterable[str]) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds of each quick test that passes, and for each module the tests that ran each of its lines."""
    out = work / "baseline.json"
    paths = {module: str(work / "geodiv" / module) for module in modules}

    def measured() -> int:
        import coverage
        import pytest

        trace = coverage.Coverage(data_file=None, include=list(paths.values()), config_file=False)
        watch = Watch(trace)
        trace.start()
        code = pytest.main(
            [*files, "-q", "-p", "no:cacheprovider", f"--basetemp={work}/tmp"], plugins=[watch]
        )
        trace.stop()
        import geodiv

        assert str(geodiv.__file__).startswith(str(work)), geodiv.__file__
        data = trace.get_data()
        lines = {module: data.contexts_by_lineno(path) for module, path in paths.items()}
        out.write_text(json.dumps({"seconds": watch.seconds, "lines": lines, "failed": watch.failed}))
        return int(code)

    code = forked(work, measured, None)
    if code not in (0, 1):
        raise SystemExit(f"expected tests that run before any mutant, got exit code {code}")
    found = json.loads(out.read_text())
    for test in found["failed"]:
        print(f"left out: {test} fails before any mutant, with ten examples of each property", flush=True)
    quick = {t: s for t, s in found["seconds"].items() if s <= SLOW and t not in found["failed"]}
    return quick, found["lines"]


def covering(mutant: Mutant, lines: dict[str, list[str]], seconds: dict[str, float]) -> list[str]:
    """The tests that ran any line of the mutant's statement, the quickest first; for what runs at import, all."""
    first, last = mutant.lines
    ran = {name for line in range(first, last + 1) for name in lines.get(str(line), [])}
    if "" in ran:
        ran = {name for names in lines.values() for name in names}
    whole = tuple(name for name in ran if name.endswith("::"))
    return sorted(
        (test for test in seconds if test in ran or (whole and test.startswith(whole))),
        key=lambda test: (seconds[test], test),
    )


def stages(tests: list[str], files: list[str]) -> list[list[str]]:
    """The tests of the first file that has any, then all others: what one file tells need not be asked of ten."""
    first = next((file for file in files if any(test.startswith(f"{file}::") for test in tests)), "")
    parts = [[t for t in tests if t.startswith(f"{first}::") is own] for own in (True, False)]
    return [part for part in parts if part]


def run(work: Path, tests: list[str], seconds: float) -> str:
    """Whether some tests notice the mutant that stands in the copy: killed, timeout or survived."""

    def judged() -> int:
        import pytest

        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        files = list(dict.fromkeys(test.split("::")[0] for test in tests))
        return int(
            pytest.main(
                [*files, "-q", "-x", "-p", "no:cacheprovider", f"--basetemp={work}/tmp"],
                plugins=[Chosen(tests)],
            )
        )

    code = forked(work, judged, SECONDS + seconds)
    if code in (0, 1, 2):  # passed; a test failed; the mutant cannot be imported
        return "survived" if code == 0 else "killed"
    if code < 0:
        return "timeout"
    raise SystemExit(f"expected pytest to pass or fail, got exit code {code}")


def forked(work: Path, task: Any, seconds: float | None) -> int:
    """Exit code of a task in a fork of this process; below 0 when it was ended for using too much CPU."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
            signal.alarm(int(seconds) * 20)
        log = os.open(work / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(work)
        os.environ |= {"PYTHONPATH": str(work), "HYPOTHESIS_PROFILE": "few"}
        sys.path.insert(0, str(work))
        code = 99
        try:
            code = task()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def answers(results: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The last answer for each mutant."""
    found = [json.loads(line) for line in results.read_text().splitlines()]
    return {(answer["module"], answer["mutant"]): answer for answer in found}


def explained() -> set[tuple[str, str]]:
    """The mutants of which mutants.toml says why no test can tell them."""
    return {
        (entry["module"], entry["mutant"]) for entry in tomllib.loads(EXPLAINED.read_text())["equivalent"]
    }


def summary(results: Path) -> int:
    """Print how it stands for each file, and what survives without a reason; 1 when anything does."""
    known = answers(results) if results.exists() else {}
    reasons = explained()
    print(f"{'module':28} {'mutants':>7} {'run':>5} {'killed':>6} {'equivalent':>10} {'survived':>8}")
    left = []
    for modules, _ in TARGETS.values():
        for module in modules:
            names = [mutant.name for mutant in mutants((TREE / "geodiv" / module).read_bytes())]
            ran = {name: known[module, name]["status"] for name in names if (module, name) in known}
            killed = sum(status != "survived" for status in ran.values())
            same = [
                name for name, status in ran.items() if status == "survived" and (module, name) in reasons
            ]
            survived = [name for name, status in ran.items() if status == "survived" and name not in same]
            left += [f"{module} {name}" for name in survived]
            print(f"{module:28} {len(names):7} {len(ran):5} {killed:6} {len(same):10} {len(survived):8}")
    print(*left, sep="\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())

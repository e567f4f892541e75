"""What goes wrong on a cluster, as errors that say what to do.

Nothing of Spark's own messages is shown but the name of their condition: they hold stack traces, and rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import GeodivError, SourceError, UsageError

ADVICE: tuple[tuple[str, type[GeodivError], str], ...] = (
    (
        r"PYTHON_VERSION_MISMATCH|[Pp]ython in worker has different version|different Python version",
        UsageError,
        "the workers run another version of Python. Set PYSPARK_PYTHON to the version of this machine",
    ),
    (
        r"JAVA_GATEWAY_EXITED|UnsupportedClassVersionError",
        UsageError,
        "Java does not start Spark. Check that java -version says 17 or newer, and JAVA_HOME",
    ),
    (
        r"Cannot run program",
        UsageError,
        "the workers find no Python. Set PYSPARK_PYTHON to its path on the workers",
    ),
    (
        r"No space left on device",
        SourceError,
        "a disk of the cluster is full. Free some, or let spark.local.dir name a larger one",
    ),
    (
        r"OutOfMemoryError|Java heap space|GC overhead limit|ResourcesExhausted",
        SourceError,
        "the cluster is out of memory. Give it more (spark.executor.memory), or more partitions",
    ),
    (
        r"MALFORMED_CSV_RECORD|MALFORMED_RECORD|[Mm]alformed CSV|Csv error|incorrect number of fields",
        SourceError,
        "a line of a CSV file has more or fewer fields than its header. Mend it; "
        "the memory engine says which line it is",
    ),
    (
        r"PARQUET_TYPE_ILLEGAL|PARQUET_TYPE_NOT_SUPPORTED|Illegal Parquet type|to Spark data type",
        SourceError,
        "a Parquet column has a type that Spark does not read. Set spark.sql.legacy.parquet.nanosAsLong, or write "
        "times in microseconds",
    ),
    (
        r"PARQUET_COLUMN_DATA_TYPE_MISMATCH|SCHEMA_COLUMN_CONVERT|column type mismatch",
        SourceError,
        "the files differ in the type of a column. Write them with the same types",
    ),
    (
        r"AMBIGUOUS_REFERENCE|COLUMN_ALREADY_EXISTS",
        SourceError,
        "two columns have names that differ in upper and lower case only. Rename one, or set spark.sql.caseSensitive",
    ),
    (
        r"PATH_NOT_FOUND|FileNotFoundException|FILE_NOT_EXIST|FAILED_READ_FILE|No such file|ObjectNotFound|"
        r"UNABLE_TO_INFER_SCHEMA|UnknownHostException|NoSuchBucket|ClassNotFoundException: Class org.apache.hadoop.fs|"
        r"No FileSystem for scheme|UNSUPPORTED_FILE_SYSTEM|not a Parquet file|CANNOT_READ_FILE_FOOTER|"
        r"AccessControlException|Permission denied",
        SourceError,
        "the cluster cannot read the visits. Check the path, and that every worker sees it: "
        "a folder of this machine alone is no use to a cluster",
    ),
    (
        r"OPERATION_CANCELED|[Jj]ob \d+ cancelled|cancelled as part of|SparkContext was shut down|was cancelled",
        SourceError,
        "the job was cancelled. Nothing is left of it; start again",
    ),
    (
        r"All masters are unresponsive|stopped SparkContext|SESSION_CLOSED|SESSION_NOT_SAME|"
        r"ExecutorLostFailure|UNAVAILABLE|Connection refused|Connection reset|NO_ACTIVE_SESSION|INVALID_HANDLE|"
        r"Answer from Java side is empty|An error occurred while trying to connect",
        SourceError,
        "the cluster, or too many of its workers, are gone. See that it runs, and start again",
    ),
)
"""Patterns in Spark's messages, the error, and what to do. The first that fits counts."""
MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Errors of Spark in a block as errors of geodiv; `name` is what the cluster is called."""
    try:
        yield
    except kinds() as error:
        raise explanation(error, name) from None


def explanation(error: BaseException, name: str) -> GeodivError:
    """What an error of Spark means to the user.

    Examples
    --------
    >>> explanation(OSError("Connection refused"), "spark://h:7077")
    SourceError('spark://h:7077: the cluster, or too many of its workers, are gone. See that it runs, and start again.')
    """
    text = f"{_condition(error)} {error}"
    lacking = MISSING_MODULE.search(text)
    if lacking:
        return UsageError(
            f"{name}: the workers lack the package {lacking[1]!r}. Install on them what geodiv needs "
            "(numpy, scipy, pandas, pyarrow, shapely, pyproj, h3) in the versions of this machine."
        )
    for pattern, kind, advice in ADVICE:
        if re.search(pattern, text):
            return kind(f"{name}: {advice}.")
    return SourceError(f"{name}: the job failed ({_condition(error)}). Its log on the cluster says why.")


def _condition(error: BaseException) -> str:
    """The name of Spark's error condition, else that of the error's type."""
    condition = getattr(error, "getCondition", lambda: None)()
    return str(condition) if condition else type(error).__name__


def kinds() -> tuple[type[BaseException], ...]:
    """The types of the errors that Spark, its gateway or its client raise."""
    from pyspark.errors import PySparkException

    kinds: list[type[BaseException]] = [PySparkException, OSError]
    try:
        from py4j.protocol import Py4JError

        kinds.append(Py4JError)
    except ImportError:
        pass  # the client alone, which has no JVM
    try:
        from grpc import RpcError

        kinds.append(RpcError)
    except ImportError:
        pass  # classic Spark alone
    return tuple(kinds)

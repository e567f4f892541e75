"""Mutants of a Python file: the file with one small fault in it, at every place where it can have one.

Left alone: annotations, decorators, docstrings and other texts, and what stands in a ``raise``; a raise is deleted
whole. The order is that of the file.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
SWAPPED: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
RENAMED = {
    "min": "max",
    "minimum": "maximum",
    "any": "all",
    "argmin": "argmax",
    "zeros": "ones",
    "floor": "ceil",
    "cumsum": "cumprod",
}
RENAMED |= {after: before for before, after in RENAMED.items()}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One small fault: what is replaced, by what, and where.

    ``start`` and ``end`` are offsets into the file's bytes; ``lines`` are those of the statement around it, first and
    last. ``name`` tells it from every other of the file and stays the same when lines above it come and go.
    """

    name: str
    lines: tuple[int, int]
    start: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        """The file with the fault in it."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants(source: bytes) -> list[Mutant]:
    """Every mutant of a file, in the file's order."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    seen: Counter[str] = Counter()
    found = []
    for function, statement, node, text in _places(tree):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        name = f"{function}: {' '.join(source[start:end].decode().split())} -> {text}"
        seen[name] += 1
        if seen[name] > 1:
            name += f" #{seen[name]}"
        text = f"({text})" if isinstance(node, ast.expr) and not isinstance(node, ast.Constant) else text
        found.append(Mutant(name, _header(statement), start, end, text))
    return found


def _header(statement: ast.stmt) -> tuple[int, int]:
    """First and last line of a statement, without the block below it."""
    body = getattr(statement, "body", None)
    return statement.lineno, max(body[0].lineno - 1, statement.lineno) if body else statement.end_lineno


def _places(tree: ast.Module) -> Iterator[tuple[str, ast.stmt, ast.AST, str]]:
    yield from _block(tree.body, "module", set())


def _block(
    body: list[ast.stmt], function: str, bound: set[str]
) -> Iterator[tuple[str, ast.stmt, ast.AST, str]]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            name = statement.name if function == "module" else f"{function}.{statement.name}"
            if isinstance(statement, ast.FunctionDef):
                for default in (*statement.args.defaults, *filter(None, statement.args.kw_defaults)):
                    yield from _within(default, name, statement)
            arguments = {a.arg for a in ast.walk(statement) if isinstance(a, ast.arg)}
            yield from _block(statement.body, name, arguments)
            continue
        for text in _instead(statement, bound):
            yield function, statement, statement, text
        if isinstance(statement, ast.Raise | ast.Import | ast.ImportFrom):
            continue
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            continue
        yield from _negated(statement, function, statement)
        for field, value in ast.iter_fields(statement):
            if field in ("annotation", "body", "orelse", "finalbody", "handlers"):
                continue
            for node in value if isinstance(value, list) else [value]:
                if isinstance(node, ast.AST):
                    yield from _within(node, function, statement)
        bound |= {
            n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        for field in ("body", "orelse", "finalbody"):
            yield from _block(getattr(statement, field, []), function, bound)
        for handler in getattr(statement, "handlers", []):
            yield from _block(handler.body, function, bound)


def _instead(statement: ast.stmt, bound: set[str]) -> Iterator[str]:
    """What may stand in the place of a whole statement."""
    if isinstance(statement, ast.Return) and statement.value is not None:
        if not (isinstance(statement.value, ast.Constant) and statement.value.value is None):
            yield "return None"
    elif isinstance(statement, ast.AugAssign):
        yield "pass"
        if type(statement.op) in SWAPPED:
            swapped = ast.AugAssign(statement.target, SWAPPED[type(statement.op)](), statement.value)
            yield ast.unparse(swapped)
    elif isinstance(statement, ast.Raise | ast.Continue | ast.Break | ast.Delete):
        yield "pass"
    elif isinstance(statement, ast.Expr):
        if not isinstance(statement.value, ast.Constant | ast.Yield | ast.YieldFrom):
            yield "pass"
    elif isinstance(statement, ast.Assign):
        names = {
            n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        if names <= bound:  # set before as well, or an element or a field of something
            yield "pass"


def _within(
    node: ast.AST, function: str, statement: ast.stmt
) -> Iterator[tuple[str, ast.stmt, ast.AST, str]]:
    if isinstance(node, ast.JoinedStr):
        return
    for changed in _changed(node):
        yield function, statement, node, ast.unparse(changed)
    yield from _negated(node, function, statement)
    for field, value in ast.iter_fields(node):
        if field == "annotation":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _within(child, function, statement)


def _negated(
    node: ast.AST, function: str, statement: ast.stmt
) -> Iterator[tuple[str, ast.stmt, ast.AST, str]]:
    """The conditions of a statement or a comprehension turned round, where no other fault does that."""
    tests = node.ifs if isinstance(node, ast.comprehension) else [getattr(node, "test", None)]
    for test in tests:
        if test is not None and not isinstance(test, ast.Compare | ast.UnaryOp):
            yield function, statement, test, f"not ({ast.unparse(test)})"


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """An expression with one fault of its own."""
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            for other in COMPARED[type(operator)]:
                yield ast.Compare(node.left, [*node.ops[:i], other(), *node.ops[i + 1 :]], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
        yield ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(SWAPPED[type(node.op)](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in RENAMED:
            yield ast.Call(ast.Name(RENAMED[node.func.id]), node.args, node.keywords)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in RENAMED:
            yield ast.Call(ast.Attribute(node.func.value, RENAMED[node.func.attr]), node.args, node.keywords)

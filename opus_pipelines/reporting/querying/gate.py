"""Parses a question with DuckDB's own parser, and refuses what is not one SELECT over the views.

Every node of the parsed tree is held to a list of what is allowed. A node that is not listed is refused, so that new
syntax of a newer DuckDB is refused until somebody has looked at it.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import duckdb

from opus_pipelines.core.errors import InputError
from opus_pipelines.reporting.querying.functions import FUNCTIONS, TABLE_FUNCTIONS

MAX_CHARACTERS = 200_000
MAX_DEPTH = 200  # of brackets: DuckDB's parser takes its stack for each
# what holds no table of its own: queries, the parts of a query, and expressions
_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_TABLES = frozenset(
    {"BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "SHOW_REF", "PIVOT"}
)
_PARTS = frozenset(
    {"ORDER_MODIFIER", "DISTINCT_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"}
    | {"ORDER_DEFAULT", "ASCENDING", "DESCENDING"}
)
_EXPRESSIONS = frozenset(
    {"BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION", "LAMBDA"}
    | {"LAMBDA_REF", "OPERATOR", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW"}
)
_SHOWN = frozenset({'"tables"', "__show_tables_expanded"})  # SHOW TABLES, SHOW ALL TABLES and DESCRIBE alone
_CATALOG = frozenset({"columns", "tables"})  # of information_schema
_CTE_NAME = re.compile(r"[^\W\d][\w $-]*")  # a name that can be no file: it has no dot, slash or colon
_EXPLAIN = re.compile(r"(?:\s|--[^\n]*\n|/\*(?:(?!/\*|\*/).)*\*/)*explain\s+(analyze\s+)?", re.I | re.S)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LEXICAL = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*(?:'|\Z)|\"(?:[^\"]|\"\")*(?:\"|\Z)|[()\[\]{}]", re.S)


def check(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """Returns the SQL to run for a question. Raises InputError where it is not one SELECT over the connection's views.

    DESCRIBE, SUMMARIZE, SHOW TABLES and EXPLAIN of such a SELECT are allowed too.
    """
    _check_size(text)
    explained = _EXPLAIN.match(text)
    query = text[explained.end() :] if explained else text
    statements = _parsed(connection, query)
    if len(statements) != 1:
        raise InputError(f"a question is one SELECT statement; this text has {len(statements)}")
    views = {
        name.casefold()
        for (name,) in connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE NOT internal UNION ALL SELECT table_name FROM duckdb_tables()"
        ).fetchall()
    }
    tree = statements[0]["node"]
    tables = views | _ctes(tree)
    for node in _nodes(tree):
        _check_node(node, tables)
    return f"EXPLAIN {explained[1] or ''}{query}" if explained else query


def _check_size(text: str) -> None:
    """Refuses a text on which the parser would take too long or too much stack."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"the SQL has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")
    if _CONTROLS.search(text):
        raise InputError("the SQL has a control character; remove it")
    depth = 0
    for token in _LEXICAL.finditer(text):
        depth += (token[0] in "([{") - (token[0] in ")]}")
        if depth > MAX_DEPTH:
            raise InputError(f"the SQL has more than {MAX_DEPTH} brackets inside each other")


def _parsed(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    """Returns the parsed statements. Raises InputError for what is no SELECT, and for what cannot be parsed."""
    try:
        ((text,),) = connection.execute("SELECT json_serialize_sql($1)", [query]).fetchall()
        parsed = json.loads(text)
    except (duckdb.Error, ValueError, RecursionError) as error:
        raise InputError(f"the SQL cannot be read: {error}") from None
    if not parsed.get("error"):
        statements: list[dict[str, Any]] = parsed["statements"]
        return statements
    if parsed.get("error_type") == "not implemented":
        raise InputError(
            f"only SELECT is allowed{_kinds(query)}; WITH, FROM, DESCRIBE, SUMMARIZE, SHOW TABLES and EXPLAIN are too. "
            "To keep the rows, use --format and > FILE"
        )
    raise InputError(f"the query failed: Parser Error: {parsed.get('error_message')}")


def _kinds(query: str) -> str:
    kinds = {s.type.name for s in duckdb.extract_statements(query)} - {"SELECT"}
    return f", not {', '.join(sorted(kinds))}" if kinds else ""


def _nodes(tree: object) -> Iterator[Mapping[str, Any]]:
    """Yields every object of the parsed tree, without recursion."""
    left = [tree]
    while left:
        item = left.pop()
        if isinstance(item, Mapping):
            yield item
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)


def _ctes(tree: object) -> set[str]:
    """Returns the names that WITH gives, in lower case. Raises InputError for a name that could be a file."""
    names = {
        str(entry["key"]).casefold()
        for node in _nodes(tree)
        if isinstance(node.get("cte_map"), Mapping)
        for entry in node["cte_map"].get("map", ())
    }
    names |= {str(node["cte_name"]).casefold() for node in _nodes(tree) if node.get("cte_name")}
    for name in names:
        if not _CTE_NAME.fullmatch(name):
            raise InputError(f"{name!r} is no name for WITH: use letters, digits, spaces, hyphens and underscores")
    return names


def _check_node(node: Mapping[str, Any], tables: Collection[str]) -> None:
    kind, group = node.get("type"), node.get("class")
    if group is not None:
        if group not in _EXPRESSIONS:
            raise _refused(f"an expression of the kind {group}")
    elif isinstance(kind, str) and "location" not in node and kind not in _NODES | _TABLES | _PARTS:
        raise _refused(f"{kind.removesuffix('_QUERY_NODE').replace('_', ' ')}")
    if kind == "BASE_TABLE" and group is None:
        _check_table(node, tables)
    elif kind == "SHOW_REF":
        _check_shown(node, tables)
    elif kind == "TABLE_FUNCTION" and group is None:
        name = str(node["function"].get("function_name", "")).casefold()
        if name not in TABLE_FUNCTIONS:
            raise _refused(f"the table function {name}", f"there are {', '.join(sorted(TABLE_FUNCTIONS))}")
    elif "function_name" in node:
        name = str(node["function_name"]).casefold()
        if name not in FUNCTIONS | TABLE_FUNCTIONS or _path(node, name)[-1] != name:
            raise _refused(f"the function {name}", "only functions that compute from their arguments are")


def _check_table(node: Mapping[str, Any], tables: Collection[str]) -> None:
    path = _path(node, str(node["table_name"]))
    *schemas, name = path
    is_view = name in tables and schemas in ([], ["main"], ["memory", "main"], ["memory"])
    if not is_view and not (schemas == ["information_schema"] and name in _CATALOG):
        raise InputError(
            f"there is no view {'.'.join(path)!r}; `opus query` without arguments lists the views, and only those can "
            "be read: no files, no settings"
        )


def _check_shown(node: Mapping[str, Any], tables: Collection[str]) -> None:
    if node.get("query") is None and str(node["table_name"]).casefold() not in {*_SHOWN, *tables}:
        raise _refused(f"SHOW {node['table_name']}", "DESCRIBE, SUMMARIZE and SHOW TABLES are")


def _path(node: Mapping[str, Any], name: str) -> list[str]:
    """Returns the catalog, schema and name that a node states, in lower case, without empty parts."""
    stated = [node.get("catalog_name") or node.get("catalog"), node.get("schema_name") or node.get("schema"), name]
    parts = [str(part).casefold() for part in stated if part]
    path = [str(part).casefold() for part in (node.get("qualified_name") or {}).get("path", parts)]
    if path != parts:
        raise _refused(f"the name {'.'.join(path)!r}")
    return parts


def _refused(what: str, instead: str = "") -> InputError:
    return InputError(f"{what} is not allowed in a question" + (f"; {instead}" if instead else ""))

"""Questions in SQL: parsed first and held to one SELECT over the views, then run locked, limited and timed.

Every node of the tree that DuckDB's own parser gives is held to a list of what is allowed. A node or function that is
not listed is refused, so that new syntax of a newer DuckDB is refused until somebody has looked at it. Functions that
are left out read files, settings, the catalog or the environment, run SQL given as text, write a log, or wait.

The locked connection is the second defence and holds where the parser's gate would fail: only the files of the views
can be read, and time and memory are limited.
"""

import json
import os
import re
import resource
import select
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings_sections import Query

TABLE_FUNCTIONS = frozenset(["generate_series", "json_each", "json_tree", "range", "unnest"])

_AGGREGATES = """
    any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null
    arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax argmin array_agg avg bit_and bit_or
    bit_xor bitstring_agg bool_and bool_or corr count count_if count_star countif covar_pop covar_samp
    decimal_average entropy favg first fsum group_concat histogram histogram_exact kahan_sum kurtosis
    kurtosis_pop last list listagg lttb mad max max_by mean median min min_by mode product quantile
    quantile_cont quantile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
    regr_sxy regr_syy reservoir_quantile sem skewness stddev stddev_pop stddev_samp string_agg sum
    sum_no_overflow sumkahan var_pop var_samp variance
"""
_WINDOW = """
    cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank row_number
"""
_SCALARS = """
    abs acos acosh add age aggregate ago alias apply array_aggr array_aggregate array_append array_apply
    array_cat array_concat array_contains array_cosine_distance array_cosine_similarity array_cross_product
    array_distance array_distinct array_dot_product array_extract array_filter array_grade_up array_has
    array_has_all array_has_any array_indexof array_inner_product array_intersect array_length
    array_negative_dot_product array_negative_inner_product array_pop_back array_pop_front array_position
    array_prepend array_push_back array_push_front array_reduce array_resize array_reverse array_reverse_sort
    array_select array_slice array_sort array_to_json array_to_string array_transform array_unique array_value
    array_where array_zip ascii asin asinh atan atan2 atanh bar base64 bin bit_count bit_length bit_position
    bitstring cardinality cbrt ceil ceiling century char_length character_length chr concat concat_ws contains
    cos cosh cot current_date current_localtime current_localtimestamp damerau_levenshtein date_add date_diff
    date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear
    days_in_month decade decimal_division decode degrees divide editdist3 element_at encode ends_with enum_code
    enum_first enum_last enum_range enum_range_boundary epoch epoch_ms epoch_ns epoch_us equi_width_bins era
    even exp factorial fdiv filter flatten floor fmod format formatReadableDecimalSize formatReadableSize
    format_bytes from_base64 from_binary from_hex from_json from_json_strict gamma gcd gen_random_uuid
    generate_series geomean geometric_mean get_bit get_current_time get_current_timestamp getvariable grade_up
    greatest greatest_common_divisor hamming hash hex hour if ilike_escape instr isfinite isinf isnan isodow
    isoyear jaccard jaro_similarity jaro_winkler_similarity json json_array json_array_length json_contains
    json_deep_merge json_exists json_extract json_extract_path json_extract_path_text json_extract_string
    json_group_array json_group_object json_group_structure json_insert json_keys json_merge_patch
    json_merge_patch_diff json_normalize json_object json_pretty json_quote json_remove json_replace json_set
    json_strip_nulls json_structure json_transform json_transform_strict json_type json_valid json_value julian
    last_day lcase lcm least least_common_multiple left left_grapheme len length length_grapheme levenshtein
    lgamma like_escape list_aggr list_aggregate list_any_value list_append list_apply list_approx_count_distinct
    list_avg list_bit_and list_bit_or list_bit_xor list_bool_and list_bool_or list_cat list_concat list_contains
    list_cosine_distance list_cosine_similarity list_count list_distance list_distinct list_dot_product
    list_element list_entropy list_extract list_filter list_first list_grade_up list_has list_has_all
    list_has_any list_histogram list_indexof list_inner_product list_intersect list_kurtosis list_kurtosis_pop
    list_last list_mad list_max list_median list_min list_mode list_negative_dot_product
    list_negative_inner_product list_pack list_position list_prepend list_product list_reduce list_resize
    list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort list_stddev_pop
    list_stddev_samp list_string_agg list_sum list_transform list_unique list_value list_var_pop list_var_samp
    list_where list_zip ln log log10 log2 lower lpad ltrim make_date make_time make_timestamp make_timestamp_ms
    make_timestamp_ns make_timestamptz map map_concat map_contains map_contains_entry map_contains_value
    map_entries map_extract map_extract_value map_from_entries map_keys map_values md5 md5_number
    md5_number_lower md5_number_upper microsecond millennium millisecond minute mismatches mod month monthname
    multiply nanosecond nextafter nfc_normalize not_ilike_escape not_like_escape now nullif octet_length ord
    overlay parse_dirname parse_dirpath parse_filename parse_formatted_bytes parse_path path_join pi position
    pow power prefix printf quarter radians random range reduce regexp_escape regexp_extract regexp_extract_all
    regexp_full_match regexp_matches regexp_replace regexp_split_to_array repeat replace reverse right
    right_grapheme round round_even roundbankers row row_to_json rpad rtrim second set_bit sha1 sha256 sign
    signbit sin sinh split split_part sqrt starts_with str_split str_split_regex strftime string_split
    string_split_regex string_to_array strip_accents strlen strpos strptime struct_concat struct_contains
    struct_extract struct_extract_at struct_has struct_indexof struct_insert struct_keys struct_pack
    struct_position struct_update struct_values substr substring substring_grapheme subtract suffix switch tan
    tanh time_bucket timezone timezone_hour timezone_minute to_base to_base64 to_binary to_centuries to_days
    to_decades to_hex to_hours to_json to_microseconds to_millennia to_milliseconds to_minutes to_months
    to_quarters to_seconds to_timestamp to_weeks to_years today translate trim trunc try_strptime typeof ucase
    unbin unhex unicode union_extract union_tag union_value unpivot_list upper url_decode url_encode uuid
    uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7 version wavg week weekday weekofyear weighted_avg
    xor year yearweek
"""
_OPERATORS = """
    != !__postfix !~~ !~~* % & && * ** + - ->> / // < <-> << <= <=> <@ = > >= >> @ @> ^ ^@ | || ~ ~~ ~~* ~~~
"""
FUNCTIONS = frozenset((_AGGREGATES + _WINDOW + _SCALARS + _OPERATORS).casefold().split())


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


MIB = 1 << 20
BESIDE_MB = 512  # for the rows that are written out, beside what DuckDB takes
_CTRL_C, _ENDED = bytes([signal.SIGINT]), b"\0"
HARD_STOP = 15.0  # seconds after the time limit; some functions of DuckDB do not look whether they are interrupted


def lock(connection: duckdb.DuckDBPyConnection, limits: Query, spill: Path | None = None) -> None:
    """Takes everything from the connection but reading the files of its views. It cannot be undone.

    `spill`: the folder for what does not fit into memory; without it, that fails. A connection that is locked already
    stays as it is.
    """
    if connection.execute("SELECT current_setting('lock_configuration')").fetchall() == [(True,)]:
        return
    ((readable,),) = connection.execute(
        "SELECT list_distinct(flatten(map_values(coalesce(getvariable('files'), MAP {})))"
        " || (SELECT coalesce(list(file), []) FROM glob(coalesce(getvariable('empty'), '-') || '/**/*.parquet')))"
    ).fetchall()
    for name, value in {
        "memory_limit": f"{limits.memory_mb}MiB",
        "temp_directory": str(spill or ""),
        "max_temp_directory_size": f"{limits.spill_mb}MiB",
        "python_enable_replacements": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allowed_paths": readable,
        "enable_external_access": False,
        "lock_configuration": True,
    }.items():
        connection.execute(f"SET {name} = $1", [value])


@contextmanager
def timed(
    connection: duckdb.DuckDBPyConnection,
    limits: Query,
    stop: Callable[[str], None] | None = None,
    hard_stop: float = HARD_STOP,
) -> Iterator[Path]:
    """Interrupts the connection when the time is over, or on Ctrl-C, which DuckDB does not look for while it works.

    Yields a folder for `lock`, which is removed at the end.

    `stop` ends the process where an interrupt has no effect for `hard_stop` seconds. Raises InputError for every
    failure of DuckDB, in words for a person.
    """
    over, pressed, done = threading.Event(), threading.Event(), threading.Event()
    said = f"the query took more than {limits.seconds:g} s (query.seconds) and was stopped"

    def watch() -> None:
        if signals.wait(limits.seconds):
            pressed.set()
        elif not done.is_set():
            over.set()
        if done.is_set():
            return
        end = time.monotonic() + hard_stop
        while time.monotonic() < end:
            connection.interrupt()
            if done.wait(min(1.0, hard_stop)):
                return
        (stop or _end_process)(said if over.is_set() else "stopped")

    signals = _CtrlC()
    watcher = threading.Thread(target=watch, name="query-timer", daemon=True)
    watcher.start()
    try:
        with tempfile.TemporaryDirectory(prefix="opus-query-") as folder, _bounded(limits.memory_mb):
            yield Path(folder)
    except (duckdb.InterruptException, RuntimeError) as error:
        if over.is_set():
            raise InputError(said) from None
        if isinstance(error, duckdb.Error) or pressed.is_set():
            raise KeyboardInterrupt from None
        raise
    except (duckdb.OutOfMemoryException, MemoryError):
        raise InputError(
            f"the query needs more than the {limits.memory_mb} MB of memory or {limits.spill_mb} MB of disk that it "
            "may take (query.memory_mb, query.spill_mb); ask for fewer rows or columns"
        ) from None
    except duckdb.Error as error:
        raise InputError(f"the query failed: {error}") from None
    finally:
        done.set()
        signals.end()
        watcher.join()
        signals.close()


class _CtrlC:
    """Lets another thread wait for Ctrl-C: Python itself tells only the main thread, once that is back from DuckDB."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._is_main = threading.current_thread() is threading.main_thread()
        self._before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False) if self._is_main else -1

    def wait(self, seconds: float) -> bool:
        """Returns True on Ctrl-C; False when the time is over, or after `end`."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([self._reader], [], [], left)
            told = self._reader.recv(1) if ready else _ENDED
            if told in (_ENDED, _CTRL_C):
                return told == _CTRL_C
        return False

    def end(self) -> None:
        """Ends the waiting, and gives signals back to whoever had them."""
        if self._is_main:
            signal.set_wakeup_fd(self._before)
        self._writer.send(_ENDED)

    def close(self) -> None:
        """Closes what it waits on; nobody may wait any more."""
        self._reader.close()
        self._writer.close()


@contextmanager
def _bounded(memory_mb: int) -> Iterator[None]:
    """Limits the data of this process: DuckDB's own limit does not count what functions on texts and lists take.

    Where the system does not tell the size of the process, DuckDB's limit is the only one.
    """
    status = Path("/proc/self/status")
    if not status.is_file():
        yield
        return
    now = next(int(line.split()[1]) << 10 for line in status.read_text("ascii").splitlines() if "VmData:" in line)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = [now + (memory_mb + BESIDE_MB) * MIB, *(old for old in (soft, hard) if old != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _end_process(said: str) -> None:
    sys.stderr.write(f"opus: {said}\n")
    sys.stderr.flush()
    os._exit(1)

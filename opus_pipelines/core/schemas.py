"""The Arrow schema of every dataset and the meaning of each column, in one place.

`opus_pipelines.core.tables` declares the tables of each stage. The Parquet files, the blocking schema checks, Dagster's
`column_schema` and the data dictionary (docs/reference/datasets.md) are all derived from them. NULL means unknown,
never 0, never "".
"""

from opus_pipelines.core.tables.decisions import DECISIONS
from opus_pipelines.core.tables.declaration import DATASETS, DIMENSION, Column, Dataset
from opus_pipelines.core.tables.evaluations import (
    EVALUATION_FLOWS,
    EVALUATION_ITEMS,
    PROGRAM_CURVES,
    PROGRAM_RUNS,
    PROGRAM_SEARCHES,
    PROGRAM_STEPS,
)
from opus_pipelines.core.tables.flows import (
    EVALUATION_UTTERANCES,
    FLOW_CATALOGUE,
    FLOW_DATASETS,
    FLOW_SCORES,
    FLOWS,
)
from opus_pipelines.core.tables.forecasts import FORECAST_CASES, FORECAST_STEPS
from opus_pipelines.core.tables.generation import (
    INTAKES,
    INTENTIONS,
    NEIGHBOURS,
    RUNS,
    SEQUENCES,
    SUBGRAPH_EDGES,
    SUBGRAPH_TASKS,
    WFG_EDGES,
    WFG_NODES,
)
from opus_pipelines.core.tables.history import IMPLEMENTATIONS, REJECTS, SOURCES, TASK_IMPLEMENTATION
from opus_pipelines.core.tables.wkg import (
    ALIASES,
    CASES,
    CONTEXTS,
    EDGES,
    EMBEDDINGS,
    IMPLEMENTATION_VECTORS,
    NEEDS,
    PROCEDURE_VECTORS,
    PROCEDURES,
    TASK_IMPLEMENTATIONS,
    TASKS,
    VARIANTS,
    WAITS,
    WKG_CHANGES,
)
from opus_pipelines.core.tables.workflows import (
    COST_REPORT,
    EXPECTED_FLOW,
    OPTIMIZED,
    REWARD_REPORT,
    WORKFLOW_CHANGES,
    WORKFLOW_EDGES,
    WORKFLOW_TASKS,
)

__all__ = [
    "ALIASES",
    "CASES",
    "CONTEXTS",
    "COST_REPORT",
    "DATASETS",
    "DECISIONS",
    "DIMENSION",
    "EDGES",
    "EMBEDDINGS",
    "EVALUATION_FLOWS",
    "EVALUATION_ITEMS",
    "EVALUATION_UTTERANCES",
    "EXPECTED_FLOW",
    "FLOWS",
    "FLOW_CATALOGUE",
    "FLOW_DATASETS",
    "FLOW_SCORES",
    "FORECAST_CASES",
    "FORECAST_STEPS",
    "IMPLEMENTATIONS",
    "IMPLEMENTATION_VECTORS",
    "INTAKES",
    "INTENTIONS",
    "NEEDS",
    "NEIGHBOURS",
    "OPTIMIZED",
    "PROCEDURES",
    "PROCEDURE_VECTORS",
    "PROGRAM_CURVES",
    "PROGRAM_RUNS",
    "PROGRAM_SEARCHES",
    "PROGRAM_STEPS",
    "REJECTS",
    "REWARD_REPORT",
    "RUNS",
    "SEQUENCES",
    "SOURCES",
    "SUBGRAPH_EDGES",
    "SUBGRAPH_TASKS",
    "TASKS",
    "TASK_IMPLEMENTATION",
    "TASK_IMPLEMENTATIONS",
    "VARIANTS",
    "WAITS",
    "WFG_EDGES",
    "WFG_NODES",
    "WKG_CHANGES",
    "WORKFLOW_CHANGES",
    "WORKFLOW_EDGES",
    "WORKFLOW_TASKS",
    "Column",
    "Dataset",
]

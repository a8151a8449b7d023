"""The Arrow schema of every dataset and the meaning of each column, in one place.

`opus_pipelines.core.tables` declares the tables of each stage. The Parquet files, the blocking schema checks, Dagster's
`column_schema` and the data dictionary (docs/reference/datasets.md) are all derived from them. NULL means unknown,
never 0, never "".
"""

from opus_pipelines.core.tables.declaration import (
    DATASETS as DATASETS,
    DIMENSION as DIMENSION,
    Column as Column,
    Dataset as Dataset,
)
from opus_pipelines.core.tables.evaluations import (
    EVALUATION_FLOWS as EVALUATION_FLOWS,
    EVALUATION_ITEMS as EVALUATION_ITEMS,
    EVALUATION_UTTERANCES as EVALUATION_UTTERANCES,
    FLOW_CATALOGUE as FLOW_CATALOGUE,
    FLOW_DATASETS as FLOW_DATASETS,
    FLOW_SCORES as FLOW_SCORES,
    FLOWS as FLOWS,
    PROGRAM_CURVES as PROGRAM_CURVES,
    PROGRAM_RUNS as PROGRAM_RUNS,
    PROGRAM_SEARCHES as PROGRAM_SEARCHES,
    PROGRAM_STEPS as PROGRAM_STEPS,
)
from opus_pipelines.core.tables.generation import (
    INTAKES as INTAKES,
    INTENTIONS as INTENTIONS,
    NEIGHBOURS as NEIGHBOURS,
    RUNS as RUNS,
    SEQUENCES as SEQUENCES,
    SUBGRAPH_EDGES as SUBGRAPH_EDGES,
    SUBGRAPH_TASKS as SUBGRAPH_TASKS,
    WFG_EDGES as WFG_EDGES,
    WFG_NODES as WFG_NODES,
)
from opus_pipelines.core.tables.history import (
    FORECAST_CASES as FORECAST_CASES,
    FORECAST_LIMITS as FORECAST_LIMITS,
    FORECAST_STEPS as FORECAST_STEPS,
    IMPLEMENTATIONS as IMPLEMENTATIONS,
    REJECTS as REJECTS,
    SOURCES as SOURCES,
    TASK_IMPLEMENTATION as TASK_IMPLEMENTATION,
)
from opus_pipelines.core.tables.wkg import (
    ALIASES as ALIASES,
    CASES as CASES,
    CONTEXTS as CONTEXTS,
    EDGES as EDGES,
    EMBEDDINGS as EMBEDDINGS,
    IMPLEMENTATION_VECTORS as IMPLEMENTATION_VECTORS,
    NEEDS as NEEDS,
    PROCEDURE_VECTORS as PROCEDURE_VECTORS,
    PROCEDURES as PROCEDURES,
    TASK_IMPLEMENTATIONS as TASK_IMPLEMENTATIONS,
    TASKS as TASKS,
    VARIANTS as VARIANTS,
    WAITS as WAITS,
    WKG_CHANGES as WKG_CHANGES,
)
from opus_pipelines.core.tables.workflows import (
    COST_REPORT as COST_REPORT,
    DECISIONS as DECISIONS,
    EXPECTED_FLOW as EXPECTED_FLOW,
    OPS_RUNS as OPS_RUNS,
    OPTIMIZED as OPTIMIZED,
    REWARD_REPORT as REWARD_REPORT,
    WORKFLOW_CHANGES as WORKFLOW_CHANGES,
    WORKFLOW_EDGES as WORKFLOW_EDGES,
    WORKFLOW_TASKS as WORKFLOW_TASKS,
)

# What is written while the intakes of a contract are worked on; its other tables are made from these.
RESULT_TABLES: tuple[Dataset, ...] = (
    INTAKES,
    INTENTIONS,
    NEIGHBOURS,
    SUBGRAPH_TASKS,
    SUBGRAPH_EDGES,
    SEQUENCES,
    WFG_NODES,
    WFG_EDGES,
    OPTIMIZED,
    WORKFLOW_TASKS,
    WORKFLOW_EDGES,
    EXPECTED_FLOW,
)

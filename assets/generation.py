"""Stage three: a contract's intakes become ranked workflows and reports, each contract checked and published by itself.

One step makes all of a contract's datasets: what is finished is visible at once, and a contract that fails costs only itself.
"""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg

from assets.checks import RESULT_CHECKS, reported
from assets.specs import key, made, spec
from jobs.partitions import CONTRACTS
from opus_pipelines.errors import CheckFailed, OpusError
from opus_pipelines.generation.checks import check_result
from opus_pipelines.generation.contract import ContractResult, generate_contract, publish_contract, result_id
from opus_pipelines.generation.discover import ContractFolder, discover
from opus_pipelines.generation.knowledge import Knowledge
from opus_pipelines.wkg.checks import CheckResult
from opus_pipelines.wkg.snapshot import Snapshot
from resources.encoder import EncoderResource
from resources.lake import LakeRun

logger = logging.getLogger("opus_pipelines.generate")
LINEAGE = {
    "generation/intakes": ["wkg/snapshot"],
    "generation/intentions": ["generation/intakes", "wkg/index"],
    "generation/neighbours": ["generation/intentions", "wkg/implementation_vectors"],
    "generation/subgraph_tasks": ["generation/intentions", "wkg/tasks"],
    "generation/subgraph_edges": ["generation/subgraph_tasks", "wkg/edges"],
    "generation/sequences": ["generation/subgraph_tasks", "generation/subgraph_edges", "generation/neighbours", "wkg/cases"],
    "generation/wfg_nodes": ["generation/sequences"],
    "generation/wfg_edges": ["generation/sequences", "wkg/edges"],
    "generation/runs": ["wkg/snapshot"],
    "workflows/optimized": ["generation/wfg_nodes", "generation/wfg_edges", "wkg/task_implementations", "wkg/needs"],
    "workflows/tasks": ["workflows/optimized"],
    "workflows/edges": ["workflows/optimized"],
    "reports/cost": ["workflows/optimized", "workflows/tasks"],
    "reports/reward": ["workflows/optimized"],
}
"""
"""

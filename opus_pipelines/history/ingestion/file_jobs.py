"""The job that reads one file of history in another process, on this machine or on an executor of Spark's."""

from dataclasses import dataclass
from pathlib import Path

from opus_pipelines.core.workers.jobs import Report
from opus_pipelines.history.ingestion.plan import FilePlan
from opus_pipelines.history.ingestion.read_file import FileResult, SourceFile, read_file
from opus_pipelines.history.records.assembler import OtherFiles
from opus_pipelines.history.records.forgotten_clients import Forgotten

SENT_BYTES = 1 << 16  # rows of a file that are sent with the answer, not left in a file
_UNPACKED = 15  # estimated ratio of the unpacked size of a log to its compressed size


@dataclass
class FileReadJob:
    """One file to read as if it were the first of its source. Its rows are written to `folder`."""

    file: SourceFile
    forgotten: Forgotten
    folder: Path

    def run(self, _state: None, report: Report) -> "FileRead":
        """Reads the file in a worker process."""
        other_files = OtherFiles(forgotten=self.forgotten)
        result = read_file(self.file, other_files, self.folder, report)
        for spool in (result.implementations, result.rejects):
            if spool is not None:
                spool.finish(to_disk=spool.bytes > SENT_BYTES)
        result.asked -= result.case_ids
        return FileRead(result, other_files.names, other_files.left_out)

    def __repr__(self) -> str:
        return repr(self.file)


@dataclass
class FileRead:
    """The result of a job, and the state that the reading of later files of the source depends on."""

    result: FileResult
    names: dict[str, str]
    left_out: set[str]


def unpacked_bytes(file: FilePlan) -> int:
    """Returns about how many bytes there are to read: 15 times the size of a compressed file, 0 of a refused one."""
    return 0 if file.refused is not None else file.bytes * (_UNPACKED if file.path.lower().endswith(".gz") else 1)

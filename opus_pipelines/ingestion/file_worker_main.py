"""The main module of a file worker: `python -m opus_pipelines.ingestion.file_worker_main FD`.

The process ends when the process that started it ends.
"""

import signal
import sys
from multiprocessing.connection import Connection

from opus_pipelines.event_logs.assembler import OtherFiles
from opus_pipelines.ingestion.file_workers import Answer, Job
from opus_pipelines.ingestion.read_file import read_file


def main() -> None:
    """Reads the files that arrive through the connection, one after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run that started it ends it
    connection = Connection(int(sys.argv[1]))
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        other_files = OtherFiles(forgotten=job.forgotten)
        result = read_file(job.source, job.settings, job.file, other_files, job.folder, connection.send)
        for spool in (result.implementations, result.rejects):
            if spool is not None:
                spool.finish(to_disk=True)
        result.asked -= result.case_ids
        connection.send(Answer(result, other_files.names, other_files.left_out))


if __name__ == "__main__":
    main()

"""A process that reads files for another: `python -m opus_pipelines.ingestion.file_worker_main FD`. It ends when that
one does.
"""

import signal
import sys
from multiprocessing.connection import Connection

from opus_pipelines.event_logs.assembler import Seen
from opus_pipelines.ingestion.file_workers import Answer, Job
from opus_pipelines.ingestion.read_file import read_file


def main() -> None:
    """Read what comes through the connection, one file after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run that started it ends it
    connection = Connection(int(sys.argv[1]))
    while True:
        try:
            job: Job = connection.recv()
        except EOFError:
            return
        seen = Seen(forgotten=job.forgotten)
        result = read_file(job.source, job.settings, job.file, seen, job.folder, connection.send)
        for spool in (result.implementations, result.rejects):
            if spool is not None:
                spool.settle(to_disk=True)
        result.asked -= result.case_ids
        connection.send(Answer(result, seen.names, seen.left_out))


if __name__ == "__main__":
    main()

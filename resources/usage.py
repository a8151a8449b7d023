"""What a run used, told by tags of the run: processor time and memory of its process and of the processes below it."""

import dagster as dg
import psutil

CPU, MEMORY = "opus/cpu_ms", "opus/peak_memory_mb"


def cpu_ms() -> float:
    """Returns the processor time of this process and all below it so far, ended ones included."""
    total = 0.0
    for process in _processes():
        try:
            used = process.cpu_times()
        except psutil.Error:
            continue  # it ended meanwhile
        total += used.user + used.system + used.children_user + used.children_system
    return total * 1000


def peak_memory_mb() -> float:
    """Returns the sum of the most memory that this process and each living one below it have held."""
    total = 0.0
    for process in _processes():
        try:
            total += _peak_kb(process) / 1024
        except (psutil.Error, OSError):
            continue
    return total


def tell(instance: dg.DagsterInstance, run_id: str, cpu_before: float) -> None:
    """Adds what this process used to the tags of the run. The processes of one run add up their time."""
    run = instance.get_run_by_id(run_id)
    if run is not None:
        used = float(run.tags.get(CPU, 0)) + cpu_ms() - cpu_before
        most = max(float(run.tags.get(MEMORY, 0)), peak_memory_mb())
        instance.add_run_tags(run_id, {CPU: f"{used:.0f}", MEMORY: f"{most:.1f}"})


def _processes() -> list[psutil.Process]:
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def _peak_kb(process: psutil.Process) -> float:
    """Returns the high-water mark of the resident memory; where the system has none, the memory now."""
    try:
        with open(f"/proc/{process.pid}/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123
            return next((float(line.split()[1]) for line in file if line.startswith("VmHWM:")), 0.0)
    except FileNotFoundError:
        return float(process.memory_info().rss) / 1024

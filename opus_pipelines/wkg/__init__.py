"""The Work Knowledge Graph: tasks resolved, statistics mined source by source, summed, embedded, checked and published."""

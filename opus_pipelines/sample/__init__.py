"""The sample: a business process outsourcer's history and intakes, drawn from a generative model whose truth is
written beside them.
"""

from opus_pipelines.sample.write import SampleSummary, write_sample

__all__ = ["SampleSummary", "write_sample"]

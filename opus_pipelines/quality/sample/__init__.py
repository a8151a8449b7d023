"""The sample: a business process outsourcer's history and intakes, drawn from a generative model whose truth is known.

In: a folder and a seed. Out: history and intake folders, and `truth.json`. Door:
`write.write_sample`.
"""

from opus_pipelines.quality.sample.write import SampleSummary, write_sample

__all__ = ["SampleSummary", "write_sample"]

"""Exact minimisers and projections, arrays in and arrays out; they know no learner and no budget."""

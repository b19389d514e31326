"""A. Gonen et al. Subspace Learning with Partial Information. JMLR 17, 2016: POPCA and MBEG."""

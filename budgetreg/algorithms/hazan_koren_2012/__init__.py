"""E. Hazan, T. Koren. Linear Regression with Limited Observation. ICML 2012: AERR, AELR and AESVR."""

"""One HTML file about runs, sweeps, advice, studies and reproduced figures: what was found, paid and computed."""

"""Run plans in processes, resumably, with progress; write and read the files of a run's folder."""

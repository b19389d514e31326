"""The commands there are: name -> (module of `budgetreg.cli`, what it does)."""

COMMANDS = {
    "run": (
        "run",
        "run one learner, a sweep (-m) or a recipe (experiment=...); resumes what was interrupted",
    ),
    "advise": ("advise", "tell which learner and which k make most of a total of attributes (total=T)"),
    "reproduce": ("reproduce", "the figures of the papers, each claim judged; resumes what was interrupted"),
    "plot": ("plot", "merge the curves of one or several folders into a figure"),
    "compare": ("compare", "tell how many attributes runs need to reach an error, and what that saves"),
    "status": ("status", "tell how far the runs in a folder are"),
    "list": ("listing", "list learners, data sets and recipes"),
    "fetch": ("fetch", "obtain a data set that is not bundled"),
    "check": ("check", "check learners: unbiased, within the budget, reproducible, ... (algo=NAME,NAME)"),
    "predict": ("predict", "apply what a run has learned to another table"),
    "verify": ("verify", "compute finished repetitions again, and compare bytes"),
    "reprice": ("reprice", "draw finished runs by another price list, computing nothing again (DIR costs=FILE)"),
    "gc": ("gc", "remove runs, cached arrays and temporary files that nothing refers to; asks first"),
}

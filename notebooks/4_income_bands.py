# %% [markdown]
# # Income bands: an order, or none
#
# Total variation takes band 1 against band 2 as it takes band 1 against band 5. The ordered distance does not. Which of
# them is meant is declared, never guessed.

# %%
from pathlib import Path

import numpy as np
import pandas as pd

import geodiv as gd

fixtures = Path("../fixtures") if Path("../fixtures").exists() else Path("fixtures")
bands = ["<20k", "20-35k", "35-50k", "50-80k", ">=80k"]

# %% [markdown]
# Nine bands. Half of the release is in the first band and half in the last, or half in the first and half in the second;
# a cell has everybody in the first. Total variation sees no difference.

# %%
cell = np.eye(9)[0]
far, near = (np.eye(9)[0] + np.eye(9)[8]) / 2, (np.eye(9)[0] + np.eye(9)[1]) / 2
print("ordered:", gd.closeness(cell, far, ordered=True), gd.closeness(cell, near, ordered=True))
print("unordered:", gd.closeness(cell, far, ordered=False), gd.closeness(cell, near, ordered=False))
assert gd.closeness(cell, far, ordered=True) == 0.5
assert gd.closeness(cell, near, ordered=True) == 0.0625

# %% [markdown]
# ## The same cells, both ways

# %%
visits = str(fixtures / "visits.parquet")
verdicts = {}
for name, income in {
    "ordered": gd.Ordinal("income_band", order=bands),
    "unordered": gd.Nominal("income_band"),
}.items():
    table = gd.tabulate(
        visits, grid=gd.H3Grid(8), person="person_id", attributes=[income], on_bad_rows="skip"
    )
    scores = gd.score(table, gd.Policy(k_min=10, t_max=0.2))
    verdicts[name] = scores[scores["persons"] >= 10].set_index("cell_id")["distance"]
flips = (verdicts["ordered"] <= 0.2) != (verdicts["unordered"] <= 0.2)
print(f"t_max = 0.2: {flips.mean():.0%} of the cells get another verdict")
assert flips.any()

# %% [markdown]
# The cells where the two differ most: what one band has too many of, a band nearby has too few of, and an order forgives
# that. The ordered distance is never the larger one here.

# %%
both = pd.DataFrame(verdicts).sort_index()
assert (both["ordered"] <= both["unordered"] + 1e-9).all()
apart = (both["unordered"] - both["ordered"]).sort_values(ascending=False, kind="stable")
both.loc[apart.index[:4]].round(2)

# %% [markdown]
# ## An ordered t does not bound the shift
#
# A hundred people moved to the next of nine bands cost 0.125, and the belief in that band moves by 100 points. So set
# `shift_max` as well.

# %%
moved = gd.closeness(np.eye(9)[3] * 100, np.eye(9)[4] * 100, ordered=True)
shift = gd.posterior_shift(np.eye(9)[3] * 100, np.eye(9)[4] * 100)["max_shift"]
print(moved, shift)
assert (moved, shift) == (0.125, 1.0)

# %% [markdown]
# # Choosing the cell size and the thresholds
#
# Small cells say more and hold fewer people. Coarser cells raise k every time, and diversity not every time.

# %%
from pathlib import Path

import geodiv as gd
from geodiv import audits

fixtures = Path("../fixtures") if Path("../fixtures").exists() else Path("fixtures")
visits = str(fixtures / "visits.parquet")
activity = gd.Nominal(
    "poi_category", taxonomy=gd.Taxonomy.read(fixtures / "poi_taxonomy.csv"), missing=["", "Unknown"]
)
policy = gd.Policy(
    k_min=10, l_min=3, t_max=0.3, shift_max=0.3, reference=gd.Ring(max_order=3, min_persons=30)
)

# %% [markdown]
# ## Sizes
#
# `kept` is the share of persons in cells with at least k of them; the last columns are after remedies.

# %%
sizes = audits.sweep_sizes(
    visits,
    [7, 8, 9],
    grid=gd.H3Grid(8),
    person="person_id",
    attributes=[activity],
    policy=policy,
    on_bad_rows="skip",
)
print(
    sizes[
        ["size", "cells", "eligible", "kept", "pass_l", "pass_t", "effective", "noise_floor", "coverage"]
    ].round(2)
)
by_size = sizes.set_index("size")
assert by_size.loc[7, "kept"] >= by_size.loc[8, "kept"] >= by_size.loc[9, "kept"]

# %% [markdown]
# ## The noise floor
#
# A zone whose people were drawn from the reference itself is at this distance by chance. It rises as cells hold fewer
# people: with resolution 9 much of what t would fail is noise.

# %%
assert by_size.loc[9, "noise_floor"] > by_size.loc[7, "noise_floor"]

# %% [markdown]
# ## Risk against utility
#
# The table from which a reviewer picks: what l and t cost at one size.

# %%
table = gd.tabulate(visits, grid=gd.H3Grid(8), person="person_id", attributes=[activity], on_bad_rows="skip")
choices = audits.sweep_thresholds(table, policy, l_min=[2, 3, 4], t_max=[0.2, 0.3, 0.4])
print(choices.round(2).to_string(index=False))

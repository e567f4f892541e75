# %% [markdown]
# # Choosing the cell size and the thresholds
#
# Small cells say more and hold fewer people. Coarser cells raise k every time, and diversity not every time.

# %%
from pathlib import Path

import h3

import geodiv as gd
from geodiv import audits, plots

fixtures = Path("../fixtures") if Path("../fixtures").exists() else Path("fixtures")
visits = str(fixtures / "visits.parquet")
activity = gd.Nominal(
    "poi_category", taxonomy=gd.Taxonomy.read(fixtures / "poi_taxonomy.csv"), missing=["", "Unknown"]
)
policy = gd.Policy(
    k_min=10,
    l_min=3,
    t_max=0.3,
    shift_max=0.3,
    incidence_max=0.8,
    reference=gd.Ring(max_order=3, min_persons=30),
    max_members=2,
)

# %% [markdown]
# ## Sizes
#
# `kept` is the share of persons in cells with at least k of them, before remedies; `coverage` is what is published in the
# end. Two cells are joined at most: with seven, remedies would make of small cells what larger ones are.

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
figures = ["size", "cells", "eligible", "kept", "pass_l", "pass_t", "effective", "noise_floor", "coverage"]
print(sizes[figures].round(2).to_string(index=False))
by_size = sizes.set_index("size")
assert by_size.loc[7, "kept"] >= by_size.loc[8, "kept"] >= by_size.loc[9, "kept"]
assert by_size.loc[8, "coverage"] > by_size.loc[9, "coverage"]

# %%
plots.size_plot(sizes)

# %% [markdown]
# Where one activity fills a district, a larger cell holds more people and no more activities. The cell over the hospital
# campus, at two sizes:

# %%
campus = h3.cell_to_latlng("8819635287fffff")
held = {}
for size in (9, 8):
    found = gd.score(
        gd.tabulate(
            visits, grid=gd.H3Grid(size), person="person_id", attributes=[activity], on_bad_rows="skip"
        ),
        policy,
    ).set_index("cell_id")
    held[size] = found.loc[h3.latlng_to_cell(*campus, size), ["persons", "effective_fine"]]
    print(size, held[size].to_dict())
assert held[8]["persons"] > held[9]["persons"]
assert held[8]["effective_fine"] == held[9]["effective_fine"] == 1

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
# The table from which a reviewer picks: what l and t cost at one size, here the small cells of resolution 9. Most of them
# are too few people for a strict t.

# %%
table = gd.tabulate(visits, grid=gd.H3Grid(9), person="person_id", attributes=[activity], on_bad_rows="skip")
choices = audits.sweep_thresholds(table, policy, l_min=[3, 5], t_max=[0.2, 0.3, 0.4])
print(choices.round(2).to_string(index=False))
covered = choices.pivot(index="l_min", columns="t_max", values="coverage")
assert (covered[0.4] > covered[0.2]).all()
assert covered.loc[3, 0.4] > covered.loc[5, 0.4]

# %%
plots.threshold_plot(choices)

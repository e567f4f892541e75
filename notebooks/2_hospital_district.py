# %% [markdown]
# # The hospital district
#
# Clinics stand beside clinics. Two questions: what is such a cell compared with, and what is done about it?

# %%
from pathlib import Path

import geodiv as gd
from geodiv import plots

fixtures = Path("../fixtures") if Path("../fixtures").exists() else Path("fixtures")
run = gd.read_run(fixtures / "policy.toml")
table = run.tabulate(str(fixtures / "visits.parquet"))
base = {"k_min": 10, "l_min": 3, "shift_max": 0.3, "incidence_max": 0.8}

# %% [markdown]
# ## Local against global
#
# `distance` is to the cells around, `distance_global` to the whole town. The streets of clinics and their surroundings are
# alike; the town is another matter.

# %%
scores = gd.score(table, run.policy)
activity = scores[(scores["attribute"] == "poi_category") & (scores["persons"] >= 10)]
district = activity[activity["top_value"] == "clinic"]
district[["effective_fine", "incidence", "distance", "distance_global", "reference_scope", "fails"]].round(2)

# %%
nearer = district[district["distance"] < district["distance_global"]]
print(
    f"{len(nearer)} of {len(district)} cells where clinics lead are nearer to their surroundings than to the town"
)
assert len(nearer)

# %% [markdown]
# Judged against the town alone, more of them fail on the distance: what the map exists to show would be gone.

# %%
local = gd.score(table, gd.Policy(**base, t_max=0.3, reference=gd.Ring(max_order=3, min_persons=30)))
whole = gd.score(table, gd.Policy(**base, t_max=0.3))
failing = {
    name: int(frame.loc[district.index, "fails"].str.contains("t_max").sum())
    for name, frame in {"ring": local, "global": whole}.items()
}
print("cells of the district that fail t_max:", failing)
assert failing["global"] > failing["ring"]

# %% [markdown]
# ## Coarsening against suppression
#
# The same gates with the whole ladder, and with suppression alone.

# %%
ladder = gd.enforce(table, run.policy)
alone = gd.enforce(
    table,
    gd.Policy(**base, t_max=0.3, reference=gd.Ring(max_order=3, min_persons=30), ladder=["suppress"]),
)
kept = {"ladder": ladder.release.metadata["coverage"], "suppress only": alone.release.metadata["coverage"]}
print(kept)
assert kept["ladder"] > kept["suppress only"]

# %% [markdown]
# ## Before and after
#
# Before: the cells by the plainest thing that they give away, in any attribute. Both maps are internal.

# %%
plots.failing_map(scores)

# %% [markdown]
# After: what became of them.

# %%
plots.remedy_map(ladder.scores, column="final_remedy")

# %% [markdown]
# In figures. The campus itself cannot be helped: everybody who was there was at the clinic, no coarser word makes that less
# certain, and this policy joins two cells at most. A zone of three would hide it.

# %%
fate = activity.assign(
    before=activity["fails"] != "", after=ladder.scores.loc[activity.index, "final_remedy"]
)
print(fate.groupby(["before", "after"]).size().unstack(fill_value=0))
campus = fate.sort_values("incidence").iloc[-1]
assert campus["top_value"] == "clinic"
assert campus["after"] == "suppress"

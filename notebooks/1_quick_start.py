# %% [markdown]
# # Quick start
#
# An invented town, its visits, and a map of them that does not tell what anybody did. Everything here runs on the
# fixture that ships with geodiv.

# %%
from pathlib import Path

import pandas as pd

import geodiv as gd

fixtures = Path("../fixtures") if Path("../fixtures").exists() else Path("fixtures")
visits = pd.read_parquet(fixtures / "visits.parquet")
visits[["lon", "lat", "poi_category", "income_band"]].head(3)

# %% [markdown]
# ## Declare what is sensitive
#
# The categories have no order; a taxonomy says which coarser label each may take. `Unknown` and the empty text mean
# missing, which is a value of its own.

# %%
activity = gd.Nominal(
    "poi_category", taxonomy=gd.Taxonomy.read(fixtures / "poi_taxonomy.csv"), missing=["", "Unknown"]
)
policy = gd.Policy(
    k_min=10,
    l_min=3,
    t_max=0.3,
    shift_max=0.3,
    incidence_max=0.8,
    reference=gd.Ring(order=1, max_order=3, min_persons=30),
)

# %% [markdown]
# ## Count people
#
# Distinct persons, never rows. Rows that cannot be counted are tallied by reason.

# %%
table = gd.tabulate(visits, grid=gd.H3Grid(8), person="person_id", attributes=[activity], on_bad_rows="skip")
print(table, dict(table.intake.dropped))

# %% [markdown]
# ## Score
#
# One row a cell: internal, since a failing cell's figures are the disclosure.

# %%
scores = gd.score(table, policy)
crowds = scores[scores["persons"] >= policy.k_min]
crowds.loc[
    crowds["fails"] != "", ["persons", "distinct", "effective_fine", "incidence", "fails", "remedy"]
].head()

# %% [markdown]
# The cells of the hospital campus have a crowd, and one activity.

# %%
worst = scores.sort_values("effective_fine").iloc[0]
assert worst["top_value"] == "clinic"
assert worst["persons"] >= 10
print(
    f"{worst['distinct']} distinct values, effectively {worst['effective_fine']:.2f}; fails {worst['fails']}"
)

# %% [markdown]
# ## Enforce
#
# Coarsen the attribute first, merge cells next, suppress last; counted again until nothing fails.

# %%
outcome = gd.enforce(table, policy)
figures = outcome.release.metadata
print(figures["remedies"], "not published:", figures["not_published"], "coverage:", figures["coverage"])
assert (outcome.final_scores["fails"] == "").all()

# %%
outcome.release.cells[["cell_id", "persons", "remedy", "poi_category_top", "poi_category_reference"]].head()

# %% [markdown]
# A release shows itself: what was published, by which gates, and a thumbnail. `outcome.release.to_file("release.gpkg")`
# writes it; in QGIS it opens coloured like this.

# %%
outcome.release

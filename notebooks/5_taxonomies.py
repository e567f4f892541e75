# %% [markdown]
# # A taxonomy that works, and one that does not
#
# The coarse values do most of the work. They help when they join activities that share streets, and hurt when they join
# what already clusters.

# %%
from pathlib import Path

import pandas as pd

import geodiv as gd

fixtures = Path("../fixtures") if Path("../fixtures").exists() else Path("fixtures")
visits = str(fixtures / "visits.parquet")
streets = gd.Taxonomy.read(fixtures / "poi_taxonomy.csv")
themes = gd.Taxonomy.of(
    {
        "clinic": "health",
        "pharmacy": "health",
        "gym": "health",
        "salon": "shops",
        "retail": "shops",
        "cafe": "food",
        "restaurant": "food",
        "legal": "work",
        "office": "work",
        "factory": "work",
        "school": "community",
        "worship": "community",
    },
    name="themes",
)
policy = gd.Policy(
    k_min=10,
    l_min=3,
    t_max=0.3,
    shift_max=0.3,
    incidence_max=0.8,
    reference=gd.Ring(max_order=3, min_persons=30),
)

# %% [markdown]
# "Themes" is what a catalogue would have: health, shops, food. "Streets" joins clinic, salon and lawyer, who share
# streets, as *appointment*.

# %%
found, checks = {}, {}
for taxonomy in (streets, themes):
    activity = gd.Nominal("poi_category", taxonomy=taxonomy, missing=["", "Unknown"])
    table = gd.tabulate(
        visits, grid=gd.H3Grid(8), person="person_id", attributes=[activity], on_bad_rows="skip"
    )
    outcome = gd.enforce(table, policy)
    figures = outcome.release.metadata
    found[taxonomy.name] = figures["remedies"]["publish_coarsened"]
    print(
        taxonomy.name,
        figures["remedies"],
        "not published",
        figures["not_published"],
        "coverage",
        figures["coverage"],
    )
    checks[taxonomy.name] = gd.check_taxonomy(table, policy)
assert found["poi_taxonomy"] > found["themes"]

# %% [markdown]
# What each level clears of the cells that fail, and what the better one's labels do one by one. "Themes" keeps
# a little more of what the values tell, and clears about half as many cells.

# %%
print(pd.concat({name: check.levels for name, check in checks.items()}).round(2).to_string())
cleared = {name: check.levels["cleared_share"].iloc[0] for name, check in checks.items()}
assert cleared["poi_taxonomy"] > cleared["themes"]

# %%
checks["poi_taxonomy"].labels.round(2)

# %% [markdown]
# Coarsening never raises the entropy of the labels. What protects is what the reader of the coarse label still does not
# know: the mix of values below it in the surroundings. Three cells of the definitions, judged by belief:

# %%
cells = {
    "c-41": {"clinic": 34},
    "c-58": {"clinic": 41, "pharmacy": 3, "retail": 2, "cafe": 2},
    "c-72": {"retail": 18, "cafe": 15, "gym": 11, "clinic": 9},
}
rows = [(c, v, f"{c}-{v}-{i}") for c, values in cells.items() for v, n in values.items() for i in range(n)]
frame = pd.DataFrame(rows, columns=["cell_id", "poi_category", "person_id"])
clustered = {
    "clinic": "health",
    "pharmacy": "health",
    "retail": "everyday",
    "cafe": "everyday",
    "gym": "everyday",
}
shared = {
    "clinic": "appointment",
    "retail": "appointment",
    "gym": "appointment",
    "cafe": "food",
    "pharmacy": "food",
}
for name, coarse in {"health / everyday": clustered, "appointment / food": shared}.items():
    result = gd.enforce_l_diversity(frame, l_min=2.5, coarse_map=coarse).set_index("cell_id")
    print(name, result.loc["c-58", ["effective_fine", "effective_coarse", "remedy"]].to_dict())

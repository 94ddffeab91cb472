# SPDX-License-Identifier: BSD-3-Clause
"""pandas: a file that is read, cleaned, joined, grouped, and told by the week."""

import io

import numpy as np
import pandas as pd

random = np.random.default_rng(49)
count = 5000
text = "\n".join("%s,%s,%d,%.2f" % (day, shop, items, price) for day, shop, items, price in zip(
    pd.date_range("2026-01-01", periods=count, freq="h").strftime("%Y-%m-%d %H:%M"),
    random.choice(["north", "south", "east", "west"], count),
    random.integers(1, 9, count), random.lognormal(2, 1, count)))
sales = pd.read_csv(io.StringIO(text), names=["when", "shop", "items", "price"],
                    parse_dates=["when"])
sales["sum"] = sales["items"] * sales["price"]
sales.loc[sales["price"] > 50, "price"] = np.nan
shops = pd.DataFrame({"shop": ["north", "south", "east", "west"], "rent": [9.0, 7.5, 8.0, 6.0]})
joined = sales.merge(shops, on="shop").sort_values("when")
weekly = joined.set_index("when").groupby("shop")["sum"].resample("W").sum().unstack(0)
share = weekly.div(weekly.sum(axis=1), axis=0).rolling(4).mean()
busiest = joined.groupby([joined["when"].dt.hour, "shop"])["items"].agg(["sum", "mean"])
print(share.dropna().tail(2), busiest.nlargest(3, "sum"), sales["price"].isna().sum())

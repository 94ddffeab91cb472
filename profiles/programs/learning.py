# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn: digits, by a forest, neighbours and groups, and a line through sums."""

from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_regression
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LassoCV
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pixels, digits = load_digits(return_X_y=True)
known, unknown, names, right = train_test_split(pixels, digits, random_state=49)
scores = [make_pipeline(StandardScaler(), model).fit(known, names).score(unknown, right)
          for model in (RandomForestClassifier(20, random_state=49), KNeighborsClassifier(3))]
few = PCA(10).fit_transform(pixels)
groups = KMeans(10, n_init=1, random_state=49).fit_predict(few)
factors, sums = make_regression(300, 20, noise=3, random_state=49)
print(scores, len(set(groups)), LassoCV(cv=3).fit(factors, sums).score(factors, sums))

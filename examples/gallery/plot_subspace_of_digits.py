"""
A subspace from incomplete images
=================================

Which ten directions describe handwritten digits, if only 8 of the 64 pixels of each image are seen? ``AEFA`` fits a
factor model to all pixels that it has seen; ``POPCA`` averages products of pairs of pixels; ``PCA`` sees all pixels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from budgetreg.estimators import AEFA, PCA, POPCA

# %%
# The first 1,500 images are for learning, the others for the test. Pixels lie between 0 and 1.

X = load_digits().data / 16
train, test = X[:1500], X[1500:]
models = {
    "AEFA, 8 of 64 pixels": AEFA(k=8, n_components=10),
    "POPCA, 8 of 64 pixels": POPCA(k=8, n_components=10),
    "PCA, all pixels": PCA(n_components=10),
}

# %%
# What a subspace loses is the squared distance between an image and its projection, relative to the image.

losses = {}
for name, model in models.items():
    model.fit(train)
    rest = test - model.inverse_transform(model.transform(test))
    losses[name] = np.square(rest).sum() / np.square(test).sum()
    print(f"{name}: loses {losses[name]:.3f} of the test images, after {model.attributes_seen_:,} pixels")

# %%
# The first two components, and a test image with its projection. The sign of a component has no meaning.

figure, panels = plt.subplots(3, 4, layout="constrained")
figure.suptitle("Digits, ten dimensions: from 8 of 64 pixels, AEFA loses less than POPCA")
for row, (name, model) in zip(panels, models.items(), strict=True):
    projected = model.inverse_transform(model.transform(test[:1]))[0]
    for axes, pixels in zip(row, (*model.components_[:2], test[0], projected), strict=True):
        axes.imshow(pixels.reshape(8, 8), cmap="gray")
        axes.set(xticks=[], yticks=[])
    row[0].set_ylabel(name.replace(", ", "\n"))
for axes, title in zip(panels[0], ("component 1", "component 2", "test image", "projection"), strict=True):
    axes.set_title(title)
plt.show()

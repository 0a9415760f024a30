"""A dataset that needs a package nobody has."""

import a_package_that_nobody_has

from celstack import Dataset, hookimpl


class NotImportable(Dataset):
    """Never seen."""

    image_shape = (3, 8, 8)

    def count(self, split):
        """Ask the package."""
        return a_package_that_nobody_has.count(split)

    def read(self, split, indices):
        """Ask the package."""
        return a_package_that_nobody_has.read(split, indices)


@hookimpl
def celstack_datasets():
    """Provide it all the same."""
    return {"not_importable": NotImportable}

"""Take batches apart by their labels, object by object."""


def labeled_objects(batch, most):
    """Return image, class and mask of every object."""
    found = []
    for image, (instances, classes) in enumerate(
        zip(batch.instances, batch.classes, strict=True)
    ):
        for instance in range(1, most + 1):
            here = instances == instance
            if here.any():
                (kind,) = classes[here].unique().tolist()
                found.append((image, kind, here))
    return found

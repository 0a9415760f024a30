"""What several datasets share: caches of images, multi-object images, collages, masks."""

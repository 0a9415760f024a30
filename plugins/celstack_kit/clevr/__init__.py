"""CLEVR-like scenes: layout, meshes, ray tracing, and workers, which import no torch."""

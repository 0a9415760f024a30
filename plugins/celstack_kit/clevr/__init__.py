"""CLEVR-like scenes: layout, meshes, ray tracing, and worker processes; imports no torch."""

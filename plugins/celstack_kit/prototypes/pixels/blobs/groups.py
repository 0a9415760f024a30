"""Group vectors by the graph of their nearest neighbors."""

import warnings

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.vq import kmeans2
from scipy.linalg import eigh
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components

NUM_NEIGHBORS = 12
OUTLIER_SHARE = 0.1
"""Share of the vectors, those furthest from their neighbors, that belong to no group."""
OUTLIER_NEIGHBOR = 5
RESTARTS, ITERATIONS = 10, 60
CHUNK = 256


def group(
    vectors: Float[np.ndarray, "N T q"], count: int, random: np.random.Generator
) -> Int[np.ndarray, " N"]:
    """Return the group of each vector; -1 for those left out.

    A vector is given in T variants, such as angles; its distance from another one is the
    least over its variants. The graph of shared nearest neighbors is cut into ``count``
    groups or more: there may be small groups besides, of objects that are cut off or
    touch. The cut is taken whose ``count``-th largest group is largest, as is best if all
    kinds are about equally frequent; members of smaller groups are left out.
    """
    distances, nearest = _neighbors(vectors)
    limit = np.quantile(distances[:, OUTLIER_NEIGHBOR], 1 - OUTLIER_SHARE)
    usual = np.flatnonzero(distances[:, OUTLIER_NEIGHBOR] <= limit)
    graph = _shared_neighbors(nearest, usual)
    least = max(count, _components(graph))
    most = min(max(least, 3 * count), len(usual) - 2)
    rows = _embed(graph, most)
    best: tuple[int, Int[np.ndarray, " n"]] = (-1, np.zeros(0, np.int64))
    for parts in range(min(least, most), most + 1):
        found = _kmeans(rows[:, :parts], parts, random)
        sizes = np.sort(np.bincount(found, minlength=parts))[::-1]
        if sizes[count - 1] > best[0]:
            largest = np.argsort(-np.bincount(found, minlength=parts), kind="stable")[:count]
            number = np.full(parts, -1)
            number[largest] = np.arange(count)
            best = int(sizes[count - 1]), number[found]
    groups = np.full(len(vectors), -1)
    groups[usual] = best[1]
    return groups


def _neighbors(
    vectors: Float[np.ndarray, "N T q"],
) -> tuple[Float[np.ndarray, "N k"], Int[np.ndarray, "N k"]]:
    """Return distances and indices of the nearest vectors of each, nearest first."""
    first = vectors[:, 0]
    squares = (first**2).sum(1)
    found = []
    for start in range(0, len(vectors), CHUNK):
        some = vectors[start : start + CHUNK]
        products = np.einsum("ntq,mq->ntm", some, first)
        apart = ((some**2).sum(2)[:, :, None] + squares - 2 * products).min(1)
        apart[np.arange(len(some)), np.arange(start, start + len(some))] = np.inf
        nearest = np.argsort(apart, axis=1)[:, :NUM_NEIGHBORS]
        found.append((np.take_along_axis(apart, nearest, 1), nearest))
    distances, nearest = (np.concatenate(each) for each in zip(*found, strict=True))
    return distances, nearest


def _shared_neighbors(
    nearest: Int[np.ndarray, "N k"], usual: Int[np.ndarray, " n"]
) -> csr_array:
    """Return the graph of the usual vectors, weighted by the share of common neighbors."""
    size = len(nearest)
    own = np.repeat(np.arange(size), nearest.shape[1])
    edges = coo_array((np.ones(nearest.size), (own, nearest.ravel())), (size, size)).tocsr()
    edges = edges[usual][:, usual]
    shared = (edges @ edges.T) / nearest.shape[1]
    return csr_array(shared.power(2).multiply(edges.maximum(edges.T)))


def _components(graph: csr_array) -> int:
    """Return the number of connected components, without the smallest ones."""
    _, component = connected_components(graph, directed=False)
    return int((2 * np.bincount(component) > NUM_NEIGHBORS).sum())


def _embed(graph: csr_array, count: int) -> Float[np.ndarray, "..."]:
    """Return the leading eigenvectors of the normalized graph, the first one first."""
    degree = np.asarray(graph.sum(axis=1)).ravel() + 1e-9
    scale = diags_array(degree**-0.5)
    # Not as a sparse matrix: iterative methods miss eigenvectors of equal eigenvalues, of
    # which each connected component has one.
    last = len(degree) - 1
    _, vectors = eigh(
        (scale @ graph @ scale).toarray(), subset_by_index=(last + 1 - count, last)
    )
    return vectors[:, ::-1]


def _kmeans(
    rows: Float[np.ndarray, "n q"], count: int, random: np.random.Generator
) -> Int[np.ndarray, " n"]:
    rows = rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9)
    tries = kmeans_tries(rows, count, random)
    return min(tries, key=lambda one: ((rows - one[0][one[1]]) ** 2).sum())[1]


def kmeans_tries(
    rows: Float[np.ndarray, "n q"], count: int, random: np.random.Generator
) -> list[tuple[Float[np.ndarray, "k q"], Int[np.ndarray, " n"]]]:
    """Return centers and clusters of several runs of k-means; clusters may be empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return [
            kmeans2(rows, count, minit="++", rng=random, iter=ITERATIONS)
            for _ in range(RESTARTS)
        ]

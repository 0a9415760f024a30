"""Data: from files to batches, where files are looked for, and how they are downloaded.

Public. Uses the interfaces; knows nothing of models or recipes.
"""

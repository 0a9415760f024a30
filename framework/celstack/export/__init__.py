"""Export: scenes and decompositions as files for other programs, and edits of scenes.

Uses the model, data and run folders; not training.
"""

"""Recipes that run in a second, one for each kind of run."""

DATA = (
    'dataset = { use = "tetrominoes", count = 24, test_count = 4, per_image = 1, side = 24 }\n'
)
SPRITES = 'sprites = { use = "pixels", count = 3, size = [12, 12], jitter = 0.05 }\n'
NETWORK = 'predictor = { use = "network", encoder = { use = "strided", width = 4 } }\n'
PLACED = (
    'compositor = { use = "ordered", layers = 1 }\ntransforms.layer = ["color", "position"]\n'
)
JUDGED = 'metrics = ["mse", "ari"]\nevaluation = { images = 4, batch_size = 2 }\n'
SAVED = "training = { batch_size = 4, reassign_every = 7, checkpoint_every = 3 }\n"
COMMON = DATA + SPRITES + PLACED + JUDGED + SAVED
GREEDY = COMMON + NETWORK + 'selector = "greedy"\n'
RECIPES = {
    "network": GREEDY
    + "stages = [{ steps = 10, freeze_sprites = true }, { steps = 15 }]\n"
    + 'validation = { every = 2, images = 2, stop_on = "mse", patience = 3 }\n',
    "matching": COMMON
    + 'selector = { use = "matching", empty_cost = 1e-4, refine = 1 }\n'
    + 'stages = [{ steps = 8 }, { steps = 8, transforms = ["position"] }]\n',
    "fitting": COMMON.replace('"position"', '"affine"')
    + 'selector = { use = "fitting", steps = 2 }\nstages = [{ steps = 12 }]\n',
    # The last stage has a selector of its own, with which the run is evaluated.
    "handover": GREEDY
    + 'stages = [{ steps = 6, selector = "matching" }, { steps = 6, teacher = "matching" }, '
    + '{ steps = 4, selector = { use = "greedy", empty_cost = 0.01 } }]\n',
    "evaluation": GREEDY.replace("test_count = 4", "test_count = 16").replace(
        "images = 4, batch_size = 2", "images = 16, batch_size = 1"
    )
    + 'stages = [{ steps = 4 }, { steps = 2, selector = "matching" }]\n',
    "report": GREEDY + 'observers = ["report"]\nstages = [{ steps = 4 }]\n',
    "seeds": GREEDY + "stages = [{ steps = 10 }]\n",
    "sweep": GREEDY + "stages = [{ steps = 30 }]\n",
}

"""What is typed on the command line: overrides, grids and seeds."""

from fuzzed_recipes import CATALOG, NAMES, VALUES
from mutations import mutated_text, word
from trial import Kind

from celstack.errors import RecipeError
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve
from celstack.runs.seeds import parse_seeds
from celstack.runs.sweep.grid import combine, read_grid

TYPED = (
    "selector.sweeps=3",
    "transforms.layer[0].use=color",
    "stages=[{steps=2}, {epochs=1}]",
    "sprites={use='pixels', count=4}",
    'description="a, b"',
    "training.betas=[0.9, 0.99]",
)
GRIDS = ("sprites.count=2,3,4", "seed=0,1", "training.betas=[0.9, 0.9],[0.5, 0.9]")
SEEDS = ("5", "0,1,7", "1", "1000")
PIECES = ["=", ",", "[", "]", "{", "}", '"', "'", ".", "[0]", "[99]", "-1", "\udcff", *NAMES]


class Options(Kind):
    """They are parsed, and what is accepted is put into a recipe and resolved."""

    def attempt(self, random):
        choice = random.random()
        if choice < 0.6:
            count = random.randint(1, 3)
            given = [self.typed(random) for _ in range(count)]
            resolve(read_recipe("smoke.toml", given), CATALOG)
        elif choice < 0.9:
            given = [mutated_text(random, random.choice(GRIDS), PIECES) for _ in range(2)]
            axes = read_grid(given, [])
            problems = [axis for axis in axes if not hasattr(axis, "values")]
            if problems:
                raise RecipeError("grid", problems)
            for cell in combine(axes)[:3]:
                resolve(read_recipe("smoke.toml", cell), CATALOG)
        else:
            text = mutated_text(random, random.choice(SEEDS), [",", "-", "0", "9" * 30])
            assert parse_seeds(text)

    def typed(self, random):
        choice, text = random.random(), random.choice(TYPED)
        if choice < 0.6:
            return text if choice < 0.3 else mutated_text(random, text, PIECES)
        return f"{random.choice(VALUES.keys) or word(random)}={VALUES(random)}"

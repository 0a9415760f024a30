"""All kinds of inputs that come from strangers, by name."""

from fuzzed_archives import Archives
from fuzzed_arrays import KeptArrays, Matrices
from fuzzed_checkpoints import Checkpoints
from fuzzed_downloads import Downloads
from fuzzed_images import Images
from fuzzed_options import Options
from fuzzed_pages import Pages
from fuzzed_recipes import RecipeTables, RecipeTexts
from fuzzed_records import Records
from fuzzed_runs import RunFiles
from fuzzed_scenes import SceneFiles

KINDS = {
    "recipe tables": RecipeTables,
    "recipe texts": RecipeTexts,
    "options": Options,
    "checkpoints": Checkpoints,
    "other files of runs": RunFiles,
    "pages of runs": Pages,
    "TFRecords": Records,
    "images": Images,
    "archives": Archives,
    "matrices": Matrices,
    "kept arrays": KeptArrays,
    "downloads": Downloads,
    "scene JSON": SceneFiles,
}

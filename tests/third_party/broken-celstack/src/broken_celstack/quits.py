"""An observer that ends the program of whoever imports it."""

import sys

sys.exit("quits: wrong operating system")

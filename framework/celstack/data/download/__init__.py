"""Downloads: fetch published files, verify them, extract archives.

What comes from the network is not trusted: sizes are bounded, checksums compared, archives
confined to their folder.
"""

"""The pure core of ninfer-gate: formats, layouts, encoders, containers and verification of `.ninfer` artifacts.

No database, HTTP, settings, clock or network; usable alone as a library.
"""

__version__ = "0.1.0"

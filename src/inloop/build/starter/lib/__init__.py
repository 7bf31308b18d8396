"""Task material, not code of ours to use: library-like functions that agents repair, each with its cases."""

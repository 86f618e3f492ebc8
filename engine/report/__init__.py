"""Reports of runs: figures become blocks, and drawers make documents of them."""

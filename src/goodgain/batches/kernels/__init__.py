"""The compiled loop over the bytes of plain TREC text. `compiling` hands it out; all else here loads numba."""

"""Kernels over the bytes of plain TREC text, which `compiled_kernels` compiles; nothing else imports them, for they load numba.

Nothing in a kernel can fail, so that what is compiled needs neither Python nor numba: it does not divide, allocate or
raise, and other functions are made part of it (`inlined`). It returns a whole number.
"""

from goodgain.batches.kernels.judgments import number_ids, sort_judgments
from goodgain.batches.kernels.lines import copy_texts, count_lines, scan_lines

__all__ = ["copy_texts", "count_lines", "number_ids", "scan_lines", "sort_judgments"]

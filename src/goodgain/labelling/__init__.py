"""Labels 0..4 from a language model: which documents to ask for, the calls, and how far the answers are to be trusted."""

"""Labels 0..4 from a language model: the documents to grade, the calls and their answers."""

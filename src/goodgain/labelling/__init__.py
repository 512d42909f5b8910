"""Labels 0..4 from a language model: the documents to grade, the calls, and an audit of the answers."""

"""From runs to judgments: the documents to judge, and one qrels from the grades of several judges."""

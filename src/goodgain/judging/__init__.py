"""From runs to judgments: which documents are to be judged, and one qrels from the grades of several judges."""

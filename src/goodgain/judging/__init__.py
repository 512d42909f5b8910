"""From runs to judgments: which documents are to be judged."""

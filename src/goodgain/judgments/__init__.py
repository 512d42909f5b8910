"""From runs to judgments: several judges, and labels from a language model."""

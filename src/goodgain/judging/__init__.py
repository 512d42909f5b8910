"""From the grades of several judges to one qrels: rules, maps of scales, and how far the judges agree."""

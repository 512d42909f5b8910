"""From the logs of agents to results, and from results to documents."""

"""What several systems are shown side by side in: curves over iterations, and of precision over recall."""

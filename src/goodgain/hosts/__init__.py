"""The evaluation packages our measures join: one file each, imported only when used."""

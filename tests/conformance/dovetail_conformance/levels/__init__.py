"""The demands of each level, and the level that results amount to. Pure logic over data/."""

"""What a level demands, and which one the results amount to. Pure logic over data/."""

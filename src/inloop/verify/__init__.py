"""What done means: hidden tests, run where the agent never was, decide the reward."""

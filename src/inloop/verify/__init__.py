"""What done means: hidden tests in a clean sandbox, the reward with its parts, tamper evidence."""

"""Tasks x harness x engine -> trajectories: groups, budgets, deadlines, resume, fault taxonomy."""

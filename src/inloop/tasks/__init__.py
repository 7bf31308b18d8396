"""What is to be done: the `Task`, its Harbor folder, tasksets, splits, decontamination."""

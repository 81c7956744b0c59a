"""What a workflow means, written down a second time: without a scheduler, from the design alone."""

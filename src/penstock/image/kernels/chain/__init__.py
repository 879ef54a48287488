"""Chains of image operations: colours, flips, a resize and what follows it as few passes over memory."""

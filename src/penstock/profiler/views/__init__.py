"""Views of a recorded run as files for people and programs. All show the same verdict and analysis."""

"""A recorded run as files for people and programs; all say what `verdict` and the analysis say."""

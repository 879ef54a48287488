"""Colour functions: brightness, contrast, saturation, hue, gamma, colour spaces, standardisation, levels."""

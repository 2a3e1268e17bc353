"""Curves become numbers here; pure functions on NumPy arrays, no training and no drawing.

crossings   when a curve reaches a threshold, holds it, falls below it again
survival    medians of times of which some were never observed
intervals   intervals of medians and geometric means, each labelled with what it is and what it covers
ratios      how many times faster one arm is than another, paired by seed
bands       the median and the spread of many curves over common steps

Nothing is imported here, so that a command that needs one of them does not pay for SciPy.
"""

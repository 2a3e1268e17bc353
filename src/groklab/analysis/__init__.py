"""Curves become numbers here; pure functions on NumPy arrays, no training and no drawing.

crossings     when a curve reaches a threshold, holds it, falls below it again, and how long after memorizing
survival      times of which some were never observed, and their medians
kaplan_meier  the share of runs not there yet, over time
restricted    the mean time up to a horizon, which exists under censoring, too
intervals     intervals of medians and geometric means, each labelled with what it is and what it covers
ratios        how many times faster one arm is than another, paired by seed
superiority   how probable it is that a run of one arm comes before a run of another
comparisons   whether arms differ at all: log-rank tests by permutation, Holm's correction
paired        whether two arms differ, seed by seed
seeds         how many seeds a wanted precision or decision needs
variance      how much of the variance the seeds of split, weights and batches each explain
tobit         linear regression on times of which some are censored
terms         the terms of a quadratic response surface
surface       a response surface of the time to an event, and where the groups' surfaces part
predictive    how well a surface foretells runs that it has not seen
fourier       modular addition in Fourier's basis: key frequencies, the logits with and without them, Gini
bands         the median and the spread of many curves over common steps

Nothing is imported here, so that a command that needs one of them does not pay for SciPy.
"""

"""The agents of the Solve Loop, one module each: process(...) with fixed parameters and results over a mind."""

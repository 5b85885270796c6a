"""Kernels: the exact function beside its random feature map. Knows no speech."""

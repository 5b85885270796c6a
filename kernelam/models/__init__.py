"""What scores frames. Every model is an AcousticModel."""

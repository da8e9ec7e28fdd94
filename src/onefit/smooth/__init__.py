"""Smooth support vector machines: primal Newton methods, and what their normal equations allow."""

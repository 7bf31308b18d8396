"""The starter set: small library-like functions that we wrote, broken in many ways under many names."""

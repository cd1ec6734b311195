"""Operations on small arrays that lie on the host, done by NumPy at the call."""

"""Steps of a plan that NumPy makes on mapped memory."""

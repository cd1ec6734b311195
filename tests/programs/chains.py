"""A Markov chain, a bootstrap and a particle swarm: thousands of small draws, one after the other,
each of which decides what comes next.
"""

import numpy as np

rng = np.random.default_rng(12)


def log_density(x):
    return -0.5 * np.sum((x - np.array([1.0, -1.0])) ** 2 / np.array([1.0, 4.0]))


x, accepted, chain = np.zeros(2), 0, []
level = log_density(x)
for _ in range(1500):
    proposal = x + rng.normal(scale=1.2, size=2)
    proposed = log_density(proposal)
    if np.log(rng.random()) < proposed - level:
        x, level = proposal, proposed
        accepted += 1
    chain.append(x)
chain = np.asarray(chain)[300:]
print("accepted:", accepted)
print("mean:", chain.mean(axis=0).round(6), "covariance:", np.cov(chain.T).round(5))


def autocorrelation(series, lags):
    centred = series - series.mean()
    products = np.correlate(centred, centred, "full")[len(series) - 1 :]
    return (products / products[0])[:lags]


print("autocorrelation:", autocorrelation(chain[:, 0], 5).round(5))

data = rng.gamma(2, 3, size=60)
means = np.empty(400)
for turn in range(len(means)):
    means[turn] = rng.choice(data, size=data.size).mean()
print("bootstrap:", means.std(ddof=1).round(6), np.percentile(means, [2.5, 97.5]).round(5))

groups = rng.normal(0, 1, 30), rng.normal(0.8, 1.2, 25)
observed = groups[1].mean() - groups[0].mean()
pooled, extreme = np.concatenate(groups), 0
for _ in range(300):
    rng.shuffle(pooled)
    extreme += abs(pooled[30:].mean() - pooled[:30].mean()) >= abs(observed)
print("permutations:", int(extreme))

positions = rng.uniform(-5, 5, (20, 2))
velocities = np.zeros_like(positions)
best = positions.copy()
values = (best**2).sum(axis=1)
for _ in range(40):
    leader = best[values.argmin()]
    first, second = rng.random((2, 20, 1))
    velocities = 0.7 * velocities + 1.4 * first * (best - positions)
    velocities += 1.4 * second * (leader - positions)
    positions += velocities
    now = (positions**2).sum(axis=1)
    better = now < values
    best[better], values[better] = positions[better], now[better]
print("swarm:", f"{values.min():.3e}", better.sum(), np.sort(values)[:3] < 1e-3)

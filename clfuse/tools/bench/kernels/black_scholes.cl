// Abramowitz and Stegun 26.2.17.
REALV normal_cdf(REALV d)
{
    const REALV k = (REAL)1 / ((REAL)1 + (REAL)0.2316419 * fabs(d));
    const REALV series =
        k * ((REAL)0.31938153
             + k * ((REAL)-0.356563782
                    + k * ((REAL)1.781477937 + k * ((REAL)-1.821255978 + k * (REAL)1.330274429))));
    const REALV tail = (REAL)0.3989422804014327 * exp((REAL)-0.5 * d * d) * series;
    return select((REAL)1 - tail, tail, d < (REAL)0);
}

__kernel void black_scholes(int count, __global const REAL *restrict spot, __global const REAL *restrict strike,
                            __global const REAL *restrict years, __global REAL *restrict call,
                            __global REAL *restrict put)
{
    const REAL rate = (REAL)0.08, volatility = (REAL)0.3;
    FOR_EACH(i, count) {
        const REALV s = LOAD(i, spot), x = LOAD(i, strike), t = LOAD(i, years);
        const REALV spread = volatility * sqrt(t);
        const REALV d1 = (log(s / x) + (rate + volatility * volatility / 2) * t) / spread;
        const REALV w1 = normal_cdf(d1), w2 = normal_cdf(d1 - spread);
        const REALV discounted = x * exp(-rate * t);
        STORE(s * w1 - discounted * w2, i, call);
        STORE(discounted * ((REAL)1 - w2) - s * ((REAL)1 - w1), i, put);
    }
}

-- Deviations and correlations of floating-point numbers.
SELECT host, stddev_samp(CAST(bytes AS DOUBLE)), corr(CAST(bytes AS DOUBLE), CAST(sector AS DOUBLE)) FROM "disk:read" GROUP BY host

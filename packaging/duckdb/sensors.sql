-- What several sensors saw, and what of it can be believed: views for DuckDB over rows that `netsniff --deliver` sent, as
-- rows/capture.json, rows/conn.json and rows/run_end.json, an object of JSON in each line.

-- A row that came twice is one row.
CREATE VIEW capture AS
SELECT DISTINCT ON (sensor, run, seq) *
FROM read_json('rows/capture.json', format = 'newline_delimited', union_by_name = true, sample_size = -1);

CREATE VIEW conn AS
SELECT DISTINCT ON (sensor, run, seq) *
FROM read_json('rows/conn.json', format = 'newline_delimited', union_by_name = true, sample_size = -1);

-- How many rows of conn a run has by its own account, and how many came. Without an end it was cut off, or its end is still in a spool.
CREATE VIEW completeness AS
SELECT sensor, run, coalesce(came, 0) AS came, made, made IS NOT NULL AND came = made AS is_complete
FROM (SELECT sensor, run, count(*) AS came FROM conn GROUP BY ALL)
FULL JOIN (
    SELECT DISTINCT sensor, run, "rows" AS made
    FROM read_json('rows/run_end.json', format = 'newline_delimited') WHERE "of" = 'conn'
) USING (sensor, run);

-- Which sensor lost how many packets, and when: between one row of the books and the next. `not_followed` were counted alone while a ring filled
-- up, so that no row tells of their flows. Counts in the books are totals since the begin of the run. What a platform does not count is unset, and
-- adds nothing here: see `verdict`.
CREATE VIEW losses AS
WITH told AS (
    SELECT
        sensor, run, interface, ts, "interval", verdict,
        coalesce(lost_interface, 0) + coalesce(ring_dropped, 0) + coalesce(refused, 0) AS lost,
        coalesce(at_packets, 0) AS alone,
        lag(ts) OVER books AS ts_before,
        coalesce(lag(lost) OVER books, 0) AS lost_before,
        coalesce(lag(alone) OVER books, 0) AS alone_before
    FROM capture
    WHERE scope = 'interface'
    WINDOW books AS (PARTITION BY sensor, run, interface ORDER BY seq)
)
SELECT
    sensor, run, interface, coalesce(ts_before, ts - "interval") AS since, ts AS until,
    lost - lost_before AS packets, alone - alone_before AS not_followed, verdict
FROM told
WHERE lost > lost_before OR alone > alone_before;

-- Each connection with what is known of its row. A row is `clean` only where its sensor missed nothing of the connection and lost nothing
-- while it was alive.
CREATE VIEW judged AS
SELECT *, quality = 'clean' AND NOT amid_losses AS can_be_believed
FROM (
    SELECT
        conn.*,
        EXISTS (
            FROM losses
            WHERE losses.sensor = conn.sensor AND losses.run = conn.run
                AND conn.ts <= losses.until AND conn.ts + coalesce(conn.duration, 0) >= losses.since
        ) AS amid_losses
    FROM conn
);

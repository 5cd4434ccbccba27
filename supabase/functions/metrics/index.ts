import { serveMetrics } from '../_millrace/metrics/serve-metrics.ts';

serveMetrics();

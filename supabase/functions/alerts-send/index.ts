import { serveAlerts } from '../_millrace/alerts/send-alerts.ts';

serveAlerts();

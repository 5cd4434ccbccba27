// The local scraper as a program of its own, so that a test can end it as a crash does. Its settings are its environment.
import { startScraper } from '../../../local/services/scraper/server.ts';

const { url } = await startScraper({ env: process.env, port: Number(process.env.PORT) });
process.stdout.write(`${url}\n`);

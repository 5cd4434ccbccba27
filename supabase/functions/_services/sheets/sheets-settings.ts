import { z } from 'zod';
import { httpUrl } from '../../_millrace/mod.ts';

const remedy =
  'set the content of the service account’s key file (JSON), whose e-mail address the sheets are shared with';

/** The required fields of a service account's key file. */
const serviceAccount = z.object({
  client_email: z.string(),
  private_key: z.string().startsWith('-----BEGIN'),
  private_key_id: z.string().optional(),
  token_uri: httpUrl,
});

export type ServiceAccount = z.output<typeof serviceAccount>;

/** Settings for reading Google Sheets. */
export const sheetsSettings = z.object({
  GOOGLE_SERVICE_ACCOUNT: z
    .string()
    .transform((text, context) => {
      const read = serviceAccount.safeParse(parsed(text));
      if (read.success) return read.data;
      context.addIssue({ code: 'custom', message: 'is not the JSON of a service account’s key file' });
      return z.NEVER;
    })
    .describe(remedy),
  SHEETS_API_URL: httpUrl
    .default('https://sheets.googleapis.com')
    .describe('set the URL of an API that speaks the protocol of Google Sheets, or remove it'),
});

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

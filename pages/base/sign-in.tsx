// Signing in at a project: by e-mail and password where it has Supabase Auth, else by an access token.
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { complain } from './messages.tsx';
import { Refusal } from './refusal.ts';
import { claimsOf, keepSession, type Session, send } from './session.ts';
import { readStored, writeStored } from './stored.ts';

const keptProject = 'millrace.project';

interface Given {
  url?: string;
  key?: string;
  token?: string;
}

/** Takes over a key and a token that a link brings behind its #, and removes them from the address. */
export function readLink(): Given | undefined {
  const given = new URLSearchParams(location.hash.replace(/^#/, ''));
  if (!given.has('token')) return undefined;
  history.replaceState(null, '', location.pathname);
  return { url: location.origin, key: given.get('key') ?? '', token: given.get('token') ?? '' };
}

interface SignInProps {
  /** First values of the fields. */
  given?: Given;
  /** The text below the title. */
  note?: string;
  /** Is asked before the session is kept; throws where it is of no use. */
  accept?: (session: Session) => Promise<void>;
}

interface Tokens {
  access_token: string;
  refresh_token?: string;
  user?: { factors?: { id: string; status: string; factor_type: string }[] };
}

/** A key that may do all belongs into no browser: it would lie there, and go out with each request. */
function refuseSecret(given: string): void {
  if (!given.startsWith('sb_secret_') && (given.split('.').length !== 3 || claimsOf(given).role !== 'service_role'))
    return;
  throw new Refusal(0, {
    message: 'This is a secret key, which belongs into no browser.',
    hint: 'Take the publishable key, and sign in as yourself. With a secret key, npx millrace open serves this page.',
  });
}

/** Refuses a legacy key of the project: a JWT without a user. */
function refuseKey({ sub }: Record<string, unknown>): void {
  if (sub) return;
  throw new Refusal(0, {
    message: 'This is no token of a user: it names nobody.',
    hint: 'Sign in with e-mail and password, or take the access_token of a user whom millrace.operators lists.',
  });
}

/** Opens a session with a password. */
async function openByPassword(url: string, key: string, email: string, password: string): Promise<Tokens> {
  const address = `${url}/auth/v1/token?grant_type=password`;
  return (await send(address, { method: 'POST', body: { email, password }, headers: { apikey: key } }).catch(
    (error) => {
      if (error instanceof Refusal && error.status === 404)
        throw new Refusal(404, { message: 'This project takes no passwords.', hint: 'Sign in with an access token.' });
      throw error;
    },
  )) as Tokens;
}

/** Shows the second factor, so that the token says aal2. */
async function showFactor(url: string, key: string, { access_token }: Tokens, factor: string, code: string) {
  const headers = { apikey: key, authorization: `Bearer ${access_token}` };
  const at = `${url}/auth/v1/factors/${factor}`;
  const challenge = (await send(`${at}/challenge`, { method: 'POST', body: {}, headers })) as { id: string };
  const body = { challenge_id: challenge.id, code };
  return (await send(`${at}/verify`, { method: 'POST', body, headers })) as Tokens;
}

/** Reads the form into a session. Resolves to undefined where it has still to ask for the second factor. */
async function openSession(form: FormData, first: { tokens?: Tokens; factor?: string }): Promise<Session | undefined> {
  const read = (name: string) => String(form.get(name) ?? '').trim();
  const url = read('url').replace(/\/+$/, '');
  const key = read('key');
  if (!URL.canParse(url)) throw new Refusal(0, { message: 'This is no address of a project.' });
  refuseSecret(key);
  if (read('by') !== 'password') {
    refuseSecret(read('token'));
    refuseKey(claimsOf(read('token')));
    return { url, key, token: read('token'), refresh: null };
  }
  if (first.tokens && first.factor) {
    first.tokens = await showFactor(url, key, first.tokens, first.factor, read('code'));
  } else {
    first.tokens = await openByPassword(url, key, read('email'), String(form.get('password')));
    first.factor = first.tokens.user?.factors?.find((f) => f.status === 'verified' && f.factor_type === 'totp')?.id;
    if (first.factor) return undefined;
  }
  return { url, key, token: first.tokens.access_token, refresh: first.tokens.refresh_token ?? null };
}

interface FieldProps {
  name: string;
  label: string;
  type?: 'text' | 'url' | 'email' | 'password';
  value?: string;
  hint?: string;
}

function Field({ name, label, type = 'text', value = '', hint }: FieldProps) {
  return (
    <>
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        {...({ type } as { type: 'text' })}
        defaultValue={value}
        required
        spellcheck={false}
        autocomplete={type === 'password' ? 'current-password' : type === 'email' ? 'username' : 'off'}
        aria-describedby={hint && `${name}-hint`}
      />
      {hint && (
        <p class="hint" id={`${name}-hint`}>
          {hint}
        </p>
      )}
    </>
  );
}

function ByWhat({ by, token }: { by: 'password' | 'token'; token?: string | undefined }) {
  if (by === 'token') {
    return (
      <>
        <label for="token">Access token</label>
        <textarea
          id="token"
          name="token"
          rows={3}
          autocomplete="off"
          spellcheck={false}
          defaultValue={token}
          required
        />
      </>
    );
  }
  return (
    <>
      <Field name="email" label="E-mail" type="email" />
      <Field name="password" label="Password" type="password" />
    </>
  );
}

/** Returns the project of the last sign-in, as this browser keeps it. */
const projectBefore = () => readStored<Given>(() => localStorage, keptProject) ?? {};

/** The form that opens a session. */
export function SignIn({ given = {}, note, accept = async () => {} }: SignInProps) {
  const by = useSignal<'password' | 'token'>(given.token ? 'token' : 'password');
  const first = useSignal<{ tokens?: Tokens; factor?: string }>({});
  const asksCode = useSignal(false);
  const isBusy = useSignal(false);
  const title = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => title.current?.focus(), []);
  const before = projectBefore();

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    isBusy.value = true;
    try {
      const opened = await openSession(form, first.value);
      asksCode.value = opened === undefined;
      if (!opened) return;
      await accept(opened);
      writeStored(() => localStorage, keptProject, { url: opened.url, key: opened.key });
      keepSession(opened);
    } catch (error) {
      complain(error);
    } finally {
      isBusy.value = false;
    }
  }

  const url = given.url ?? before.url ?? (location.protocol.startsWith('http') ? location.origin : '');
  return (
    <form id="sign-in" aria-labelledby="sign-in-title" onSubmit={submit}>
      <h2 id="sign-in-title" tabIndex={-1} ref={title}>
        Sign in
      </h2>
      {note && <p>{note}</p>}
      <Field
        name="url"
        label="Address of the project"
        type="url"
        value={url}
        hint="Such as https://abcdefgh.supabase.co"
      />
      <Field name="key" label="Publishable key" value={given.key ?? before.key ?? ''} />
      <fieldset>
        <legend>Credentials</legend>
        {(['password', 'token'] as const).map((way) => (
          <label class="choice" key={way}>
            <input
              type="radio"
              name="by"
              value={way}
              checked={by.value === way}
              onChange={() => {
                by.value = way;
              }}
            />{' '}
            {way === 'password' ? 'e-mail and password' : 'access token'}
          </label>
        ))}
      </fieldset>
      <ByWhat by={by.value} token={given.token} />
      {asksCode.value && <Field name="code" label="Code of your second factor" />}
      <button type="submit" class="first" disabled={isBusy.value}>
        Sign in
      </button>
    </form>
  );
}

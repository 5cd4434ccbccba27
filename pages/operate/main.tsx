// The operator's page: opened by a server on one's own machine, or by signing in at a project.
import 'uplot/dist/uPlot.min.css';
import '../base/base.css';
import './operate.css';
import { render } from 'preact';
import { complain, Messages } from '../base/messages.tsx';
import { keepSession, readKeptSession, session } from '../base/session.ts';
import { readLink, SignIn } from '../base/sign-in.tsx';
import { admit, isLocal, openLocalApi, operator } from './api.ts';
import { Shell } from './shell.tsx';

const spent =
  'A link to the server on this machine works once. npx millrace open makes a new one; or sign in at the project.';

/** The values that a link brings, if any. */
let link: ReturnType<typeof readLink>;

function Page() {
  if (session.value || operator.value) return <Shell />;
  return (
    <>
      <header>
        <h1>Millrace</h1>
      </header>
      <Messages />
      <main id="main" tabIndex={-1}>
        <SignIn accept={admit} {...(link && { given: link })} {...(isLocal && { note: spent })} />
      </main>
    </>
  );
}

async function start(): Promise<void> {
  if (isLocal) await openLocalApi().catch(complain);
  link = readLink();
  const kept = readKeptSession();
  if (kept && !link && operator.value === null) keepSession(kept);
  render(<Page />, document.getElementById('page') as HTMLElement);
}

void start();

// The leads of the demo, with their stages as they move. The demo's link signs in.
import '../base/base.css';
import './leads.css';
import { render } from 'preact';
import { Messages } from '../base/messages.tsx';
import { keepSession, readKeptSession, session } from '../base/session.ts';
import { readLink } from '../base/sign-in.tsx';
import { Leads } from './leads.tsx';

function Page() {
  return (
    <>
      <header>
        <h1>Leads</h1>
      </header>
      <Messages />
      <main id="main">
        {session.value ? (
          <Leads />
        ) : (
          <p>
            Nobody is signed in here. Open the link that <code>npm run demo -- --keep</code> prints.
          </p>
        )}
      </main>
    </>
  );
}

const link = readLink();
const opened = link ? { url: location.origin, key: '', token: '', refresh: null, ...link } : readKeptSession();
if (opened) keepSession(opened);
render(<Page />, document.getElementById('page') as HTMLElement);

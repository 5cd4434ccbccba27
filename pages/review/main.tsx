// The review page: lists articles by their code, and lets a curator open, edit, approve and reject them by writing the next
// code through the Data API.
import '../base/base.css';
import './review.css';
import { render } from 'preact';
import { Messages, say } from '../base/messages.tsx';
import { keepSession, readKeptSession, type Session, session } from '../base/session.ts';
import { readLink, SignIn } from '../base/sign-in.tsx';
import { readCodes } from './names.ts';
import { Shell } from './shell.tsx';
import { nameOf } from './who.ts';

const link = readLink();

/** Asks the project for something, so that a wrong key or token is told where it was typed. */
async function accept(given: Session): Promise<void> {
  await readCodes(given);
  say(`Signed in as ${nameOf(given)}.`);
}

function Page() {
  if (session.value) return <Shell />;
  return (
    <>
      <header>
        <h1>Article review</h1>
      </header>
      <Messages />
      <main id="main" tabIndex={-1}>
        <SignIn {...(link && { given: link })} accept={accept} />
      </main>
    </>
  );
}

const kept = readKeptSession();
if (kept && !link) keepSession(kept);
render(<Page />, document.getElementById('page') as HTMLElement);

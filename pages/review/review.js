// The review page: lists articles by their code, and lets a curator open, edit, approve and reject them by writing the next
// code through the Data API. Row-level security decides what the signed-in user may see and do. Each write says which code
// and which text the curator saw; when somebody else was faster it touches no row, and the page tells who it was.

const pollMs = 4000;
const pageSize = 50;
const kept = 'review.session';
const fields = ['title', 'summary', 'tags', 'thumbnail_url'];
const listed = 'id,title,url,status_code,status_changed_at,entry_type,score';

const $ = (id) => document.getElementById(id);

/** What the page knows: who is signed in, the codes by number, the list that is shown and the article that is open. */
const state = {
  session: null,
  codes: new Map(),
  counts: new Map(),
  uncounted: new Set(),
  listCode: 300,
  shown: [],
  open: null,
  draft: null,
};

// ---- Speaking to the project --------------------------------------------------------------------------------------------

/** What the project refused: its message and its remedy. */
class Refusal extends Error {
  constructor(status, { message, hint, msg, error_description: description } = {}) {
    super(message ?? msg ?? description ?? `The project answered with ${status}.`);
    this.hint = hint ?? '';
    this.status = status;
  }
}

/** Calls the project; resolves to the answer's JSON. Throws a Refusal. */
async function call(path, options = {}, session = state.session, isAgain = false) {
  const { method = 'GET', body, headers = {} } = options;
  const { token } = session;
  let response;
  try {
    response = await fetch(session.url + path, {
      method,
      headers: {
        apikey: session.key,
        ...(token && { authorization: `Bearer ${token}` }),
        ...(body && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
    });
  } catch {
    throw new Refusal(0, { message: 'The project does not answer.', hint: 'Look at its address and your connection.' });
  }
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401 && !isAgain && (session.token !== token || (await refresh(session))))
    return call(path, options, session, true);
  if (!response.ok) throw new Refusal(response.status, answer);
  return answer;
}

const rows = (table, query) => call(`/rest/v1/${table}?${new URLSearchParams(query)}`);

let refreshing = null;

/** Gets a new token for a session that was opened with a password; false when there is none. Calls at once share one. */
async function refresh(session) {
  refreshing ??= renew(session).finally(() => {
    refreshing = null;
  });
  return refreshing;
}

async function renew(session) {
  if (!session.refresh) return false;
  const bare = { url: session.url, key: session.key };
  const body = { refresh_token: session.refresh };
  const answer = await call('/auth/v1/token?grant_type=refresh_token', { method: 'POST', body }, bare, true).catch(
    () => null,
  );
  Object.assign(session, { token: answer?.access_token ?? session.token, refresh: answer?.refresh_token ?? null });
  if (state.session === session) keepSession(session);
  return answer !== null;
}

/** Writes to an article as it was seen; resolves to the new row, or to undefined when it is not as it was seen. */
async function write({ id, status_code: code, revision }, changes) {
  const query = new URLSearchParams({ id: `eq.${id}`, status_code: `eq.${code}`, revision: `eq.${revision}` });
  const headers = { prefer: 'return=representation' };
  const [row] = await call(`/rest/v1/ingestion_queue?${query}`, { method: 'PATCH', body: changes, headers });
  return row;
}

// ---- Words --------------------------------------------------------------------------------------------------------------

/** An element with these properties and children; text is never read as HTML. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const codeName = (code) => `${code} ${state.codes.get(code)?.name.replaceAll('_', ' ') ?? ''}`.trim();
const titleOf = ({ title, url, id }) => title || url || `Article ${id}`;
const person = (actor) => (actor ?? 'somebody').replace(/^user:/, '');

function duration(ms) {
  if (ms === null) return '';
  const units = [
    ['day', 86_400_000],
    ['hour', 3_600_000],
    ['minute', 60_000],
    ['second', 1000],
  ];
  const place = units.findIndex(([, length]) => ms >= length);
  if (place < 0) return `${ms} ms`;
  const [unit, length] = units[place];
  const count = Math.floor(ms / length);
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

const since = (time) => duration(Math.max(0, Date.now() - Date.parse(time)));
const ago = (time) => (Date.now() - Date.parse(time) < 1000 ? 'just now' : `${since(time)} ago`);
const moment = (time) => make('time', { dateTime: time }, new Date(time).toLocaleString('en-GB'));
const asText = (value) => (Array.isArray(value) ? value.join(', ') : (value ?? ''));

/** Says something to everybody, also to those who listen. */
function say(message) {
  $('alert').replaceChildren();
  $('status').textContent = message;
}

/** Tells what went wrong and what to do about it. */
function complain(error) {
  $('status').textContent = '';
  $('alert').replaceChildren(make('p', {}, error.message), error.hint ? make('p', {}, error.hint) : null);
  if (error.status === 401 && state.session) signOut('Your session has ended. Sign in again to go on.');
}

/** Does something that a person asked for, once, and tells when it is refused. */
async function act(button, work) {
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    complain(error);
  } finally {
    button.disabled = false;
  }
}

// ---- Signing in ---------------------------------------------------------------------------------------------------------

function claimsOf(token) {
  try {
    const [, payload] = token.split('.');
    const bytes = Uint8Array.from(atob(payload.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new Refusal(400, {
      message: 'This is no access token.',
      hint: 'Paste the whole token: three parts with dots between.',
    });
  }
}

function keepSession(session) {
  state.session = session;
  sessionStorage.setItem(kept, JSON.stringify(session));
}

async function signIn() {
  const base = { url: $('url').value.trim().replace(/\/+$/, ''), key: $('key').value.trim() };
  let session = { ...base, token: $('token').value.trim() };
  if (document.querySelector('[name=by]:checked').value === 'password') {
    const body = { email: $('email').value, password: $('password').value };
    const answer = await call('/auth/v1/token?grant_type=password', { method: 'POST', body }, base).catch((error) => {
      if (error.status !== 404) throw error;
      throw new Refusal(404, { message: 'This project takes no passwords.', hint: 'Sign in with an access token.' });
    });
    session = { ...base, token: answer.access_token, refresh: answer.refresh_token };
  }
  await begin(session);
  $('password').value = '';
  $('token').value = '';
  say(`Signed in as ${$('name').textContent}.`);
}

/** Shows the work of a session that the project accepts. */
async function begin(session) {
  const claims = claimsOf(session.token);
  const lookup = await call(
    '/rest/v1/status_lookup?select=code,name,description,sort_order&order=sort_order',
    {},
    session,
  );
  state.codes = new Map(lookup.map((row) => [row.code, row]));
  keepSession(session);
  $('name').textContent = claims.app_metadata?.name ?? claims.email ?? claims.sub;
  state.isCurator = claims.app_metadata?.role === 'curator';
  $('who').hidden = false;
  $('sign-in').hidden = true;
  $('work').hidden = false;
  await route();
}

function signOut(message) {
  sessionStorage.removeItem(kept);
  Object.assign(state, { session: null, open: null, shown: [], counts: new Map() });
  $('who').hidden = true;
  $('work').hidden = true;
  $('article').replaceChildren();
  $('articles').replaceChildren();
  showSignIn();
  if (message) $('alert').replaceChildren(make('p', {}, message));
  else say('Signed out.');
}

function showSignIn() {
  $('sign-in').hidden = false;
  $('url').value ||= location.protocol.startsWith('http') ? location.origin : '';
  $('sign-in-title').focus();
}

// ---- The list -----------------------------------------------------------------------------------------------------------

/** Asks how many articles stand at each code; of a step with more than a thousand it counts those that entered first. */
async function fetchCounts() {
  const found = await rows('article_backlog', { select: 'code,articles,more' });
  state.counts = new Map(found.map(({ code, articles }) => [code, articles]));
  state.uncounted = new Set(found.filter(({ more }) => more).map(({ code }) => code));
}

/** Keeps the counts after an article has moved. */
function countMove(from, to) {
  if (from === to) return;
  state.counts.set(from, Math.max(0, (state.counts.get(from) ?? 0) - 1));
  state.counts.set(to, (state.counts.get(to) ?? 0) + 1);
  drawCodes();
}

function drawCodes() {
  const current = state.open ? undefined : state.listCode;
  const isShown = ({ code }) => state.counts.get(code) || code === state.listCode || (code >= 300 && code % 10 === 0);
  const links = [...state.codes.values()].filter(isShown).map(({ code, description }) => {
    const count = state.counts.get(code) ?? 0;
    const link = make(
      'a',
      { href: `#/${code}`, title: description ?? '' },
      make('span', {}, codeName(code)),
      ` ${count}${state.uncounted.has(code) ? '+' : ''}`,
    );
    if (count === 0) link.className = 'none';
    if (code === current) link.setAttribute('aria-current', 'page');
    return make('li', {}, link);
  });
  $('codes').replaceChildren(...links);
}

async function fetchList(offset = 0) {
  const query = {
    select: listed,
    status_code: `eq.${state.listCode}`,
    // By which the table has an index.
    status_step: `eq.${Math.floor(state.listCode / 10)}`,
    order: 'status_changed_at,id',
    limit: pageSize,
    offset,
  };
  const found = await rows('ingestion_queue', query);
  state.shown = offset === 0 ? found : [...state.shown, ...found];
  $('more').hidden = found.length < pageSize;
}

async function showList() {
  state.open = null;
  $('article').hidden = true;
  $('list').hidden = false;
  await Promise.all([fetchList(), fetchCounts()]);
  drawCodes();
  drawList();
  document.title = `${codeName(state.listCode)} · Article review`;
}

function drawList() {
  const code = state.codes.get(state.listCode);
  $('list-title').textContent = codeName(state.listCode);
  const others = state.isCurator ? '' : ' You see the articles that you have added; curators decide about them.';
  $('list-hint').textContent =
    state.shown.length > 0 ? `${code?.description ?? ''}. The oldest first.${others}` : `No articles.${others}`;
  $('articles').replaceChildren(...state.shown.map(drawListed));
}

function drawListed(article) {
  const facts = [`${since(article.status_changed_at)} here`, article.entry_type];
  if (article.score !== null) facts.push(`score ${article.score.toFixed(2)}`);
  return make(
    'li',
    {},
    make('a', { href: `#/article/${article.id}` }, titleOf(article)),
    make('p', { className: 'hint' }, facts.join(' · ')),
  );
}

// ---- One article --------------------------------------------------------------------------------------------------------

async function fetchArticle(id) {
  const [[article], history] = await Promise.all([
    rows('ingestion_queue', { id: `eq.${id}`, limit: 1 }),
    rows('status_history', { queue_id: `eq.${id}`, order: 'id.desc', limit: 200 }),
  ]);
  if (!article)
    throw new Refusal(404, { message: 'This article is not there (any more).', hint: 'Go back to the list.' });
  return { ...article, history };
}

/** Whether an article at 320 is one that is published already: it was so after it was last in review. */
const isUpdate = ({ history }) =>
  history.find((step) => [300, 310, 400, 410].includes(step.to_status))?.to_status >= 400;

/** The code at which an article that has failed goes on: that of the stage, of a review its beginning. */
function codeToRetry(article) {
  const from = article.history.find((step) => step.to_status === 500)?.from_status;
  if (!from) return null;
  return from === 310 || (from === 320 && !isUpdate(article)) ? 300 : Math.floor(from / 10) * 10;
}

/**
 * What a curator may do at this code: [label, code to write, whether the edited text goes along, what is said then]. Null
 * instead of whether: the text that stood there before the edit goes along.
 */
function movesAt(article) {
  const code = article.status_code;
  const retried = codeToRetry(article);
  if (code === 320 && isUpdate(article)) {
    return [
      ['Save and publish again', 410, true, 'Saved. The site shows it in a moment.'],
      [
        'Discard the edit',
        article.history[0].from_status,
        null,
        'Discarded. The site has kept the text that it showed.',
      ],
    ];
  }
  const moves = {
    300: [['Open', 310, false, 'Opened.']],
    310: [
      ['Approve', 330, false, 'Approved. It is published in a moment.'],
      ['Edit', 320, false, 'You can edit the text now.'],
      ['Reject', 540, false, 'Rejected.'],
      ['Put back', 300, false, 'Put back.'],
    ],
    320: [
      ['Save and approve', 330, true, 'Saved and approved. It is published in a moment.'],
      ['Save and stop editing', 310, true, 'Saved.'],
      ['Reject', 540, false, 'Rejected.'],
    ],
    400: [
      ['Edit', 320, false, 'You can edit the text now. The site shows the old one until you publish again.'],
      ['Take off the site', 300, false, 'The site is told to show it no longer. It waits for a review again.'],
    ],
    500: retried ? [['Try again', retried, false, 'It is tried again.']] : [],
    510: [['Fetch it again', 110, false, 'It is fetched again.']],
    520: [['It is no duplicate', article.content ? 120 : 110, false, 'It goes on as an article of its own.']],
    530: [
      ['Score it again', 120, false, 'It is scored again.'],
      ['Take it all the same', 200, false, 'It goes on as if it were relevant.'],
    ],
    540: [['Look at it again', 300, false, 'It waits for a review again.']],
  };
  return moves[code === 410 ? 400 : code] ?? [];
}

async function showArticle(id) {
  const article = await fetchArticle(id);
  if (state.draft && state.draft.id !== id) state.draft = null;
  $('list').hidden = true;
  $('article').hidden = false;
  draw(article);
  if (state.counts.size === 0) await fetchCounts();
  drawCodes();
}

/** Draws the open article as it is now. */
function draw(article) {
  state.open = article;
  document.title = `${titleOf(article)} · Article review`;
  const isEdited = article.status_code === 320 && state.isCurator;
  const parts = [
    make('p', {}, make('a', { href: `#/${state.listCode}` }, `Back to ${codeName(state.listCode)}`)),
    make('h2', { id: 'article-title', tabIndex: -1 }, titleOf(article)),
    drawState(article),
    ...(isEdited ? [drawForm(article)] : []),
    drawActions(article),
    ...(isEdited ? [] : drawText(article)),
    drawFacts(article),
    make('h3', {}, 'History'),
    drawHistory(article.history),
  ];
  $('article').replaceChildren(...parts);
}

function drawState({ status_code: code, history }) {
  const [last] = history;
  const told = last ? ` by ${person(last.changed_by)}, ${ago(last.changed_at)}` : '';
  return make(
    'p',
    {},
    make('span', { className: 'badge', id: 'code' }, codeName(code)),
    make('span', { id: 'since' }, told),
  );
}

function drawActions(article) {
  const moves = state.isCurator ? movesAt(article) : [];
  const buttons = moves.map(([label, code, withText, told], place) => {
    const button = make('button', { type: 'button', className: place === 0 ? 'first' : '' }, label);
    button.addEventListener('click', () => act(button, () => move(code, withText, told)));
    return button;
  });
  if (article.status_code === 320 && state.isCurator) buttons.splice(1, 0, saveButton());
  if (buttons.length === 0)
    buttons.push(nextLink() ?? make('span', { className: 'hint' }, 'There is nothing to decide here.'));
  return make('div', { className: 'actions', role: 'group', 'aria-label': 'What you can do' }, ...buttons);
}

/** Leads to the article after this one in the list that it was opened from. */
function nextLink() {
  const place = state.shown.findIndex(({ id }) => id === state.open.id);
  const next = state.shown[place + 1];
  return place >= 0 && next ? make('a', { href: `#/article/${next.id}` }, `Next: ${titleOf(next)}`) : null;
}

function saveButton() {
  const button = make('button', { type: 'submit' }, 'Save');
  button.setAttribute('form', 'edit');
  return button;
}

function drawText({ summary, tags, content, thumbnail_url: image, title }) {
  const source = imageAddress(image);
  return [
    source ? make('img', { src: source, alt: `Thumbnail of ${title ?? 'the article'}`, loading: 'lazy' }) : null,
    make('h3', {}, 'Summary'),
    make('p', { className: 'text', id: 'summary' }, summary ?? 'None yet.'),
    make('h3', {}, 'Tags'),
    make('p', { id: 'tags' }, tags?.length ? tags.join(', ') : 'None yet.'),
    content
      ? make('details', {}, make('summary', {}, 'Text of the page'), make('div', { className: 'text' }, content))
      : null,
  ].filter((part) => part !== null);
}

/** Where an image lies, or null for what is no web address. */
function imageAddress(given) {
  if (!given || !URL.canParse(given, `${state.session.url}/`)) return null;
  const url = new URL(given, `${state.session.url}/`);
  return /^https?:$/.test(url.protocol) ? url.href : null;
}

function drawFacts(article) {
  const link = (address) => make('a', { href: address, target: '_blank', rel: 'noopener noreferrer' }, address);
  const facts = {
    Address: /^https?:\/\//i.test(article.url ?? '') ? link(article.url) : article.url,
    Author: article.author,
    'Published there': article.published_at && moment(article.published_at),
    Entered:
      article.entry_type === article.entered_as ? article.entered_as : `${article.entered_as}, ${article.entry_type}`,
    Score: article.score?.toFixed(2),
    'Copy of': article.duplicate_of
      ? make('a', { href: `#/article/${article.duplicate_of}` }, article.duplicate_of)
      : article.is_copy && 'an article that somebody else has added',
  };
  const known = Object.entries(facts).filter(([, value]) => value);
  return make('dl', {}, ...known.flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]));
}

function drawHistory(history) {
  const names = ['When', 'From', 'To', 'By', 'Time there', 'What changed'];
  const body = history.map((step) =>
    make(
      'tr',
      {},
      make('td', {}, moment(step.changed_at)),
      make('td', {}, step.from_status === null ? '' : codeName(step.from_status)),
      make('td', {}, codeName(step.to_status)),
      make('td', {}, person(step.changed_by)),
      make('td', {}, duration(step.duration_ms)),
      make('td', {}, drawChanges(step.changes)),
    ),
  );
  const head = make('thead', {}, make('tr', {}, ...names.map((name) => make('th', { scope: 'col' }, name))));
  const table = make('table', { id: 'history' }, head, make('tbody', {}, ...body));
  return make('div', { className: 'scrolls', tabIndex: 0, role: 'region', 'aria-label': 'History' }, table);
}

function drawChanges(changes) {
  const items = Object.entries(changes ?? {}).map(([field, change]) =>
    make('li', {}, `${field}: `, make('del', {}, asText(change.old)), ' → ', make('ins', {}, asText(change.new))),
  );
  return items.length > 0 ? make('ul', {}, ...items) : '';
}

// ---- Editing ------------------------------------------------------------------------------------------------------------

const labels = { title: 'Title', summary: 'Summary', tags: 'Tags', thumbnail_url: 'Address of the thumbnail' };

function drawForm(article) {
  const form = make('form', { id: 'edit', 'aria-label': 'Edit the article' });
  const draft = state.draft?.fields ?? {};
  for (const field of fields) {
    const input = make(field === 'summary' ? 'textarea' : 'input', { id: `edit-${field}`, name: field });
    if (field === 'summary') input.rows = 8;
    input.value = draft[field] ?? asText(article[field]);
    form.append(make('label', { htmlFor: input.id }, labels[field]), input);
    if (field !== 'tags') continue;
    input.setAttribute('aria-describedby', 'tags-hint');
    form.append(make('p', { className: 'hint', id: 'tags-hint' }, 'With commas between them'));
  }
  form.addEventListener('input', () => {
    const values = Object.fromEntries(fields.map((field) => [field, form.elements[field].value]));
    state.draft = { id: article.id, fields: values };
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const button = event.submitter ?? form;
    act(button, () => save());
  });
  return form;
}

/** What differs between the form and the row, as it is written. */
function editedFields() {
  const form = $('edit');
  if (!form) return {};
  const values = Object.fromEntries(fields.map((field) => [field, form.elements[field].value.trim()]));
  const tags = values.tags.split(',').map((tag) => tag.trim());
  const written = { ...values, tags: [...new Set(tags)].filter((tag) => tag !== '') };
  return Object.fromEntries(
    Object.entries(written).filter(([field, value]) => asText(value) !== asText(state.open[field])),
  );
}

/** What the fields held before the edit that is under way. */
function fieldsBefore({ status_changes: changes }) {
  return Object.fromEntries(Object.entries(changes ?? {}).map(([field, change]) => [field, change.old]));
}

async function save() {
  const changes = editedFields();
  if (Object.keys(changes).length === 0) return say('There is nothing to save: the text is as it was.');
  if (await put(changes)) say('Saved.');
}

/** Writes the next code, with the edited text where it goes along. */
async function move(code, withText, told) {
  const text = withText === null ? fieldsBefore(state.open) : withText ? editedFields() : {};
  const changes = { ...text, status_code: code };
  if (!(await put(changes))) return;
  say(told);
  $('article-title').focus();
}

/** Writes to the open article and draws it anew; false when somebody else was faster, which is told. */
async function put(changes) {
  const seen = state.open;
  const row = await write(seen, changes);
  const article = await fetchArticle(seen.id);
  if (!row) {
    tellConflict(seen, article);
    return false;
  }
  state.draft = null;
  draw(article);
  countMove(seen.status_code, article.status_code);
  return true;
}

// ---- Others at the same article -------------------------------------------------------------------------------------------

/** Tells what somebody else has made of the open article, and keeps the text that is being written here. */
function tellConflict(seen, article) {
  const [last] = article.history;
  const moved = article.status_code !== seen.status_code || last?.id !== seen.history[0]?.id;
  const message = moved
    ? `${person(last?.changed_by)} was faster: the article is ${codeName(article.status_code)} now.`
    : 'Somebody else has saved another text meanwhile.';
  const unsaved = state.draft && state.draft.id === article.id;
  draw(article);
  countMove(seen.status_code, article.status_code);
  complain(
    new Refusal(409, {
      message,
      hint: unsaved ? 'Your own text is still here: see below.' : 'You see it as it is now.',
    }),
  );
  if (unsaved) showOwnText(article);
  $('article-title').focus();
}

/** Shows a curator's unsaved text beside the one that somebody else has saved. */
function showOwnText(article) {
  const { fields: own } = state.draft;
  const box = make('section', { className: 'conflict', 'aria-label': 'Your unsaved text' });
  const drop = make('button', { type: 'button' }, 'Drop my text');
  drop.addEventListener('click', () => {
    state.draft = null;
    draw(state.open);
    say('Dropped. You see the text that is saved.');
    $('article-title').focus();
  });
  const differing = fields.filter((field) => own[field] !== asText(article[field]));
  box.append(
    make('h3', {}, 'Your unsaved text'),
    make(
      'dl',
      {},
      ...differing.flatMap((field) => [make('dt', {}, labels[field]), make('dd', { className: 'text' }, own[field])]),
    ),
    make('h3', {}, 'What is saved now'),
    make(
      'dl',
      {},
      ...differing.flatMap((field) => [
        make('dt', {}, labels[field]),
        make('dd', { className: 'text' }, asText(article[field])),
      ]),
    ),
    drop,
  );
  $('article').querySelector('.actions').before(box);
}

/** Looks now and then whether somebody else has done something to the open article, and tells it. */
async function look() {
  if (!state.session || document.hidden || !state.open) return;
  const seen = state.open;
  const [now] = await rows('ingestion_queue', {
    id: `eq.${seen.id}`,
    select: 'status_code,revision,status_changed_at',
  });
  if (state.open !== seen || document.querySelector('.actions button:disabled')) return;
  if (!now) throw new Refusal(404, { message: 'Somebody has deleted this article.', hint: 'Go back to the list.' });
  if (now.status_changed_at === seen.status_changed_at && now.revision === seen.revision) return;
  const article = await fetchArticle(seen.id);
  if (state.open !== seen) return;
  if (state.draft) return tellConflict(seen, article);
  const hadFocus = $('article').contains(document.activeElement);
  const [last] = article.history;
  draw(article);
  if (hadFocus) $('article-title').focus();
  const isText = now.status_changed_at === seen.status_changed_at;
  say(
    isText
      ? 'Somebody else has saved another text.'
      : `${person(last?.changed_by)}: the article is ${codeName(article.status_code)} now.`,
  );
  countMove(seen.status_code, article.status_code);
}

// ---- The way through the page -------------------------------------------------------------------------------------------

async function route() {
  if (!state.session) return;
  const [, kind = '300', id] = /^#\/(\d+|article)(?:\/([0-9a-f-]+))?$/.exec(location.hash) ?? [];
  if (kind === 'article' && id) {
    await showArticle(id);
    $('article-title').focus();
    return;
  }
  state.listCode = Number(kind) || 300;
  state.draft = null;
  await showList();
  $('list-title').focus();
}

function listen() {
  $('sign-in').addEventListener('submit', (event) => {
    event.preventDefault();
    act(event.submitter ?? $('sign-in'), signIn);
  });
  for (const choice of document.querySelectorAll('[name=by]')) {
    choice.addEventListener('change', () => {
      $('by-password').hidden = choice.value !== 'password';
      $('by-token').hidden = choice.value === 'password';
    });
  }
  $('sign-out').addEventListener('click', () => signOut());
  $('more').addEventListener('click', (event) =>
    act(event.currentTarget, async () => {
      const before = state.shown.length;
      await fetchList(before);
      drawList();
      $('articles').children[before]?.querySelector('a').focus();
    }),
  );
  document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault();
    $('main').focus();
  });
  window.addEventListener('hashchange', () => route().catch(complain));
  window.addEventListener('beforeunload', (event) => {
    if (state.draft) event.preventDefault();
  });
  setInterval(() => look().catch(complain), pollMs);
}

/** Takes over a key and a token that a link brings behind its #, and removes them from the address. */
function readLink() {
  const given = new URLSearchParams(location.hash.replace(/^#/, ''));
  if (!given.has('token')) return;
  $('url').value = location.origin;
  $('key').value = given.get('key') ?? '';
  $('token').value = given.get('token');
  history.replaceState(null, '', location.pathname);
}

async function start() {
  listen();
  readLink();
  const session = JSON.parse(sessionStorage.getItem(kept) ?? 'null');
  if (!session || $('token').value) return showSignIn();
  await begin(session).catch((error) => {
    showSignIn();
    complain(error);
  });
}

start().catch(complain);

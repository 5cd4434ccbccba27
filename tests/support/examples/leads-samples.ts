/** Results as each stage of `leads` could have stored them. */
export const samples = {
  scrape: { pages: [{ url: 'https://a.test/', title: 'A', markdown: 'We repair clocks.' }] },
  intel: {
    company_name: 'A',
    summary: 'Repairs clocks.',
    industry: 'Repair',
    offerings: ['Clock repair'],
    audience: 'Owners of clocks',
    signals: ['A second workshop'],
    challenges: ['Few apprentices'],
  },
  strategy: {
    angle: 'The second workshop',
    value_proposition: 'Fill it sooner',
    talking_points: ['Two places', 'One calendar'],
    objections: ['No time'],
    tone: 'friendly',
  },
  subject: { lines: ['Two workshops, one calendar'] },
  messaging: {
    subject: 'Two workshops, one calendar',
    body: 'You have opened a second workshop. One calendar for both keeps customers from waiting.',
    call_to_action: 'Shall we talk for ten minutes?',
  },
};

import { type Linking, pageLink } from './page-link.ts';

/** Returns the address of the review page that signs in a curator. */
export const reviewLink = (stack: Linking, name: string) => pageLink(stack, 'review', { role: 'curator', name });

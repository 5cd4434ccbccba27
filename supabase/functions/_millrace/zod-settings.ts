import { z } from 'zod';

// zod would compile each schema into a function at its first use, which pays after hundreds of uses. A worker lives for a minute or
// two, and pays at each start. Settings hold for schemas made later, so modules that make some import this one first.
z.config({ jitless: true });
